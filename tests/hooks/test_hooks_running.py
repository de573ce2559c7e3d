"""A hook's program or address is asked, within its bounds, and its answer is understood."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.config.types import Config
from acp_agent.content import JsonObject
from acp_agent.hooks.running import HookRunner
from acp_agent.hooks.types import Hook, HookAnswer
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox, Unavailable, find_backend
from acp_agent.session.hook_session import hook_runner
from tests.support.open_session import is_alive
from tests.support.waiting import until
from tests.support.web_site import Server, response

CALL: JsonObject = {"tool_name": "Bash", "tool_input": {"command": "ls"}}


def runner(cwd: Path, sandbox: Sandbox | None = None) -> HookRunner:
    environ = {"PATH": os.environ["PATH"], "HOME": str(cwd), "TOKEN": "t0ken", "NAME": "value"}
    return hook_runner(cwd, Config(), environ, sandbox)


async def asked(cwd: Path, command: str, **more: object) -> HookAnswer:
    hook = Hook(event="PreToolUse", command=command, **more)  # type: ignore[arg-type]
    return await runner(cwd).run(hook, CALL)


async def test_processes_that_a_hook_leaves_running_are_killed(tmp_path: Path) -> None:
    answer = await asked(tmp_path, "sleep 60 & echo $! > pid; echo no >&2; exit 2", timeout=30)
    assert (answer.permission, answer.reason) == ("deny", "no")
    left = int((tmp_path / "pid").read_text())
    await until(lambda: not is_alive(left))


@pytest.mark.parametrize("steps", range(1, 8))
async def test_a_hook_cancelled_while_its_program_starts_ends_at_once(
    tmp_path: Path, steps: int
) -> None:
    hook = asyncio.create_task(asked(tmp_path, "sleep 600", timeout=600))
    for _ in range(steps):
        await asyncio.sleep(0)
    hook.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await hook


async def test_a_program_with_arguments_is_started_without_a_shell(tmp_path: Path) -> None:
    line = 'import sys; sys.exit(sys.argv[1:] != ["value", ";", sys.argv[3]] or 2)'
    folder = "${CLAUDE_PROJECT_DIR}/x y"
    answer = await asked(tmp_path, "python3", args=("-c", line, "$NAME", ";", folder))
    assert answer.blocked


async def test_a_program_that_reads_nothing_still_answers(tmp_path: Path) -> None:
    hook = Hook(event="PreToolUse", command="exec 0<&-; echo no >&2; exit 2")
    answer = await runner(tmp_path).run(hook, CALL | {"much": "x" * 3_000_000})
    assert answer.reason == "no"


async def test_an_address_is_sent_the_event_and_its_answer_counts(tmp_path: Path) -> None:
    said = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}
    async with Server() as server:
        server.pages = {
            "/hook": response(json.dumps(said).encode(), "application/json"),
            "/moved": response(b"", status="302 Found", more="Location: /hook\r\n"),
            "/broken": response(b"{", "application/json"),
        }
        found = {}
        for path in (*server.pages, "/none"):
            url = f"http://127.0.0.1:{server.port}{path}"
            hook = Hook(event="PreToolUse", url=url, headers={"X-Token": "$TOKEN"})
            found[path] = await runner(tmp_path).run(hook, CALL)
        assert (found["/hook"].permission, found["/hook"].reason) == ("deny", "no")
        assert "status 302" in found["/moved"].failure
        assert "cannot be read" in found["/broken"].failure
        assert "status 404" in found["/none"].failure
    gone = Hook(event="PreToolUse", url=f"http://127.0.0.1:{server.port}/hook", timeout=10)
    assert (await runner(tmp_path).run(gone, CALL)).failure


ANSWERS = {
    '{"decision": "approve"}': ("allow", False),
    '{"decision": "block", "reason": "no"}': ("deny", True),
    '{"hookSpecificOutput": {"permissionDecision": "defer"}}': ("defer", False),
    '{"hookSpecificOutput": {"permissionDecision": "maybe"}}': None,
    '{"decision": 1}': None,
    '{"unknown": [1], "hookSpecificOutput": {"unknown": {}}}': (None, False),
    "some text": (None, False),
    "": (None, False),
}


@pytest.mark.parametrize("text", ANSWERS)
async def test_output_of_hooks_is_read_according_to_the_contract(tmp_path: Path, text: str) -> None:
    (tmp_path / "answer").write_text(text)
    answer = await asked(tmp_path, "cat answer")
    expected = ANSWERS[text]
    if expected is None:
        assert "cannot be read" in answer.failure
        assert not answer.blocked
    else:
        assert (answer.permission, answer.blocked) == expected


def sandbox_of(project: Path) -> Sandbox:
    """The sandbox of a project, in which the files of this program beside it are hidden."""
    found = find_backend(os.environ.get("PATH"))
    if isinstance(found, Unavailable):
        pytest.skip(f"no sandbox: {found.reason}")
    policy = SandboxPolicy(
        roots=(str(project),),
        home=str(project.parent),
        program_files=(f"{project.parent}/agent",),
        readable=(),
        temporary=f"{project.parent}/temporary",
        search_path=os.environ["PATH"],
        config=SandboxConfig(),
    )
    return Sandbox(found, policy)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path), "project")
    folder.mkdir()
    return folder


async def test_a_hook_runs_confined(project: Path) -> None:
    hook = Hook(event="PreToolUse", command="touch inside; touch ../outside || exit 2")
    for confined in (True, False):
        chosen = Hook(event="PreToolUse", command=hook.command, sandbox=confined)
        answer = await runner(project, sandbox_of(project)).run(chosen, CALL)
        assert answer.blocked is confined
        assert (project / "inside").exists()
        assert (project.parent / "outside").exists() is not confined


async def test_a_hook_of_a_plugin_stores_data_only_in_the_plugins_folder(
    project: Path,
) -> None:
    others = project.parent / "agent" / "other"
    others.mkdir(parents=True)
    data = project.parent / "agent" / "plugin"
    command = (
        f"echo kept > $PLUGIN_DATA/state; touch {others}/file && exit 2; cat $PLUGIN_DATA/state"
    )
    hook = Hook(event="PreToolUse", command=command, variables={"PLUGIN_DATA": str(data)})
    answer = await runner(project, sandbox_of(project)).run(hook, CALL)
    assert not answer.blocked
    assert (data / "state").read_text() == "kept\n"
    assert not (others / "file").exists()
