"""`acp-agent config` and `acp-agent version`."""

from __future__ import annotations

import json
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from acp_agent.config.schema import config_schema
from acp_agent.config.types import Config
from tests.cli.cli_process import acp_agent, environment
from tests.support.warm_parent import shared_parent


def write_config(home: Path, text: str) -> Path:
    file = home / "agent" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_path_prints_the_file_even_if_it_is_missing_or_invalid(tmp_path: Path) -> None:
    expected = f"{tmp_path / 'agent' / 'config.toml'}\n"
    assert acp_agent(tmp_path, "config", "path").stdout == expected
    write_config(tmp_path, "broken =")
    assert acp_agent(tmp_path, "config", "path").stdout == expected


def test_show_prints_every_setting_as_a_valid_configuration(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        'mode = "plan"\n[models."a/b"]\ncontext_window = 5000\nprice = { input = 1, output = 2 }\n',
    )
    ran = acp_agent(tmp_path, "config", "show", environ={"ACP_AGENT_LANGUAGE": "zh"})
    settings = tomllib.loads(ran.stdout)
    assert (settings["mode"], settings["language"]) == ("plan", "zh")
    assert settings["limits"]["max_model_requests"] == Config().limits.max_model_requests
    assert settings["models"]["a/b"]["price"] == {"input": 1.0, "output": 2.0}
    second_home = tmp_path / "again"
    second_home.mkdir()
    write_config(second_home, ran.stdout)
    assert acp_agent(second_home, "config", "show").returncode == 0


def test_show_lists_unset_keys_below_their_table(tmp_path: Path) -> None:
    write_config(tmp_path, '[providers.x]\nregion = "eu"\nheaders = { A = "b" }\n')
    output = acp_agent(tmp_path, "config", "show").stdout
    tables = {part.partition("]")[0]: part for part in output.split("\n[")}
    assert "\n# small_model is not set\n" in output[: output.index("\n[")]
    assert "\n# turn_cost is not set\n" in tables["budget"]
    assert "\n# project is not set\n" in tables["providers.x"]
    assert tomllib.loads(output)["providers"]["x"]["region"] == "eu"


def test_show_hides_secrets_in_the_file(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        '[providers.x]\napi = "openai"\nbase_url = "https://me:hunter2@host:8/v1?key=hunter2"\n'
        'headers = { Authorization = "hunter2" }\n',
    )
    for flags in ([], ["--json"]):
        ran = acp_agent(tmp_path, "config", "show", *flags)
        assert ran.returncode == 0
        assert "hunter2" not in ran.stdout
        assert "https://host:8/v1" in ran.stdout
        assert "Authorization" in ran.stdout


def test_show_reports_an_error_in_one_line_with_its_position(tmp_path: Path) -> None:
    file = write_config(tmp_path, '\nmode = "pln"\n')
    ran = acp_agent(tmp_path, "config", "show")
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.startswith(f"acp-agent: {file}:2: mode: ")
    assert ran.stderr.count("\n") == 1


def test_schema_prints_the_published_schema(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "config", "schema")
    assert json.loads(ran.stdout) == json.loads(config_schema())


def test_a_closed_output_pipe_is_not_an_error(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [*shared_parent().command(), "config", "schema"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path),
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.close()
    _, errors = child.communicate(timeout=30)
    assert (child.returncode, errors) == (0, b"")


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_that_of_the_installed_package(tmp_path: Path, arguments: list[str]) -> None:
    ran = acp_agent(tmp_path, *arguments)
    assert ran.stdout == f"acp-agent {version('acp-agent-server')}\n"


@pytest.mark.parametrize("command", ["config", "sessions"])
def test_the_actions_are_explained_if_none_is_given(tmp_path: Path, command: str) -> None:
    ran = acp_agent(tmp_path, command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "    show  " in ran.stderr
    explained = acp_agent(tmp_path, command, "show", "--help").stdout
    assert explained.split("\n\n")[1] in " ".join(ran.stderr.split())  # the same words


def test_an_unknown_action_is_a_usage_error(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "config", "shwo")
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


def test_show_names_the_variable_that_sets_a_value(tmp_path: Path) -> None:
    environ = {"ACP_AGENT_MODEL": "demo/demo", "ACP_AGENT_LOG_LEVEL": "debug"}
    output = acp_agent(tmp_path, "config", "show", environ=environ).stdout
    assert 'model = "demo/demo" # from ACP_AGENT_MODEL\n' in output
    assert 'level = "debug" # from ACP_AGENT_LOG_LEVEL\n' in output
    assert output.count("# from ") == 2
    assert "these are the defaults" not in output
    assert tomllib.loads(output)["model"] == "demo/demo"
