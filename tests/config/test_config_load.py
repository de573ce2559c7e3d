"""The configuration file: what it says, and what is said when it is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acp_agent.config.load import SIZE_LIMIT, list_problems, load_config
from acp_agent.config.localization import translator_for
from acp_agent.config.types import AgentConfig, Config, DefinitionConfig
from acp_agent.errors import ConfigError
from tests.support.ordinary_user import shared_folder, without_root


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_missing_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load_config(tmp_path / "none" / "config.toml", {}) == Config()


def test_a_missing_file_costs_no_toml_parser() -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from acp_agent.config.load import load_config\n"
        "load_config(Path('does-not-exist.toml'), {})\n"
        "heavy = {'tomllib', 'tomlkit', 'platformdirs', 'keyring', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_file_that_was_read_before_costs_no_toml_parser_until_it_changes(tmp_path: Path) -> None:
    file, parsed = tmp_path / "config.toml", tmp_path / "data" / "parsed-config.json"
    program = f"""
import sys
from pathlib import Path
from acp_agent.config.load import load_config
config = load_config(Path({str(file)!r}), {{}}, Path({str(parsed)!r}))
print(config.mode, config.limits.max_retries, "tomllib" in sys.modules)
"""

    def load() -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    file.write_text('mode = "plan"\n[limits]\nmax_retries = 2\n')
    assert [load(), load()] == ["plan 2 True", "plan 2 False"]
    assert parsed.stat().st_mode & 0o777 == 0o600
    file.write_text('mode = "full"\n[limits]\nmax_retries = 2\n')
    assert [load(), load()] == ["full 2 True", "full 2 False"]
    parsed.write_text("{")
    assert [load(), load()] == ["full 2 True", "full 2 False"]


def test_values_that_json_lacks_are_parsed_each_time(tmp_path: Path) -> None:
    file, parsed = tmp_path / "config.toml", tmp_path / "parsed-config.json"
    file.write_text("mode = 2026-01-01\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"config.toml:1: mode: "):
            load_config(file, {}, parsed)
    assert not parsed.exists()


def test_every_kind_of_value_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        model = "mine/big"
        mode = "plan"
        limits.stall_timeout = 5
        [providers.mine]
        api = "openai"
        base_url = "http://127.0.0.1:8080/v1"
        headers = { x-team = "a" }
        [models."mine/big"]
        context_window = 200_000
        thought_levels = ["low", "high"]
        price = { input = 1, output = 2.5 }
        """,
    )
    config = load_config(path, {})
    assert config.model == "mine/big"
    assert config.mode == "plan"
    assert config.limits.stall_timeout == 5.0
    assert config.limits.max_retries == Config().limits.max_retries
    assert config.providers["mine"].headers == {"x-team": "a"}
    price = config.models["mine/big"].price
    assert price is not None
    assert (price.input, price.output, price.cache_read) == (1.0, 2.5, None)


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\r\n"], ids=["byte order mark", "CRLF"])
def test_files_from_editors_of_other_systems_are_read(tmp_path: Path, start: bytes) -> None:
    assert load_config(write(tmp_path, start + b'mode = "plan"\r\n'), {}).mode == "plan"


def test_skills_and_agents_have_tables_by_their_names(tmp_path: Path) -> None:
    text = '[skills.a]\nmodel = "small"\n[agents.b]\nmodel = "x/y"\nenabled = false\n'
    config = load_config(write(tmp_path, text), {})
    assert config.skills == {"a": DefinitionConfig(model="small")}
    assert config.agents == {"b": AgentConfig(model="x/y", enabled=False)}


