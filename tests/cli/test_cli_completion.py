"""`acp-agent completion`: what Tab offers, in a real bash; other shells in `make test-editors`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import pytest

from acp_agent.cli.completion import SHELLS
from acp_agent.cli.completion.candidates import answer
from acp_agent.cli.editors.catalog import editors
from acp_agent.cli.main import COMMANDS
from acp_agent.events import AnyEvent, SessionStarted, TitleChanged, TurnStarted
from acp_agent.ids import SessionId, new_session_id, new_turn_id
from acp_agent.models.catalog import Catalog
from acp_agent.models.providers import presets
from acp_agent.session.store.store import Store
from tests.cli.cli_process import acp_agent, environment

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")

# What bash does when Tab is pressed, without the terminal: its words, and the place of the last.
ASK_BASH = """
source /dev/stdin
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
_acp_agent "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
if ((${#COMPREPLY[@]})); then printf '%s\\n' "${COMPREPLY[@]}"; fi
"""


def home_environment(home: Path) -> dict[str, str]:
    environ = environment(home)
    return environ | {"PATH": f"{Path(sys.executable).parent}:{environ['PATH']}"}


def in_bash(home: Path, *words: str) -> list[str]:
    """What the script makes of bash's words of a command line, of which the last is completed."""
    ran = subprocess.run(
        ["bash", "--norc", "-c", ASK_BASH, "bash", *words],
        input=script("bash"),
        env=home_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def script(shell: str) -> str:
    return (files("acp_agent.cli.completion") / "scripts" / f"acp-agent.{shell}").read_text("utf-8")


def configure(home: Path, *lines: str) -> None:
    (home / "agent").mkdir(exist_ok=True)
    (home / "agent" / "config.toml").write_text("\n".join(lines) + "\n")


def candidates(
    home: Path, *words: str, shell: str = "zsh", environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What the program answers a shell: candidates, and what is said of them."""
    lines = answer([shell, "acp-agent", *words], environment(home, environ)).splitlines()
    assert lines[0] == "words"
    return {name: about for name, _, about in (line.partition("\t") for line in lines[1:])}


async def keep_sessions(home: Path, *titles: str | None) -> list[SessionId]:
    """Sessions that were used in the order of their titles."""
    store = await Store.open(home / "agent" / "sessions.db")
    names = []
    try:
        for title in titles:
            names.append(name := new_session_id())
            turn: list[AnyEvent] = [
                SessionStarted(cwd="/srv/shop"),
                TurnStarted(turn=new_turn_id()),
            ]
            await store.create(name, [*turn, TitleChanged(title=title)] if title else turn)
    finally:
        await store.close()
    return names


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script_of_a_shell(shell: str, tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "completion", shell)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, script(shell), "")


def test_a_shell_without_a_completion_script_is_refused(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "completion", "tcsh")
    assert ran.returncode == 2
    assert "tcsh" in ran.stderr


@bash
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ses"], ["sessions"]),
        ([""], list(COMMANDS)),
        (["sessions", ""], ["list", "show", "export", "record", "delete", "check", "repair"]),
        (["usage", "--by", ""], ["day", "model", "project"]),
        (["usage", "--by", "=", "mo"], ["model"]),
        (["chat", "--mode", "p"], ["plan"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["run", "--js"], ["--json"]),
        (["models", "--json", "--"], ["--help", "--all"]),
        (["serve", "--allow-host", "a", "--allow-h"], ["--allow-host"]),
        (["chat", "--resume", "--p"], ["--plain"]),
        (["chat", "--resume", "--plain", "--t"], ["--timeout"]),
        (["--mo"], ["--model"]),
        (["run", "do it", "--", "--js"], []),
        (["nothing", ""], []),
        (["--model", "demo/demo", ""], ["--help", "--agent", "--trace", "--print"]),
        (["config", "show", "--"], ["--help", "--json"]),
    ],
    ids=" ".join,
)
def test_bash_offers_commands_options_and_their_choices(
    words: Sequence[str], offered: Sequence[str], tmp_path: Path
) -> None:
    assert in_bash(tmp_path, "acp-agent", *words) == list(offered)


@bash
def test_bash_offers_the_files_and_folders_of_the_place(tmp_path: Path) -> None:
    (tmp_path / "plan one.md").touch()
    (tmp_path / "places").mkdir()
    completions = in_bash(tmp_path, "acp-agent", "sessions", "export", "--output", "pl")
    assert sorted(completions) == ["places", r"plan\ one.md"]
    assert in_bash(tmp_path, "acp-agent", "run", "--cwd", "pl") == ["places"]


@bash
def test_bash_completes_a_value_behind_an_equals_sign_or_a_colon(tmp_path: Path) -> None:
    configure(tmp_path, 'model = "local/smol:1b"')
    assert in_bash(tmp_path, "acp-agent", "run", "--model", "=", "dem") == ["demo/demo"]
    assert in_bash(tmp_path, "acp-agent", "run", "--model", "local/smol", ":", "1") == ["1b"]
    assert in_bash(tmp_path, "acp-agent", "run", "--model=local/smol", ":") == ["1b"]


@bash
async def test_bash_lists_sessions_with_titles_and_inserts_only_the_id(
    tmp_path: Path,
) -> None:
    old, new = await keep_sessions(tmp_path, "Mend the greeting", None)
    assert in_bash(tmp_path, "acp-agent", "sessions", "show", "") == [
        "latest  (/srv/shop)",
        f"{new}  (/srv/shop)",
        f"{old}  (Mend the greeting)",
    ]
    assert in_bash(tmp_path, "acp-agent", "view", old) == [old]


async def test_sessions_are_offered_newest_first_where_their_ids_go(tmp_path: Path) -> None:
    old, new = await keep_sessions(tmp_path, "Old", "New")
    offered = {"latest": "New", new: "New", old: "Old"}
    for words in (["sessions", "show"], ["sessions", "export"], ["view"], ["chat", "--resume"]):
        assert list(candidates(tmp_path, *words, "").items())[:3] == list(offered.items())
    del offered["latest"]  # which these do not take
    for words in (["sessions", "delete"], ["sessions", "delete", old], ["run", "--resume"]):
        assert candidates(tmp_path, *words, "") == offered


async def test_sessions_without_a_turn_or_archived_are_not_offered(tmp_path: Path) -> None:
    (visible, hidden) = await keep_sessions(tmp_path, "Shown", "Hidden")
    store = await Store.open(tmp_path / "agent" / "sessions.db")
    await store.archive(hidden)
    await store.create(new_session_id(), [SessionStarted(cwd="/srv/shop")])
    await store.close()
    assert list(candidates(tmp_path, "sessions", "show", "")) == ["latest", visible]


async def test_a_title_stays_on_its_line_and_drives_no_terminal(tmp_path: Path) -> None:
    (name,) = await keep_sessions(tmp_path, "one\ntwo\tthree \x1b[2J\x9b\u202e" + "x" * 100)
    about = candidates(tmp_path, "sessions", "delete", "")[name]
    assert about.startswith("one two three [2J xxx")
    assert about.isprintable()
    assert len(about) <= 60


def test_models_providers_and_editors_are_those_that_the_commands_know(tmp_path: Path) -> None:
    assert candidates(tmp_path, "run", "--model", "") == {
        model.ref: model.name
        for preset in presets()
        for model in Catalog({}).for_provider(preset.id)
    }
    with_keys = {preset.id: preset.name for preset in presets() if preset.api != "demo"}
    assert candidates(tmp_path, "login", "") == with_keys
    assert candidates(tmp_path, "setup", "") == {
        name: editor.title for name, editor in editors().items()
    }


def test_models_and_providers_of_the_configuration_are_offered_too(tmp_path: Path) -> None:
    configure(
        tmp_path,
        'model = "house/big"\nfallback_models = ["house/small"]',
        '[providers.house]\nbase_url = "http://127.0.0.1:9/v1"\napi = "openai"',
        '[models."house/third"]\ncontext_window = 8192',
    )
    assert list(candidates(tmp_path, "chat", "--model", "house/")) == [
        "house/third", "house/small", "house/big",
    ]  # fmt: skip
    assert "house" in candidates(tmp_path, "login", "")


@pytest.mark.parametrize(
    "broken", ["model = [", 'providers = 3\nmodels = "x"\nfallback_models = 1\nlanguage = 2']
)
def test_completion_works_despite_a_broken_configuration_or_store(
    broken: str, tmp_path: Path
) -> None:
    configure(tmp_path, broken)
    (tmp_path / "agent" / "sessions.db").write_text("no database")
    assert "sessions" in candidates(tmp_path, "")
    assert candidates(tmp_path, "sessions", "show", "") == {}
    assert "openai" in candidates(tmp_path, "login", "")
    assert "demo/demo" in candidates(tmp_path, "run", "--model", "")


def test_looking_makes_no_store(tmp_path: Path) -> None:
    assert candidates(tmp_path, "sessions", "show", "") == {}
    assert not (tmp_path / "agent").exists()


def test_the_description_of_a_candidate_is_in_the_users_language(tmp_path: Path) -> None:
    assert candidates(tmp_path, "vers") == {"version": "Show the version"}
    chinese = {"LANG": "zh_CN.UTF-8"}
    assert candidates(tmp_path, "vers", environ=chinese) == {"version": "显示版本"}
    configure(tmp_path, 'language = "en"')
    assert candidates(tmp_path, "vers", environ=chinese) == {"version": "Show the version"}


def test_fish_gets_the_whole_word_of_an_option_with_its_value(tmp_path: Path) -> None:
    assert list(candidates(tmp_path, "chat", "--mode=pl", shell="fish")) == ["--mode=plan"]
    assert list(candidates(tmp_path, "chat", "--mode=pl", shell="zsh")) == ["plan"]


def test_tab_waits_for_nothing_heavy(tmp_path: Path) -> None:
    """Neither argparse, nor an SDK, nor the room of sessions is imported to answer."""
    code = """if True:
        import sys
        from acp_agent.cli.main import main
        for words in (["sessions", "show", ""], ["run", "--model", ""], [""]):
            main(["completion", "--answer", "zsh", "acp-agent", *words])
        sys.stderr.write(" ".join(sys.modules))"""
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        env=home_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stderr.split()
    heavy = {"argparse", "asyncio", "anthropic", "openai", "mcp", "pydantic", "rich", "httpx2"}
    assert not heavy & set(loaded)
    assert [name for name in loaded if name.startswith(("acp_agent.session", "protocol"))] == []
