"""An agent made with the official TypeScript SDK works for a session of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.agent.resources import PermissionRequest
from acp_agent.events import AgentText, ChildWorked, SubagentChanged, ToolEnded
from acp_agent.permissions.access import Ask
from tests.support.model_server import Call, ModelServer, answer
from tests.support.node import node
from tests.support.npm_packages import FOLDER
from tests.support.open_session import Desk, open_desk


def task(words: str) -> Call:
    return Call("task", {"agent": "other", "title": "Change it", "task": words})


@pytest.fixture
async def desk(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    """A session that has the agent, and a project with a file."""
    arguments = json.dumps([str(FOLDER / "sdk_agent.mjs")])
    config = f'[agents.other]\ncommand = "{node()}"\nargs = {arguments}\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "greeting.py").write_text('print("Hello")\n')
        yield desk


@pytest.mark.parametrize(
    ("button", "word", "result"),
    [("allow_once", "Good day", "It is changed."), ("reject_once", "Hello", "It stays.")],
)
async def test_it_reads_asks_and_changes_a_file(
    desk: Desk, model_server: ModelServer, button: str, word: str, result: str
) -> None:
    model_server.add(answer(task("Greet otherwise.")), answer("Done."))

    async def decide(asking: PermissionRequest, ask: Ask) -> str | None:
        return button if "greeting" in asking.title else "allow_once"

    desk.editor.decide = decide
    assert await desk.say("Go") == "end_turn"
    assert word in (desk.folder / "greeting.py").read_text()
    assert desk.results() == [result]
    start, change = desk.editor.asked
    assert (start.title, change.title) == ("other: Change it", "other: Change the greeting")


async def test_it_is_cancelled_with_the_turn(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(answer(task("Please wait.")))
    turn = await desk.begin("Go")
    async with asyncio.timeout(60):
        while not any(isinstance(one.did, AgentText) for one in desk.editor.of(ChildWorked)):
            await desk.editor.until(ChildWorked, len(desk.editor.of(ChildWorked)) + 1)
    assert await desk.cancel(turn) == "cancelled"
    assert desk.editor.of(SubagentChanged)[-1].stop_reason == "cancelled"
    assert desk.editor.of(ToolEnded)[-1].cancelled
