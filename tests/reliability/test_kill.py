"""After kill -9 at any instant, everything that reached the editor is in the replay."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent.context import INTERRUPTED_NOTE
from acp_agent.server.notices import CUT_CALL, INTERRUPTED_TITLE
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor
from tests.support.model_server import Answer, Call, ModelServer, Pause, Stall, Thought, answer
from tests.support.replays import conversation, without_user

MODEL = ("--model", "openai/gpt-5")
WORDS = [f"word{number} " for number in range(400)]


def slow(*steps: Any) -> Answer:
    """An answer in pieces a millisecond apart."""
    paced: list[Any] = []
    for step in steps:
        paced += [step, Pause(0.001)]
    return answer(*paced)


async def replayed(
    agent: StartAgent, server: ModelServer, session: str, cwd: Path
) -> tuple[AgentProcess, list[dict[str, Any]]]:
    running = await agent(*MODEL, environ=server.environ("openai"))
    await running.initialize()
    await running.request("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
    return running, conversation(running.updates(session))


def assert_holds(shown: list[dict[str, Any]], replay: list[dict[str, Any]]) -> None:
    """Everything shown is in the replay, in order; the last message may go on further there."""
    told = without_user(replay)
    *whole, last = shown
    assert told[: len(whole)] == whole
    counterpart = told[len(whole)]
    if "content" in last and isinstance(last["content"], dict):
        assert counterpart["content"]["text"].startswith(last["content"]["text"])
        last = last | {"content": counterpart["content"]}
    assert counterpart == last


@pytest.mark.covers("S4")
@pytest.mark.parametrize("seed", range(4))
async def test_updates_shown_before_a_kill_are_replayed_and_the_session_continues(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, seed: int
) -> None:
    model_server.add(
        slow(Thought("hm "), Thought("well "), *WORDS[:40], Call("read", {"path": "README.md"})),
        slow(*WORDS, Call("shell", {"command": "for i in 1 2 3 4 5 6 7 8; do echo $i; done"})),
        slow(*WORDS),
    )
    first = await agent(
        *MODEL, editor=Editor(permission="allow_once"), environ=model_server.environ("openai")
    )
    await first.initialize()
    session = await first.new_session(workspace_repo)
    first.post_prompt(session, "work")
    updates = random.Random(seed).randrange(1, 700)
    await first.expect(lambda _: len(first.updates(session)) >= updates or _answered(first))
    await first.kill()
    shown = conversation(first.updates(session))
    open_turn = not _answered(first)

    second, replay = await replayed(agent, model_server, session, workspace_repo)
    assert_holds(shown, replay)
    notes = [text for text in map(_text, replay) if INTERRUPTED_TITLE in text]
    assert len(notes) == (1 if open_turn else 0)
    ended = {
        update["toolCallId"] for update in replay if update.get("status") in {"completed", "failed"}
    }
    called = {update["toolCallId"] for update in replay if update["sessionUpdate"] == "tool_call"}
    assert ended == called

    model_server.otherwise = answer("Going on.")
    assert (await second.prompt(session, "go on"))["stopReason"] == "end_turn"
    if open_turn:
        assert INTERRUPTED_NOTE in str(model_server.requests[-1].json["messages"][-1])


def _answered(agent: AgentProcess) -> bool:
    return any("result" in m and "stopReason" in (m["result"] or {}) for m in agent.messages)


def _text(update: dict[str, Any]) -> str:
    content = update.get("content")
    return str(content.get("text", "")) if isinstance(content, dict) else ""


async def test_a_kill_while_a_permission_is_open_leaves_the_call_failed_and_the_file_unchanged(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(
        answer(Call("read", {"path": "greeting.py"})),
        answer(Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Bye"})),
    )
    before = (workspace_repo / "greeting.py").read_bytes()
    first = await agent(
        *MODEL, editor=Editor(permission="never"), environ=model_server.environ("openai")
    )
    await first.initialize()
    session = await first.new_session(workspace_repo)
    first.post_prompt(session, "edit it")
    await first.expect(lambda message: message.get("method") == "session/request_permission")
    await first.kill()

    _, replay = await replayed(agent, model_server, session, workspace_repo)
    edit = [update for update in replay if update.get("kind") == "edit"]
    last = [update for update in replay if update.get("toolCallId") == edit[0]["toolCallId"]][-1]
    assert last["status"] == "failed"
    diff, reason = last["content"]  # what was asked about is still to be seen
    assert (diff["type"], "Bye" in diff["newText"]) == ("diff", True)
    assert reason["content"]["text"] == CUT_CALL
    assert (workspace_repo / "greeting.py").read_bytes() == before


@pytest.mark.covers("S4", "P5")
@pytest.mark.parametrize("live_terminals", [False, True], ids=["plain", "Zed"])
async def test_output_of_a_command_before_a_kill_is_still_shown(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, live_terminals: bool
) -> None:
    client = {"clientCapabilities": {"_meta": {"terminal_output": live_terminals}}}
    model_server.add(answer(Call("shell", {"command": "echo begun; sleep 300"})))
    first = await agent(
        *MODEL, editor=Editor(permission="allow_once"), environ=model_server.environ("openai")
    )
    await first.request("initialize", {"protocolVersion": 1} | client)
    session = await first.new_session(workspace_repo)
    first.post_prompt(session, "run it")
    await first.expect_update(session, "tool_call_update", lambda u: "begun\n" in _printed(u))
    await first.kill()

    second = await agent(*MODEL, environ=model_server.environ("openai"))
    await second.request("initialize", {"protocolVersion": 1} | client)
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await second.request("session/load", params)
    last = second.updates(session, "tool_call_update")[-1]
    assert last["status"] == "failed"
    *output, reason = last["content"]
    assert reason["content"]["text"] == CUT_CALL
    if live_terminals:
        assert output == [{"type": "terminal", "terminalId": last["toolCallId"]}]
        assert last["_meta"]["terminal_exit"]["terminal_id"] == last["toolCallId"]
    else:
        assert [part["content"]["text"] for part in output] == ["```console\nbegun\n```"]


def _printed(update: dict[str, Any]) -> str:
    """What an update of a call shows of its command's output."""
    live = str(update.get("_meta", {}).get("terminal_output", {}).get("data", ""))
    parts = (update.get("content") or ()) if update.get("status") is None else ()
    return live + "".join(part["content"]["text"] for part in parts)


async def test_a_killed_agent_leaves_the_session_free_for_the_next_at_once(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    stall = Stall()
    model_server.add(answer("begun", stall))
    first = await agent(*MODEL, environ=model_server.environ("openai"))
    await first.initialize()
    session = await first.new_session(workspace_repo)
    first.post_prompt(session, "hi")
    await first.expect_update(session, "agent_message_chunk")
    await first.kill()
    async with asyncio.timeout(60):
        _, replay = await replayed(agent, model_server, session, workspace_repo)
    assert "begun" in [_text(update) for update in replay]
