"""What session/load shows is what was shown live."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent_process import StartAgent
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import Call, ModelServer, Thought, answer
from tests.support.replays import conversation, without_user

MODEL = ("--model", "openai/gpt-5")


def script_a_whole_turn(server: ModelServer) -> None:
    """A plan, thoughts, reads side by side, an edit, a command that fails, a wrong call, text."""
    steps = [
        {"content": "Look", "status": "in_progress", "priority": "high"},
        {"content": "Change", "status": "pending", "priority": "medium"},
    ]
    server.add(
        answer(
            Thought("First "), Thought("a plan."), "I pl", "an. ", Call("todo", {"todos": steps})
        ),
        answer(
            "Reading.",
            Call("read", {"path": "greeting.py"}, pieces=4),
            Call("grep", {"pattern": "greet"}),
            Call("read", {"path": "missing.py"}),
        ),
        answer(Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Good day"})),
        answer(Call("shell", {"command": "echo out; echo err >&2; exit 3"})),
        answer(Call("shell", {"cmd": "typo"}), Call("no_such_tool", {})),
        answer("All ", "done ✓ 好."),
    )


@pytest.mark.covers("S4", "P2", "P3")
@pytest.mark.parametrize("offers", [frozenset(), EVERYTHING - {"terminal"}])
async def test_a_replay_equals_the_live_updates_field_by_field(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, offers: frozenset[str]
) -> None:
    script_a_whole_turn(model_server)
    first = await agent(
        *MODEL,
        editor=Editor(offers=offers, permission="allow_once"),  # type: ignore[arg-type]  # a set of offers
        environ=model_server.environ("openai"),
    )
    await first.initialize()
    session = await first.new_session(workspace_repo)
    assert (await first.prompt(session, "work on it"))["stopReason"] == "end_turn"
    live = conversation(first.updates(session))
    await first.stop()

    second = await agent(
        *MODEL,
        editor=Editor(offers=offers),  # type: ignore[arg-type]  # a set of offers
        environ=model_server.environ("openai"),
    )
    await second.initialize()
    await second.request(
        "session/load", {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    )
    replayed = conversation(second.updates(session))
    assert without_user(replayed) == live
    user = [update for update in replayed if update["sessionUpdate"] == "user_message_chunk"]
    assert [update["content"]["text"] for update in user] == ["work on it"]
    assert replayed[0] == user[0]
    kinds = {update["sessionUpdate"] for update in live}
    assert kinds >= {
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "session_info_update",
    }


@pytest.mark.covers("S4")
async def test_two_replays_are_equal_and_the_session_continues(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("One."), answer("Two."))
    running = await agent(*MODEL, environ=model_server.environ("openai"))
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "first")
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}

    async def replay() -> list[dict[str, object]]:
        before = len(running.updates(session))
        await running.request("session/load", load)
        return conversation(running.updates(session)[before:])

    assert await replay() == await replay()
    await running.prompt(session, "second")
    sent = model_server.requests[-1].json["messages"]
    texts = [message["content"] for message in sent if message["role"] == "assistant"]
    assert "One." in str(texts)
