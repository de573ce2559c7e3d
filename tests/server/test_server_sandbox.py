"""Commands of a real agent run in the sandbox, and outside of it only when the user says so."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from acp_agent.sandbox.sandbox import Unavailable, find_backend
from tests.server.server_session import OpenSession, messages
from tests.support.agent_process import config_file
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer

FULL = {"ACP_AGENT_MODE": "full", "ACP_AGENT_SANDBOX": "true"}


@pytest.fixture(autouse=True, scope="module")
def _needs_a_sandbox() -> None:
    backend = find_backend(os.environ.get("PATH"))
    if isinstance(backend, Unavailable):
        pytest.skip(f"no sandbox: {backend.reason}")


def results(server: ModelServer) -> list[str]:
    """The results of the calls in the last request."""
    return [str(message["content"]) for message in messages(server) if message["role"] == "tool"]


async def run(
    opened: OpenSession,
    server: ModelServer,
    *commands: str | dict[str, object],
    editor: Editor | None = None,
) -> tuple[Sequence[str], Editor]:
    """Have a model run commands in full mode; returns their results."""
    calls = [command if isinstance(command, dict) else {"command": command} for command in commands]
    server.add(*(answer(Call("shell", call)) for call in calls), answer("Done."))
    editor = editor or Editor(permission="allow_once")
    running, session = await opened(editor=editor, environ=FULL)
    await running.prompt(session, "run them")
    return results(server), editor


async def test_a_command_writes_in_the_project_and_its_own_temporary_folder_only(
    opened: OpenSession, model_server: ModelServer, home: Path, workspace_repo: Path
) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("a key")
    results, editor = await run(
        opened,
        model_server,
        "echo a > made.txt && echo b > /tmp/note && cat made.txt /tmp/note && git status --short",
        "cat /tmp/note",
        f"echo x > {home}/outside",
        f"cat {home}/.ssh/id_ed25519",
        f"ls -A {home}/acp-agent",
        f"cat < /dev/tcp/127.0.0.1/{model_server.port}",
    )
    assert results[0].startswith("a\nb\n?? made.txt")
    assert results[1].startswith("b\n")
    assert "Read-only file system" in results[2]
    assert "outside_sandbox" in results[2]
    assert "No such file" in results[3]
    assert results[4].startswith("[no output")
    assert not (home / "outside").exists()
    assert (workspace_repo / "made.txt").read_text() == "a\n"
    assert editor.asked == []
    assert not list(Path("/tmp").glob("note"))


async def test_a_command_reaches_the_hosts_that_the_user_allowed_and_no_others(
    opened: OpenSession, model_server: ModelServer, home: Path
) -> None:
    port = model_server.port
    allowed = f'allowed_domains = ["localhost:{port}"]'
    config_file(home, f"[sandbox.network]\n{allowed}\n")
    ask = "python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).status)' "
    results, _ = await run(
        opened,
        model_server,
        f"{ask} http://localhost:{port}/v1/models",
        f"{ask} http://localhost:{port + 1}/",
        f"{ask} http://example.org/",
    )
    assert results[0].startswith("200\n")
    assert "Connection refused" in results[1]
    assert "the sandbox refuses example.org:80: it is not in allowed_domains" in results[2]
    assert "kept it from reaching example.org:80" in results[2]


async def test_landlock_confines_a_session_and_its_limits_are_reported_once(
    opened: OpenSession, model_server: ModelServer, home: Path, workspace_repo: Path
) -> None:
    backend = find_backend(os.environ.get("PATH"), "landlock")
    if isinstance(backend, Unavailable):
        pytest.skip(backend.reason)
    config_file(
        home, '[sandbox]\nbackend = "landlock"\n[sandbox.network]\nallowed_domains = ["x.org"]\n'
    )
    commands: list[dict[str, object]] = [
        {"command": "echo a > made.txt && git add made.txt && git status --short"},
        {"command": f"echo x > {home}/outside"},
        {"command": "true", "hosts": ["x.org"]},
        {"command": f"cat < /dev/tcp/127.0.0.1/{model_server.port}"},
    ]
    model_server.add(*(answer(Call("shell", command)) for command in commands), answer("Done."))
    running, session = await opened(editor=Editor(), environ=FULL)
    await running.prompt(session, "run them")
    updates_text = json.dumps(running.updates(session))
    said = results(model_server)
    assert said[0].startswith("A  made.txt\n")
    assert "Permission denied" in said[1]
    assert "acp-agent-" in said[1].partition("can write only in")[2]
    assert "can reach no host" in said[2]
    assert "outside_sandbox" in said[2]
    assert "Permission denied" in said[3]
    assert not (home / "outside").exists()
    assert (workspace_repo / "made.txt").read_text() == "a\n"
    assert (
        updates_text.count("Commands are confined with Landlock (the configuration wants it)") == 1
    )


async def test_files_that_git_and_editors_run_stay_unchanged(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    (workspace_repo / ".vscode").mkdir()
    before = (workspace_repo / ".git" / "config").read_text()
    results, _ = await run(
        opened,
        model_server,
        "git config core.fsmonitor ./evil",
        "echo x > .git/hooks/pre-commit",
        "echo {} > .vscode/tasks.json",
        "mv .git .old",
        "echo c > c.txt && git add c.txt && git -c user.name=A -c user.email=a@b.c commit -qm c",
    )
    assert (workspace_repo / ".git" / "config").read_text() == before
    assert not (workspace_repo / ".git" / "hooks" / "pre-commit").exists()
    assert not list((workspace_repo / ".vscode").iterdir())
    assert "exit code 0" in results[4]
    log = subprocess.run(
        ["git", "log", "--format=%s", "-1"],
        cwd=workspace_repo,
        capture_output=True,
        text=True,
        check=True,
    )
    assert log.stdout == "c\n"


@pytest.mark.parametrize("button", ["allow_once", "reject_once"])
async def test_the_user_is_asked_in_full_mode_too_before_a_command_runs_outside(
    opened: OpenSession,
    model_server: ModelServer,
    home: Path,
    button: Literal["allow_once", "reject_once"],
) -> None:
    results, editor = await run(
        opened,
        model_server,
        {"command": f"echo x > {home}/outside", "outside_sandbox": True},
        editor=Editor(permission=button),
    )
    (question,) = editor.asked
    assert "outside the sandbox" in json.dumps(question["toolCall"])
    assert {option["kind"] for option in question["options"]} == {"allow_once", "reject_once"}
    assert (home / "outside").exists() == (button == "allow_once")
    assert ("exit code 0" in results[0]) == (button == "allow_once")


@pytest.fixture
async def host() -> AsyncIterator[str]:
    """A server on this machine."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"localhost:{server.sockets[0].getsockname()[1]}"
    server.close()


