"""Agents that are other programs: what they are given, may do, show, and how they end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from acp_agent.events import (
    AgentText,
    ChildWorked,
    PlanChanged,
    SubagentChanged,
    ToolCalled,
    TurnEnded,
)
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, EventT
from tests.support.orphans import child_processes
from tests.support.scripted_agent import scripted_agent

TASK = Call("task", {"agent": "other", "title": "Fix it", "task": "Fix the greeting."})


def configured(command: str | Sequence[str], more: str = "") -> str:
    """The configuration of an agent that is another program."""
    program, *arguments = shlex.split(command) if isinstance(command, str) else command
    return f'[agents.other]\ncommand = "{program}"\nargs = {json.dumps(arguments)}\n{more}\n'


def did(desk: Desk, kind: type[EventT]) -> list[EventT]:
    """What child sessions did, of one type."""
    return [one.did for one in desk.editor.of(ChildWorked) if isinstance(one.did, kind)]


async def given(tmp_path: Path, server: ModelServer, script: str, more: str = "") -> Desk:
    """A session whose model gives its task to an agent that follows a script."""
    command = scripted_agent(tmp_path, script)
    desk = await Desk.open(tmp_path, server, config=configured(command, more))
    server.add(answer(TASK), answer("Done."))
    return desk


async def test_another_agent_does_a_task_and_its_last_message_is_the_result(
    tmp_path: Path, model_server: ModelServer
) -> None:
    desk = await given(
        tmp_path,
        model_server,
        """
        def turn(say):
            assert say.prompt[0]["text"] == "Fix the greeting."
            say.speak("Let me ")
            say.speak("see.")
            say.update({"sessionUpdate": "plan", "entries": [
                {"content": "Look", "priority": "high", "status": "pending"}]})
            say.update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Look at it",
                        "kind": "read", "status": "in_progress"})
            say.update({"sessionUpdate": "tool_call_update", "toolCallId": "1",
                        "status": "completed", "content": [
                        {"type": "content", "content": say.text("Hello")}]})
            say.speak("It is fixed.")
            return "end_turn"
        """,
    )
    assert await desk.say("Go") == "end_turn"
    assert desk.results() == ["It is fixed."]
    assert [one.text for one in did(desk, AgentText)][-1] == "It is fixed."
    (called,) = did(desk, ToolCalled)
    assert (called.title, called.kind) == ("Look at it", "read")
    assert did(desk, PlanChanged)
    assert [one.stop_reason for one in did(desk, TurnEnded)] == ["end_turn"]
    assert desk.editor.of(SubagentChanged)[-1].state == "idle"
    assert "other: " in str(model_server.requests[0].json["tools"])
    await desk.aclose()
    assert child_processes() == []
