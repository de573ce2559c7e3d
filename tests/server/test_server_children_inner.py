"""Agents that work for agents, as clients of all kinds see them."""

from __future__ import annotations

from pathlib import Path

from tests.server.children_client import (
    TASK,
    TITLE,
    TOUCH,
    ClientOf,
    Kind,
    every_kind,
    question_title,
)
from tests.support.model_server import Call, ModelServer, answer

INNER = Call("task", {"agent": "scout", "title": "look", "task": "Where is it?"})
AGENT = """---
name: {name}
description: Finds its way.
{more}
---
You look around.
"""


@every_kind
async def test_each_is_a_session_of_its_own_and_its_questions_reach_the_user(
    make_client: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    agents = workspace_repo / ".agents" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    (agents / "explore.md").write_text(AGENT.format(name="explore", more="subagents: scout"))
    (agents / "scout.md").write_text(AGENT.format(name="scout", more=""))
    model_server.add(answer(TASK), answer(INNER), answer(TOUCH), answer("Made."))
    model_server.add(answer("It made it."), answer("Done."))
    client = await make_client(kind)
    assert await client.say() == "end_turn"
    (question,) = client.asked
    assert "touch made.txt" in question_title(question)
    assert (workspace_repo / "made.txt").exists()
    live = client.told()
    assert "It made it." in str(client.cards(client.session)[TITLE])
    if client.knows_children:
        names = {
            update["sessionId"]: update["title"]
            for update in client.wire.updates(client.session, "subagent_update")
            if update.get("title")
        }
        outer, inner = names
        assert list(names.values()) == [TITLE, "scout: look"]
        assert set(live) == {client.session, outer, inner}
        assert question["sessionId"] == inner
        assert "Made." in str(live[inner])
        card = client.cards(outer)["scout: look"]
        assert card["status"] == "completed"
        assert "touch made.txt" in str(card["content"])
    else:
        assert set(live) == {client.session}
    await client.wire.stop()
    second_client = await make_client(kind, new=False)
    await second_client.reopen(client.session)
    assert set(second_client.told()) == set(live)