FETCH = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{}/\").status)'"


async def test_a_command_reaches_the_hosts_that_it_names_once_the_user_agrees_and_no_others(
    opened: OpenSession, model_server: ModelServer, host: str
) -> None:
    results, editor = await run(
        opened,
        model_server,
        {"command": FETCH.format(host), "hosts": [host]},
        {"command": FETCH.format("example.invalid"), "hosts": [host]},
        FETCH.format(host),
    )
    assert results[0].startswith("200")
    assert "example.invalid:80" in results[1]
    assert "name it in `hosts`" in results[1]
    assert "exit code 1" in results[2]
    assert "`hosts` or `outside_sandbox`" in results[2]
    assert len(editor.asked) == 2
    assert host in json.dumps(editor.asked[0]["toolCall"])


async def test_a_denied_host_is_reached_by_no_command_and_an_allowed_one_without_a_question(
    opened: OpenSession, model_server: ModelServer, home: Path, host: str
) -> None:
    network = f'allowed_domains = ["{host}"]\ndenied_domains = ["*.example.org"]\n'
    config_file(home, f"[sandbox.network]\n{network}")
    results, editor = await run(
        opened,
        model_server,
        FETCH.format(host),
        {"command": "true", "hosts": ["www.example.org"]},
    )
    assert results[0].startswith("200")
    assert "denied_domains" in results[1]
    assert editor.asked == []


