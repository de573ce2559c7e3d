"""Git commands of the model in a repository that names programs: which run, and with what."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from tests.server.server_session import OpenSession, messages
from tests.support.agent_process import config_file
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What the marker writes to when it is run."""
    return tmp_path / "ran"


@pytest.fixture
def marker(tmp_path: Path, ran: Path) -> Path:
    """A program that notes that it was run."""
    program = tmp_path / "marker"
    program.write_text(f"#!/bin/sh\necho ran >> {ran}\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def _trusted(home: Path, workspace_repo: Path) -> None:
    """The user trusts the repository; what it runs unasked is another matter."""
    config_file(home, f'trusted_folders = ["{workspace_repo}"]\n')


@pytest.fixture
def hooked(workspace_repo: Path, marker: Path) -> Path:
    """The repository with a hook for all that changes its index, and with a changed file."""
    hooks = workspace_repo / ".git" / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "pre-commit"):
        (hooks / name).symlink_to(marker)
    (workspace_repo / "greeting.py").write_text("x = 1\n")
    os.utime(workspace_repo / "README.md", (1, 1))
    return workspace_repo


def runs(server: ModelServer, *commands: str) -> None:
    for command in commands:
        server.add(answer(Call("shell", {"command": command})))
    server.add(answer("Done."))


def results(server: ModelServer) -> str:
    return "\n".join(
        str(message["content"]) for message in messages(server) if message["role"] == "tool"
    )


async def test_a_program_in_the_repositorys_settings_is_refused_in_plan_mode(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, marker: Path, ran: Path
) -> None:
    with (workspace_repo / ".git" / "config").open("a") as file:
        file.write(f'[core]\nfsmonitor = {marker}\n[diff "x"]\ntextconv = {marker}\n')
    (workspace_repo / ".gitattributes").write_text("* diff=x\n")
    runs(model_server, "git status", "git log -p", "git -C src diff")
    editor = Editor()
    running, session = await opened(editor=editor)
    await running.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
    await running.prompt(session, "look")
    assert results(model_server).count("plan mode") == 3
    assert editor.asked == []
    assert not ran.exists()


@pytest.mark.parametrize("terminals", [False, True])
async def test_git_without_a_question_runs_no_hook_and_an_allowed_commit_does(
    opened: OpenSession,
    model_server: ModelServer,
    home: Path,
    hooked: Path,
    ran: Path,
    terminals: bool,
) -> None:
    terminal = f"[editor]\nterminals = {str(terminals).lower()}\n"
    config_file(home, f'trusted_folders = ["{hooked}"]\n{terminal}')
    (hooked / "vendor").mkdir()
    subprocess.run(["git", "init", "-q", "--bare", "vendor"], cwd=hooked, check=True)
    editor = Editor(offers=frozenset(["terminal"] if terminals else []))
    running, session = await opened(editor=editor)
    runs(model_server, "git describe --always --dirty", "git status --short", "git diff --stat")
    await running.prompt(session, "look")
    assert "-dirty" in results(model_server)
    assert " M greeting.py" in results(model_server)
    assert editor.asked == []
    assert not ran.exists()

    commit = "git -c user.name=A -c user.email=a@example.com commit -qam x"
    runs(model_server, commit, "git -C vendor log")
    await running.prompt(session, "commit")
    assert len(editor.asked) >= 1
    assert ran.exists()
    assert "cannot use bare repository" in results(model_server)


@pytest.mark.usefixtures("hooked")
async def test_a_background_command_that_needs_no_permission_runs_no_hook(
    opened: OpenSession, model_server: ModelServer, ran: Path
) -> None:
    command = "git describe --always --dirty"
    editor = Editor()
    running, session = await opened(editor=editor)
    model_server.add(
        answer(Call("shell", {"command": command, "background": True})),
        answer(Call("background", {"action": "wait", "id": "1", "seconds": 20})),
        answer("Done."),
    )
    await running.prompt(session, "look")
    assert "-dirty" in results(model_server)
    assert editor.asked == []
    assert not ran.exists()


async def test_judging_a_slow_repository_delays_nothing_else(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    os.mkfifo(workspace_repo / "pipe")
    with (workspace_repo / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {workspace_repo}/pipe\n")
    runs(model_server, "git status")
    running, session = await opened()
    prompt = running.post_prompt(session, "look")
    await running.expect_update(session, "tool_call")
    async with asyncio.timeout(60):
        await running.request("session/list", {})
        running.cancel(session)
        assert (await running.result(prompt))["stopReason"] == "cancelled"
