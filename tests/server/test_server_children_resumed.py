"""An agent that goes on with its conversation, as clients of all kinds see it."""

from __future__ import annotations

from tests.server.children_client import TASK, ClientOf, Kind, every_kind
from tests.support.model_server import Call, ModelServer, answer

GO_ON = Call("task", {"agent": "#1", "task": "And the end?"})


@every_kind
async def test_a_child_that_continues_is_the_same_session_with_a_card_for_each_task(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    model_server.add(answer(TASK), answer("In greeting.py."), answer("There."))
    client = await make_client(kind)
    await client.say()
    await client.wire.stop()
    second_client = await make_client(kind, new=False)
    await second_client.reopen(client.session)
    model_server.add(answer(GO_ON), answer("Nowhere."), answer("It has none."))
    await second_client.say()
    assert "In greeting.py." in str(model_server.requests[4].json["messages"])
    cards = second_client.cards(second_client.session)
    assert set(cards) == {"explore: find the greeting", "explore: And the end?"}
    assert "Nowhere." in str(cards["explore: And the end?"]["content"])
    if second_client.knows_children:
        replayed = second_client.told()
        assert set(replayed) == {second_client.session, second_client.child()}
        assert "Nowhere." in str(replayed[second_client.child()])
        (*_, state) = second_client.wire.updates(second_client.session, "subagent_update")
        assert state["state"] == {"state": "idle", "stopReason": "end_turn"}