async def test_commands_that_the_configuration_names_run_outside_without_a_question(
    opened: OpenSession, model_server: ModelServer, home: Path, workspace_repo: Path
) -> None:
    config_file(home, 'sandbox.excluded_commands = ["./deploy *"]\n')
    (workspace_repo / "deploy").write_text(f"#!/bin/sh\necho x > {home}/$1\n")
    (workspace_repo / "deploy").chmod(0o755)
    results, editor = await run(opened, model_server, "./deploy one", "cd . ; ./deploy two")
    assert (home / "one").exists()
    assert not (home / "two").exists()
    assert "Read-only" in results[1]
    assert editor.asked == []


@pytest.mark.parametrize("agrees", [True, False])
async def test_a_command_that_only_sets_where_git_pushes_to_asks_at_once(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, agrees: bool
) -> None:
    async def decide(params: dict[str, Any]) -> dict[str, Any]:
        kinds = {one["kind"]: one["optionId"] for one in params["options"]}
        return {
            "outcome": "selected",
            "optionId": kinds["allow_once" if agrees else "reject_once"],
        }

    editor = Editor(permission=decide)
    commands = ["git remote add up https://example.org/x.git", "git remote -v", "git status"]
    model_server.add(*(answer(Call("shell", {"command": one})) for one in commands), answer("ok"))
    running, session = await opened(editor=editor, environ=FULL)
    await running.prompt(session, "go")
    assert len(editor.asked) == 1
    assert "outside the sandbox" in json.dumps(editor.asked[0])
    settings = (workspace_repo / ".git/config").read_text()
    assert ('[remote "up"]' in settings) is agrees
    assert ("https://example.org/x.git" in results(model_server)[1]) is agrees


async def test_a_command_that_needs_no_permission_because_it_only_reads_can_change_nothing(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(Call("shell", {"command": "ls"})), answer("Done."))
    running, session = await opened(environ=FULL | {"ACP_AGENT_MODE": "ask"})
    await running.prompt(session, "look")
    assert "exit code 0" in results(model_server)[0]
    del workspace_repo


async def test_commands_that_can_be_undone_need_no_permission_once_the_user_chose_that(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    commands = ["touch a.txt", "touch b.txt", "rm -rf .git/refs", "touch ~/outside"]
    model_server.add(
        *(answer(Call("shell", {"command": command})) for command in commands), answer("ok")
    )
    pressed: list[str] = []

    async def press(params: dict[str, Any]) -> dict[str, Any]:
        ids = [command["optionId"] for command in params["options"]]
        pressed.append("allow_confined" if "allow_confined" in ids else "reject_once")
        return {"outcome": "selected", "optionId": pressed[-1]}

    running, session = await opened(
        editor=Editor(permission=press), environ=FULL | {"ACP_AGENT_MODE": "ask"}
    )
    await running.prompt(session, "go")
    assert pressed == ["allow_confined", "reject_once", "reject_once"]
    assert (workspace_repo / "a.txt").exists()
    assert (workspace_repo / "b.txt").exists()
    assert (workspace_repo / ".git" / "refs").exists()


async def test_ending_a_command_gives_it_a_moment_and_leaves_nothing(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    results, _ = await run(
        opened,
        model_server,
        {
            "command": "trap 'echo bye >end.txt; exit 3' TERM; setsid sleep 60 & "
            "while :; do sleep 0.05; done",
            "timeout": 0.5,
        },
    )
    assert "timed out" in results[0]
    assert (workspace_repo / "end.txt").read_text() == "bye\n"
