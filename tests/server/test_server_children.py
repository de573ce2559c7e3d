"""Work that is handed to a child session, as clients of all kinds see it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.server.children_client import (
    TASK,
    TITLE,
    TOUCH,
    ClientOf,
    Kind,
    Thinking,
    asked_title,
    every_kind,
    knows_children,
    works,
)
from tests.server.server_session import messages
from tests.support.editor import Json, PermissionPolicy
from tests.support.model_server import Call, ModelServer, Status, answer
from tests.support.v2_view import SessionView

# -- what is seen --------------------------------------------------------------------------------


@every_kind
@pytest.mark.covers("P13", "I6")
async def test_what_a_child_does_is_seen_as_it_works_and_in_a_replay_alike(
    client_of: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, Call("read", {"path": "greeting.py"}))
    client = await client_of(kind)
    assert await client.say() == "end_turn"
    card = client.cards(client.session)[TITLE]
    assert card["status"] == "completed"
    assert "greeting.py" in str(card["content"])
    assert list(client.cards(client.session)) == [TITLE]
    live = client.told()
    if client.knows_children:
        child = client.child()
        assert set(live) == {client.session, child}
        (inner,) = client.cards(child).values()
        assert (inner["kind"], inner["status"]) == ("read", "completed")
        assert "In greeting.py." in str(live[child])
        assert "It is in" not in str(live[child])
        assert not client.wire.updates(child, "user_message")
        (asked,) = client.wire.updates(child, "session_message")
        assert asked["content"] == [{"type": "text", "text": "Where is it?"}]
        sent = [
            one["content"]
            for one in client.wire.updates(client.session, "session_message")
            if "content" in one
        ]
        assert [one[0]["text"] for one in sent] == ["Where is it?", "In greeting.py."]
        (*_, state) = client.wire.updates(client.session, "subagent_update")
        assert state["state"] == {"state": "idle", "stopReason": "end_turn"}
    else:
        assert set(live) == {client.session}
        assert "Let me see." not in str(live)
    await client.wire.stop()
    other = await client_of(kind, new=False)
    await other.reopen(client.session)
    again = other.told()
    if kind == "v2":
        assert again == live
    else:
        assert {name: _kept(told) for name, told in again.items()} == {
            name: _kept(told) for name, told in live.items()
        }


def _kept(told: Sequence[Json]) -> list[Json]:
    """What is part of the conversation: the usage is told as it is now."""
    return [one for one in told if one["sessionUpdate"] != "usage_update"]


@every_kind
@pytest.mark.parametrize("permission", ["allow_once", "reject_once", "cancelled"])
@pytest.mark.covers("P13", "P6")
async def test_a_childs_question_reaches_the_user_with_a_card_of_its_own_call(
    client_of: ClientOf,
    model_server: ModelServer,
    workspace_repo: Path,
    kind: Kind,
    permission: PermissionPolicy,
) -> None:
    works(model_server, TOUCH)
    client = await client_of(kind, permission=permission)
    stopped = await client.say()
    (asked,) = client.asked
    allowed = permission == "allow_once"
    assert (workspace_repo / "made.txt").exists() == allowed
    if client.knows_children:
        assert asked["sessionId"] == client.child()
        assert "touch made.txt" in asked_title(asked)
    else:
        assert asked["sessionId"] == client.session
        assert asked_title(asked).startswith(f"{TITLE} › ")
        assert set(client.cards(client.session)) == {TITLE, asked_title(asked)}
    (inner,) = (
        card
        for title, card in client.cards(asked["sessionId"]).items()
        if "touch made.txt" in title
    )
    assert inner["status"] == ("completed" if allowed else "failed")
    assert stopped == "end_turn"
    assert messages(model_server)[-1]["role"] == "tool"


@every_kind
@pytest.mark.covers("P13", "S4")
async def test_a_replay_has_the_card_of_what_the_user_was_asked(
    client_of: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, TOUCH)
    client = await client_of(kind)
    await client.say()
    live = client.told()
    await client.wire.stop()
    other = await client_of(kind, new=False)
    await other.reopen(client.session)
    if kind == "v2":
        assert other.told() == live
    else:
        assert {name: _kept(told) for name, told in other.told().items()} == {
            name: _kept(told) for name, told in live.items()
        }


async def test_the_whole_session_waits_for_the_user_while_its_child_does(
    client_of: ClientOf, model_server: ModelServer
) -> None:
    works(model_server, TOUCH)
    client = await client_of("v2")
    await client.say()
    for session in (client.session, client.child()):
        states = [one["state"] for one in client.wire.updates(session, "state_update")]
        assert states == ["running", "requires_action", "running", "idle"], session


# -- several, and what may go wrong --------------------------------------------------------------


@every_kind
@pytest.mark.covers("P13", "P6")
async def test_two_children_ask_the_user_side_by_side_each_for_itself(
    client_of: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    second = Call("task", {"agent": "explore", "title": "second", "task": "Do it"})
    other = Call("shell", {"command": "touch other.txt"})
    model_server.add(
        answer(TASK, second), answer(TOUCH), answer(other), answer("A."), answer("B."), answer("C.")
    )
    user = Thinking()
    client = await client_of(kind, permission=user)
    prompt = client.post()
    await user.asked()
    await user.asked()
    user.allows()
    assert await client.ends(prompt) == "end_turn"
    assert (workspace_repo / "made.txt").exists()
    assert (workspace_repo / "other.txt").exists()
    where = {one["sessionId"] for one in client.asked}
    if client.knows_children:
        assert len(where) == 2
        assert client.session not in where
        for child in where:
            (card,) = client.cards(child).values()
            assert card["status"] == "completed"
    else:
        assert {asked_title(one).partition(" › ")[0] for one in client.asked} == {
            TITLE,
            "explore: second",
        }
    cards = client.cards(client.session)
    assert {card["status"] for card in cards.values()} == {"completed"}
    assert len(cards) == (2 if client.knows_children else 4)


@knows_children
@pytest.mark.covers("P12", "P13")
async def test_a_form_of_a_child_is_shown_in_the_childs_session(
    client_of: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, Call("ask_user", {"question": "Which greeting?"}))
    client = await client_of(kind)
    client.wire.editor.answer = lambda _: {"action": "accept", "content": {"answer": "Hello"}}
    assert await client.say() == "end_turn"
    (form,) = client.wire.editor.questions
    assert form["sessionId"] == client.child()
    (card,) = client.cards(client.child()).values()
    assert card["status"] == "completed"
    if kind == "v2":
        for session in (client.session, client.child()):
            states = [one["state"] for one in client.wire.updates(session, "state_update")]
            assert states == ["running", "requires_action", "running", "idle"], session


@every_kind
async def test_a_command_that_a_child_left_behind_is_seen_to_its_end(
    client_of: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    command = "while [ ! -e go ]; do sleep 0.05; done; echo over"
    works(model_server, Call("shell", {"command": command, "background": True}))
    client = await client_of(kind)
    assert await client.say() == "end_turn"
    child = client.child() if client.knows_children else client.session
    (workspace_repo / "go").touch()
    if kind == "v2":
        await client.wire.expect_update(
            child, "terminal_update", lambda one: one.get("exitStatus") is not None
        )
        await client.wire.expect_update(
            child,
            "state_update",
            lambda one: one["state"] == "idle" and one["background"] == [],
        )
        assert (
            SessionView.of(client.wire.updates(child)).terminals.popitem()[1].output == b"over\r\n"
        )
    else:
        notice = await client.wire.expect_update(client.session, "notice")
        assert "ended with exit code 0" in notice["title"]
    model_server.add(answer("Over."))
    assert await client.say() == "end_turn"
    await client.wire.stop()
    other = await client_of(kind, new=False)
    await other.reopen(client.session)


@every_kind
@pytest.mark.covers("P8", "P13")
async def test_a_child_whose_model_fails_says_so_and_its_parent_goes_on(
    client_of: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    model_server.add(
        answer(TASK), Status(code=400, message="no such thing"), answer("I do it myself.")
    )
    client = await client_of(kind)
    assert await client.say() == "end_turn"
    card = client.cards(client.session)[TITLE]
    assert card["status"] == "failed"
    assert "no such thing" in str(card["content"])
    if client.knows_children:
        (*_, last) = client.wire.updates(client.session, "subagent_update")
        assert last["state"]["stopReason"] == "error"
        assert "no such thing" in last["state"]["error"]["message"]


@every_kind
@pytest.mark.covers("P13", "S4")
async def test_a_fork_shows_what_children_of_its_source_did_in_their_calls_alone(
    client_of: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    works(model_server, TOUCH)
    client = await client_of(kind)
    await client.say()
    where = {"cwd": str(workspace_repo), "mcpServers": []}
    result = await client.wire.request("session/fork", {"sessionId": client.session} | where)
    began = len(client.wire.messages)
    await client.reopen(result["sessionId"])
    told = [
        (one["params"]["sessionId"], one["params"]["update"]["sessionUpdate"])
        for one in client.wire.messages[began:]
        if one.get("method") == "session/update"
    ]
    assert {of for of, _ in told} == {client.session}
    assert not {"subagent_update", "session_message"} & {what for _, what in told}
    assert TITLE in client.cards(client.session)
    works(model_server, Call("read", {"path": "greeting.py"}))
    assert await client.say() == "end_turn"
