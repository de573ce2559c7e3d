"""What a client is left with when another one opens the session in which its prompt is open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.server.remote.conftest import StartListening
from tests.server.remote.remote_agent import DEMO
from tests.server.remote.remote_clients import RemoteClient, websocket_client
from tests.support.editor import Editor
from tests.support.framing import Json
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2

ASKS = "session/request_permission"


@asynccontextmanager
async def taken_over(
    listening: StartListening, project: Path, first: int, second: int
) -> AsyncIterator[tuple[RemoteClient, RemoteClient, str, int]]:
    """A client whose prompt waits for a permission, and the one that has its session since."""
    agent = listening(*DEMO)
    editors = {1: Editor, 2: EditorV2}
    async with (
        websocket_client(agent, editor=editors[first](permission="never")) as owner,
        websocket_client(agent, editor=editors[second](permission="never"), joins=True) as other,
    ):
        prompter = owner if first == 1 else V2Client(owner)
        await prompter.initialize()
        session = await prompter.new_session(project)
        prompt = prompter.post_prompt(session, "$ touch made.txt")
        question = await owner.expect(lambda m: m.get("method") == ASKS)
        params: Json = {"sessionId": session, "cwd": str(project)}
        if second == 1:
            await other.initialize()
            await other.request("session/load", params | {"mcpServers": []}, checked=True)
        else:
            await V2Client(other).initialize()
            start = {"replayFrom": {"type": "start"}}
            await other.request("session/resume", params | start, checked=True)
        await other.expect(lambda m: m.get("method") == ASKS)
        withdrawn = await owner.expect(lambda m: m.get("method") == "$/cancel_request")
        assert withdrawn["params"]["requestId"] == question["id"]
        yield owner, other, session, prompt


@pytest.mark.covers("P7", "T5")
@pytest.mark.parametrize("how", ["session/cancel", "$/cancel_request"])
@pytest.mark.parametrize("second", [1, 2])
async def test_the_client_that_prompted_can_cancel_though_another_one_has_the_session(
    listening: StartListening, project: Path, second: int, how: str
) -> None:
    async with taken_over(listening, project, 1, second) as (owner, other, session, prompt):
        owner.notify(how, {"sessionId": session} | {"requestId": prompt})
        assert (await owner.result(prompt))["stopReason"] == "cancelled"
        await other.expect(lambda m: m.get("method") == "$/cancel_request")
        assert not (project / "made.txt").exists()


@pytest.mark.covers("P7")
@pytest.mark.parametrize("second", [1, 2])
async def test_a_client_of_version_2_is_shown_that_the_work_went_elsewhere_and_can_cancel_it(
    listening: StartListening, project: Path, second: int
) -> None:
    async with taken_over(listening, project, 2, second) as (owner, other, session, _):
        last = owner.updates(session)[-1]
        assert last["sessionUpdate"] == "state_update"
        assert "Another client opened this session" in last["error"]["message"]
        owner.notify("session/cancel", {"sessionId": session})
        await other.expect(lambda m: m.get("method") == "$/cancel_request")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_prompt_that_waits_in_the_queue_ends_when_another_client_opens_the_session(
    listening: StartListening, project: Path, version: int
) -> None:
    agent = listening(*DEMO)
    editor = Editor(permission="never") if version == 1 else EditorV2(permission="never")
    async with (
        websocket_client(agent, editor=editor) as owner,
        websocket_client(agent, editor=Editor(permission="never"), joins=True) as second,
    ):
        prompter = owner if version == 1 else V2Client(owner)
        await prompter.initialize()
        session = await prompter.new_session(project)
        prompter.post_prompt(session, "$ touch made.txt")
        await owner.expect(lambda m: m.get("method") == ASKS)
        waiting = [
            owner.post(
                "session/prompt",
                {
                    "sessionId": session,
                    "prompt": [{"type": "text", "text": "later"}],
                    "_meta": {"acp-agent": {"whileRunning": "queue"}},
                },
            )
            for _ in range(3)
        ]
        await second.initialize()
        params = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        await second.request("session/load", params, checked=True)
        for prompt in waiting:
            error = (await owner.answer(prompt))["error"]
            assert error["code"] == -32002
            assert "another client opened it" in error["message"]
