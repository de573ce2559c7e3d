"""What a command finds in its environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acp_agent.config.secrets import is_secret_name
from acp_agent.workspace.environment import command_environ
from acp_agent.workspace.processes import LocalProcesses


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "DB_PASSWORD",
        "client_secret",
        "TOKEN",
    ],
)
def test_a_variable_that_holds_a_credential_is_not_passed_on(name: str) -> None:
    assert name not in command_environ({name: "x"})
    assert command_environ({name: "x"}, keep=[name])[name] == "x"


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "SSH_AUTH_SOCK",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "KUBECONFIG",
        "TOKENIZERS_PARALLELISM",
        "MONKEY",
        "KEYBOARD_LAYOUT",
        "GPG_KEY",
        "PASSWORD_STORE_DIR",
    ],
)
def test_a_variable_that_holds_no_credential_is_passed_on(name: str) -> None:
    assert not is_secret_name(name)
    assert command_environ({name: "x"})[name] == "x"


def test_a_variable_that_the_configuration_takes_a_key_from_is_not_passed_on() -> None:
    passed = command_environ({"MY_LLM": "x", "OTHER": "y"}, hide=["MY_LLM"], keep=["MY_LLM"])
    assert "MY_LLM" not in passed
    assert passed["OTHER"] == "y"


async def test_a_command_has_the_users_environment_without_keys_and_with_our_mark(
    tmp_path: Path,
) -> None:
    variables: list[str] = []

    async def take(text: str) -> None:
        variables.append(text)

    environ = os.environ | {"MY_FLAG": "on", "MY_API_KEY": "hidden-value", "FORCE_COLOR": "1"}
    processes = LocalProcesses(tmp_path, environ=environ)
    result = await processes.run("env", tmp_path, timeout=20, on_output=take)
    await processes.aclose()
    lines = result.output.splitlines()
    assert {"MY_FLAG=on", "ACP_AGENT=1", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat"} <= set(lines)
    assert "hidden-value" not in result.output
    assert not any(line.startswith("FORCE_COLOR=") for line in lines)


async def test_git_waits_for_no_editor_and_no_pager(workspace_repo: Path, tmp_path: Path) -> None:
    async def ignore(text: str) -> None:
        del text

    processes = LocalProcesses(tmp_path / "outputs", environ=os.environ | {"EDITOR": "cat"})
    command = (
        "git -c user.name=T -c user.email=t@example.com commit --amend -q && "
        "git -c core.pager= log --format=%s"
    )
    result = await processes.run(command, workspace_repo, timeout=20, on_output=ignore)
    await processes.aclose()
    assert (result.exit_code, result.output) == (0, "Start\n")
