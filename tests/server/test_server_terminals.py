"""Commands in the editor's own terminals, for users who opted in: none is left running there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.server.children_client import AGENT, TASK
from tests.server.server_session import OpenSession
from tests.support.agent_process import config_file
from tests.support.editor import Editor, Offer
from tests.support.model_server import Call, ModelServer, answer
from tests.support.waiting import until

RUN = Call("shell", {"command": "sleep 300"})


class Unhurried(Editor):
    """An editor that takes its time to make a terminal, or to take one back."""

    def __init__(self, *offers: Offer) -> None:
        super().__init__(offers=frozenset(("terminal", *offers)))
        self.makes, self.takes_back = asyncio.Event(), asyncio.Event()
        self.asked_to, self.made = asyncio.Event(), asyncio.Event()

    async def _create_terminal(self, **params: Any) -> Any:
        self.asked_to.set()
        await self.makes.wait()
        try:
            return await super()._create_terminal(**params)
        finally:
            self.made.set()

    async def _release_terminal(self, **params: Any) -> Any:
        await self.takes_back.wait()
        return await super()._release_terminal(**params)


@pytest.fixture(autouse=True)
def opted_in(home: Path) -> None:
    config_file(home, "[editor]\nterminals = true\n")


@pytest.mark.covers("P5", "P7")
async def test_a_terminal_created_after_its_turn_was_cancelled_is_released(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(RUN))
    editor = Unhurried()
    editor.takes_back.set()
    running, session = await opened(editor=editor)
    prompt = running.post_prompt(session, "run")
    await editor.asked_to.wait()
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    editor.makes.set()
    await editor.made.wait()
    await until(lambda: not editor.terminals)
    assert model_server.requests[1:] == []


@pytest.mark.covers("P5", "P7")
async def test_a_cancelled_turn_does_not_wait_for_the_editor_to_take_its_terminal_back(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(RUN))
    editor = Unhurried()
    editor.makes.set()
    running, session = await opened(editor=editor)
    prompt = running.post_prompt(session, "run")
    await running.expect(lambda message: message.get("method") == "terminal/wait_for_exit")
    running.cancel(session)
    async with asyncio.timeout(60):
        assert (await running.result(prompt))["stopReason"] == "cancelled"
    last = [message for message in running.messages if "id" in message][-2:]
    assert [one.get("method") for one in last] == ["terminal/release", None]
    editor.takes_back.set()


@pytest.mark.covers("P5", "P13")
@pytest.mark.parametrize("knows_children", [False, True])
async def test_a_childs_terminal_is_its_own_where_the_client_knows_the_child(
    opened: OpenSession,
    model_server: ModelServer,
    workspace_repo: Path,
    knows_children: bool,
) -> None:
    agents = workspace_repo / ".agents" / "agents"
    agents.mkdir(parents=True)
    (agents / "explore.md").write_text(AGENT)
    echo = Call("shell", {"command": "echo there"})
    model_server.add(answer(TASK), answer(echo), answer("There."), answer("It is there."))
    offers: tuple[Offer, ...] = ("subagents",) if knows_children else ()
    editor = Unhurried(*offers)
    editor.makes.set()
    editor.takes_back.set()
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "Where?"))["stopReason"] == "end_turn"
    (command,) = editor.commands
    if not knows_children:
        assert command["sessionId"] == session
        return
    (child,) = {one["sessionId"] for one in running.updates(session, "subagent_update")}
    assert command["sessionId"] == child
    (shown,) = (
        part["terminalId"]
        for update in running.updates(child, "tool_call_update")
        for part in update.get("content") or ()
        if part["type"] == "terminal"
    )
    assert shown == "terminal-1"
    asks = [one for one in running.messages if str(one.get("method")).startswith("terminal/")]
    assert {one["params"]["sessionId"] for one in asks} == {child}