# Each case: the file, and what the message must hold, the line first.
MISTAKES = {
    "unknown key": (
        'mode = "ask"\nmodle = "a/b"\n',
        (":2:", "modle", 'did you mean "mode" or "model"?'),
    ),
    "a skill's model": (
        '[skills.review]\nmodel = "sonnet"',
        (":2:", "skills.review.model", '"sonnet" has the wrong form; write it like "small" or '),
    ),
    "an agent's setting": (
        "[agents.reviewer]\ntools = []",
        (
            ":2:",
            "agents.reviewer.tools",
            "unknown key; known here: args, command, description, enabled",
        ),
    ),
    "nothing near": ("zzz = 1\n", (":1:", "zzz", "known here:", "providers")),
    "not allowed": ('\n\nmode = "acept-edits"', (":3:", "mode", '"plan"', 'mean "accept-edits"?')),
    "wrong type": (
        "[limits]\n# a\nmax_retries = 'x'",
        (":3:", "limits.max_retries", "whole number", '"x"'),
    ),
    "true for a number": ("[limits]\nmax_retries = true", (":2:", "whole number", "found true")),
    "out of bounds": ("[limits]\nmax_retries = 99", (":2:", "at most 20", "found 99")),
    "endless": ("[limits]\nstall_timeout = inf", (":2:", "at most 86,400", "found inf")),
    "not a number": ("[limits]\nstall_timeout = nan", (":2:", "above 0", "found nan")),
    "dotted keys": (
        "\nlimits.max_retries = -1",
        (":2:", "at least 0"),
    ),
    "nested table": (
        '[models."a/b".price]\ninput = 1\noutput = "x"',
        (":3:", 'models."a/b".price.output', "a number"),
    ),
    "missing key": ('[models."a/b".price]\ninput = 1', (":1:", "price.output", "missing", "add")),
    "inline table": (
        '[providers.x]\nheaders = { a = "1", b = 2 }',
        (":2:", "providers.x.headers.b", "text in quotes", "found 2"),
    ),
    "array over lines": (
        '[models."a/x"]\nthought_levels = [\n  "low", # fine\n\n  "hihg",\n]',
        (":5:", 'models."a/x".thought_levels[1]', 'did you mean "high"?'),
    ),
    "second of two tables": (
        '[providers.a]\napi = "openai"\n[models."a/b"]\n[providers.c]\napi = "opena"',
        (":5:", "providers.c.api", 'did you mean "openai"?'),
    ),
    "a value where a table belongs": ("\nlimits = 3", (":2:", "limits", "expected a table")),
    "a table where a value belongs": ("\n[mode]\nx = 1", (":2:", "mode", "a table is not allowed")),
    "a date": ("model = 2020-01-01", (":1:", "model", "text in quotes", "date")),
    "an address of no web": ("[providers.x]\nbase_url = 'ftp://h'", (":2:", "https://host/v1")),
    "a model without provider": ("model = 'gpt'", (":1:", "model", "wrong form", "/")),
    "a model's table without provider": (
        "[models.gpt]\ncontext_window = 9000",
        (":1:", "models.gpt", "/"),
    ),
    "a provider that no model can name": (
        "[providers.'my company']\napi = 'openai'",
        (":1:", "my company", "wrong form", '"company"'),
    ),
    "a key in the file": (
        "[providers.x]\napi_key = 'abc123'",
        (":2:", "api_key", "acp-agent login"),
    ),
    "a key in its variable's place": (
        "[providers.x]\napi_key_env = 'sk-abc123'",
        (":2:", "key_env", "name of a variable", "acp-agent login"),
    ),
    "a region that is none": (
        "[providers.bedrock]\nregion = 'Frankfurt am Main'",
        (":2:", 'wrong form; write it like "eu-central-1"'),
    ),
    "a name of two lines": (
        "[models.'a/b']\nname = 'x'\n[models.'a/c']\nname = \"x\\n\"",
        (":4:", 'write it like "Coder Large"'),
    ),
    "a name that nobody sees": ("[models.'a/b']\nname = ' '", (":2:", 'like "Coder Large"')),
    "text without quotes": ("a = 1\nmode = plan", (":2:", "not TOML", "text goes in quotes")),
    "a table twice": (
        "[limits]\nmax_retries = 1\n[limits]\nloop_ask_after = 2\n",
        (":3:", "the table [limits] is there twice"),
    ),
    "curly quotes": ("mode = \u201cplan\u201d", (":1:", "curly quotes")),
    "a bracket that stays open": (
        "fallback_models = ['a/b'\nmode = 'ask'",
        (":2:", "bracket", "comma"),
    ),
    "YAML": ("mode: plan", (":1:", "a = is missing behind a key")),
    "JSON": ('{"mode": "plan"}', (":1:", "neither `key = value` nor `[table]`")),
    "UTF-16": ("mode = 'plan'".encode("utf-16"), (":1:", "save the file as UTF-8")),
    "UTF-16 without a mark": ("mode = 'plan'".encode("utf-16-le"), (":1:", "as UTF-8")),
    "no TOML": ("mode = 'ask'\nmodel = \n", (":2:", "not TOML")),
    "an open string": ('a = 1\nb = "x', (":2:", "quote is not closed")),
    "a single quote that stays open to the end": (
        "a = 1\nmode = 'ask\nb = 2",
        (":2:", "a quote is not closed"),
    ),
    "a single quote that stays open in its line": (
        "mode = 'ask\ntitles = 'words'",
        (":1:", "quote is not closed in its line"),
    ),
    "a double quote that stays open in its line": (
        'mode = "ask\ntitles = "prompt"',
        (":1:", "quote is not closed in its line"),
    ),
    "a key twice": ("mode = 'ask'\n\nmode = 'plan'", (":3:", "not TOML: a key is there twice")),
    "Latin-1": (b"# fine\nmodel = '\xe9/x'", (":2:", "UTF-8")),
    "NUL": (b"mode\0 = 1", (":1:", "not TOML")),
}


