"""Agents that work for agents, as clients of all kinds see them."""

from __future__ import annotations

from pathlib import Path

from tests.server.children_client import TASK, TITLE, TOUCH, ClientOf, Kind, asked_title, every_kind
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
    client_of: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    agents = workspace_repo / ".agents" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    (agents / "explore.md").write_text(AGENT.format(name="explore", more="subagents: scout"))
    (agents / "scout.md").write_text(AGENT.format(name="scout", more=""))
    model_server.add(answer(TASK), answer(INNER), answer(TOUCH), answer("Made."))
    model_server.add(answer("It made it."), answer("Done."))
    client = await client_of(kind)
    assert await client.say() == "end_turn"
    (asked,) = client.asked
    assert "touch made.txt" in asked_title(asked)
    assert (workspace_repo / "made.txt").exists()
    live = client.told()
    assert "It made it." in str(client.cards(client.session)[TITLE])
    if client.knows_children:
        names = {
            one["sessionId"]: one["title"]
            for one in client.wire.updates(client.session, "subagent_update")
            if one.get("title")
        }
        outer, inner = names
        assert list(names.values()) == [TITLE, "scout: look"]
        assert set(live) == {client.session, outer, inner}
        assert asked["sessionId"] == inner
        assert "Made." in str(live[inner])
        card = client.cards(outer)["scout: look"]
        assert card["status"] == "completed"
        assert "touch made.txt" in str(card["content"])
    else:
        assert set(live) == {client.session}
    await client.wire.stop()
    other = await client_of(kind, new=False)
    await other.reopen(client.session)
    assert set(other.told()) == set(live)
