"""A compaction in a journal shows, each client what it advertised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.paths import find_paths
from acp_agent.content import TextBlock
from acp_agent.events import (
    AnyEvent,
    CompactionChanged,
    CompactionSummaryText,
    SessionStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import new_message_id, new_session_id, new_turn_id
from acp_agent.session.store.store import Store
from tests.support.agent_process import StartAgent, environment


async def journal_with(home: Path, cwd: Path, *compaction: AnyEvent) -> str:
    """A session whose turn holds these events, in the store of the agents in `home`."""
    store = await Store.open(find_paths(environment(home)).sessions_file)
    session, turn = new_session_id(), new_turn_id()
    words = UserMessage(message=new_message_id(), content=(TextBlock(text="hi"),))
    await store.create(session, [SessionStarted(cwd=str(cwd))])
    await store.append(
        session,
        [TurnStarted(turn=turn), words, *compaction, TurnEnded(turn=turn, stop_reason="end_turn")],
    )
    await store.close()
    return session


COMPLETED = (
    CompactionChanged(compaction="c1", status="in_progress"),
    CompactionSummaryText(compaction="c1", text="You asked "),
    CompactionSummaryText(compaction="c1", text="for x."),
    CompactionChanged(compaction="c1", status="completed", summary="You asked for x."),
)
FAILED = (
    CompactionChanged(compaction="c2", status="in_progress"),
    CompactionChanged(compaction="c2", status="failed", error="no connection"),
)


async def compaction_updates(
    agent: StartAgent, session: str, cwd: Path, capabilities: dict[str, Any]
) -> list[dict[str, Any]]:
    running = await agent("--model", "demo/demo")
    await running.initialize(clientCapabilities=capabilities)
    await running.request("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
    ignored_kinds = {"user_message_chunk", "available_commands_update"}
    return [
        update
        for update in running.updates(session)
        if update["sessionUpdate"] not in ignored_kinds
    ]


async def test_a_client_that_advertises_compactions_gets_their_states_and_summaries(
    agent: StartAgent, home: Path, tmp_path: Path
) -> None:
    session = await journal_with(home, tmp_path, *COMPLETED, *FAILED)
    summary = {"type": "text", "text": "You asked for x."}
    assert await compaction_updates(agent, session, tmp_path, {"session": {"compaction": {}}}) == [
        {"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "in_progress"},
        {
            "sessionUpdate": "compaction_summary_chunk",
            "compactionId": "c1",
            "content": summary,  # adjacent pieces are stored as one
        },
        {
            "sessionUpdate": "compaction_update",
            "compactionId": "c1",
            "status": "completed",
            "summary": [summary],
        },
        {"sessionUpdate": "compaction_update", "compactionId": "c2", "status": "in_progress"},
        {
            "sessionUpdate": "compaction_update",
            "compactionId": "c2",
            "status": "failed",
            "error": "no connection",
        },
    ]


@pytest.mark.covers("I6")
async def test_any_other_client_gets_a_line(agent: StartAgent, home: Path, tmp_path: Path) -> None:
    session = await journal_with(home, tmp_path, *COMPLETED, *FAILED)
    updates = await compaction_updates(agent, session, tmp_path, {})
    assert {update["sessionUpdate"] for update in updates} == {"agent_thought_chunk"}
    text = "".join(update["content"]["text"] for update in updates)
    summed_up, failed = text.index("were summarised"), text.index("could not be summarised")
    assert summed_up < failed
    assert "could not be summarised for the model. no connection" in text


async def test_a_client_with_notices_gets_a_notice(
    agent: StartAgent, home: Path, tmp_path: Path
) -> None:
    session = await journal_with(home, tmp_path, *COMPLETED)
    (notice,) = await compaction_updates(agent, session, tmp_path, {"session": {"notices": {}}})
    assert (notice["sessionUpdate"], notice["severity"]) == ("notice", "info")