@pytest.mark.parametrize(("text", "fragments"), MISTAKES.values(), ids=MISTAKES.keys())
def test_an_error_is_one_line_with_its_position_and_remedy(
    tmp_path: Path, text: str | bytes, fragments: tuple[str, ...]
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path, {})
    message = str(caught.value)
    assert message.startswith(f"{path}{fragments[0]}")
    assert "\n" not in message
    for part in fragments[1:]:
        assert part in message
    assert "abc123" not in message


def test_the_line_of_an_error_is_named_once_even_in_a_parser_message(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, "models = { b = 1 }\nmodels.c = 2\n"), {})
    assert "config.toml:2: not TOML: Cannot " in str(caught.value)
    assert "(at line" not in str(caught.value)


def test_a_toml_error_is_translated_into_chinese(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, "mode = plan\n"), {})
    assert "有一个值无法读取（文本须加引号）" in translator_for("zh").rendered(str(caught.value))


def test_a_key_in_place_of_its_variable_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[providers.x]\napi_key_env = 'sk-abc123'\n")
    with pytest.raises(ConfigError) as raised:
        load_config(path, {})
    assert "abc123" not in str(raised.value)


def test_several_errors_are_counted_and_listed(tmp_path: Path) -> None:
    path = write(tmp_path, "one = 1\ntwo = 2\nmode = 'no'\n")
    with pytest.raises(ConfigError, match="2 more: see 'acp-agent doctor'"):
        load_config(path, {})
    problems = list_problems(path, {})
    assert [problem.removeprefix(str(path))[:4] for problem in problems] == [":1: ", ":2: ", ":3: "]


def test_a_file_with_many_errors_is_reported_quickly(tmp_path: Path) -> None:
    path = write(tmp_path, "".join(f"limits.wrong{n} = 1\n" for n in range(5_000)))
    started = time.process_time()  # of the processor: the machine may be busy with other things
    problems = list_problems(path, {})
    assert time.process_time() - started < 20
    assert len(problems) == 21
    assert problems[-1] == f"{path}: 4980 more errors"


def test_variables_take_precedence_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, 'mode = "plan"\n[log]\nlevel = "error"\n')
    environ = {"ACP_AGENT_MODE": "full", "ACP_AGENT_LOG_LEVEL": "debug", "ACP_AGENT_MODEL": ""}
    config = load_config(path, environ)
    assert (config.mode, config.log.level, config.model) == ("full", "debug", None)


def test_a_wrong_variable_is_reported_with_the_allowed_values(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'the variable ACP_AGENT_MODE: "pla".*mean "plan"'):
        load_config(tmp_path / "none.toml", {"ACP_AGENT_MODE": "pla"})


def test_a_folder_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="is not a file"):
        load_config(tmp_path / "config.toml", {})


def test_a_pipe_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(ConfigError, match="is not a file"):
        load_config(tmp_path / "config.toml", {})


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    with path.open("wb") as file:
        file.truncate(SIZE_LIMIT + 1)
    with pytest.raises(ConfigError, match="larger than"):
        load_config(path, {})


def test_an_unreadable_file_is_reported() -> None:
    with shared_folder() as folder, without_root():
        path = write(folder, "")
        path.chmod(0)
        with pytest.raises(ConfigError, match="check who may read it"):
            load_config(path, {})


@pytest.mark.parametrize(
    ("text", "read"), [('"$2"', 2.0), ('"0.50 USD"', 0.5), ("2", 2.0), ('"$1,000"', 1000.0)]
)
def test_a_budget_may_be_written_as_the_command_takes_it(
    tmp_path: Path, text: str, read: float
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'[budget]\nturn_cost = {text}\nday_tokens = "500k"\n')
    budget = load_config(path, {}).budget
    assert (budget.turn_cost, budget.day_tokens) == (read, 500_000)


@pytest.mark.parametrize("wrong", ['turn_cost = "500k"', 'day_tokens = "$2"', 'turn_cost = "two"'])
def test_an_amount_of_another_unit_is_refused_with_its_line(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[budget]\n{wrong}\n")
    with pytest.raises(ConfigError, match=r"config.toml:2: budget\.\w+: expected a"):
        load_config(path, {})
