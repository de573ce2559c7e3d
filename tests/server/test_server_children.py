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
    every_kind,
    knows_children,
    question_title,
    works,
)
from tests.server.server_session import messages
from tests.support.editor import Json, PermissionPolicy
from tests.support.model_server import Call, ModelServer, Status, answer
from tests.support.v2_view import SessionView

# -- what is seen --------------------------------------------------------------------------------


@every_kind
@pytest.mark.covers("P13", "I6")
async def test_the_work_of_a_child_is_shown_live_and_in_a_replay(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, Call("read", {"path": "greeting.py"}))
    client = await make_client(kind)
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
        (message,) = client.wire.updates(child, "session_message")
        assert message["content"] == [{"type": "text", "text": "Where is it?"}]
        requests = [
            update["content"]
            for update in client.wire.updates(client.session, "session_message")
            if "content" in update
        ]
        assert [update[0]["text"] for update in requests] == ["Where is it?", "In greeting.py."]
        (*_, state) = client.wire.updates(client.session, "subagent_update")
        assert state["state"] == {"state": "idle", "stopReason": "end_turn"}
    else:
        assert set(live) == {client.session}
        assert "Let me see." not in str(live)
    await client.wire.stop()
    second_client = await make_client(kind, new=False)
    await second_client.reopen(client.session)
    replayed = second_client.told()
    if kind == "v2":
        assert replayed == live
    else:
        assert {
            name: _without_usage(updates_of_session)
            for name, updates_of_session in replayed.items()
        } == {name: _without_usage(updates_of_session) for name, updates_of_session in live.items()}


def _without_usage(updates: Sequence[Json]) -> list[Json]:
    """What is part of the conversation: the usage is told as it is now."""
    return [update for update in updates if update["sessionUpdate"] != "usage_update"]


@pytest.mark.parametrize(
    ("kind", "permission"),
    [
        ("v1", "allow_once"),
        ("v1 with subagents", "allow_once"),
        ("v2", "allow_once"),
        ("v1", "reject_once"),
        ("v2", "cancelled"),
    ],
)
@pytest.mark.covers("P13", "P6", "S4")
async def test_a_childs_question_has_a_card_of_its_own_call_live_and_in_a_replay(
    make_client: ClientOf,
    model_server: ModelServer,
    workspace_repo: Path,
    kind: Kind,
    permission: PermissionPolicy,
) -> None:
    works(model_server, TOUCH)
    client = await make_client(kind, permission=permission)
    stopped = await client.say()
    (question,) = client.asked
    allowed = permission == "allow_once"
    assert (workspace_repo / "made.txt").exists() == allowed
    if client.knows_children:
        assert question["sessionId"] == client.child()
        assert "touch made.txt" in question_title(question)
    else:
        assert question["sessionId"] == client.session
        assert question_title(question).startswith(f"{TITLE} › ")
        assert set(client.cards(client.session)) == {TITLE, question_title(question)}
    (inner,) = (
        card
        for title, card in client.cards(question["sessionId"]).items()
        if "touch made.txt" in title
    )
    assert inner["status"] == ("completed" if allowed else "failed")
    assert stopped == "end_turn"
    assert messages(model_server)[-1]["role"] == "tool"
    if not allowed:
        return
    live = client.told()
    await client.wire.stop()
    second_client = await make_client(kind, new=False)
    await second_client.reopen(client.session)
    if kind == "v2":
        assert second_client.told() == live
    else:
        assert {
            name: _without_usage(updates_of_session)
            for name, updates_of_session in second_client.told().items()
        } == {name: _without_usage(updates_of_session) for name, updates_of_session in live.items()}


async def test_the_whole_session_waits_for_the_user_while_its_child_does(
    make_client: ClientOf, model_server: ModelServer
) -> None:
    works(model_server, TOUCH)
    client = await make_client("v2")
    await client.say()
    for session in (client.session, client.child()):
        states = [update["state"] for update in client.wire.updates(session, "state_update")]
        assert states == ["running", "requires_action", "running", "idle"], session


# -- several, and what may go wrong --------------------------------------------------------------


@every_kind
@pytest.mark.covers("P13", "P6")
async def test_two_children_ask_the_user_side_by_side_each_for_itself(
    make_client: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    second = Call("task", {"agent": "explore", "title": "second", "task": "Do it"})
    second_call = Call("shell", {"command": "touch other.txt"})
    model_server.add(
        answer(TASK, second),
        answer(TOUCH),
        answer(second_call),
        answer("A."),
        answer("B."),
        answer("C."),
    )
    user = Thinking()
    client = await make_client(kind, permission=user)
    prompt = client.post()
    await user.asked()
    await user.asked()
    user.allows()
    assert await client.ends(prompt) == "end_turn"
    assert (workspace_repo / "made.txt").exists()
    assert (workspace_repo / "other.txt").exists()
    where = {request["sessionId"] for request in client.asked}
    if client.knows_children:
        assert len(where) == 2
        assert client.session not in where
        for child in where:
            (card,) = client.cards(child).values()
            assert card["status"] == "completed"
    else:
        assert {question_title(request).partition(" › ")[0] for request in client.asked} == {
            TITLE,
            "explore: second",
        }
    cards = client.cards(client.session)
    assert {card["status"] for card in cards.values()} == {"completed"}
    assert len(cards) == (2 if client.knows_children else 4)


@knows_children
@pytest.mark.covers("P12", "P13")
async def test_a_form_of_a_child_is_shown_in_the_childs_session(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, Call("ask_user", {"question": "Which greeting?"}))
    client = await make_client(kind)
    client.wire.editor.answer = lambda _: {"action": "accept", "content": {"answer": "Hello"}}
    assert await client.say() == "end_turn"
    (form,) = client.wire.editor.questions
    assert form["sessionId"] == client.child()
    (card,) = client.cards(client.child()).values()
    assert card["status"] == "completed"
    if kind == "v2":
        for session in (client.session, client.child()):
            states = [update["state"] for update in client.wire.updates(session, "state_update")]
            assert states == ["running", "requires_action", "running", "idle"], session


@pytest.mark.parametrize("kind", ["v1", "v2"])
async def test_the_end_of_a_command_that_a_child_left_behind_is_shown(
    make_client: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    command = "while [ ! -e go ]; do sleep 0.05; done; echo over"
    works(model_server, Call("shell", {"command": command, "background": True}))
    client = await make_client(kind)
    assert await client.say() == "end_turn"
    child = client.child() if client.knows_children else client.session
    (workspace_repo / "go").touch()
    if kind == "v2":
        await client.wire.expect_update(
            child, "terminal_update", lambda update: update.get("exitStatus") is not None
        )
        await client.wire.expect_update(
            child,
            "state_update",
            lambda update: update["state"] == "idle" and update["background"] == [],
        )
        assert (
            SessionView.of(client.wire.updates(child)).terminals.popitem()[1].output == b"over\r\n"
        )
    else:
        notice = await client.wire.expect_update(client.session, "notice")
        assert "ended with exit code 0" in notice["title"]
    model_server.add(answer("Over."))
    assert await client.say() == "end_turn"


@knows_children
@pytest.mark.covers("P8", "P13")
async def test_a_child_whose_model_fails_says_so_and_its_parent_continues(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    model_server.add(
        answer(TASK), Status(code=400, message="no such thing"), answer("I do it myself.")
    )
    client = await make_client(kind)
    assert await client.say() == "end_turn"
    card = client.cards(client.session)[TITLE]
    assert card["status"] == "failed"
    assert "no such thing" in str(card["content"])
    (*_, last) = client.wire.updates(client.session, "subagent_update")
    assert last["state"]["stopReason"] == "error"
    assert "no such thing" in last["state"]["error"]["message"]


@knows_children
@pytest.mark.covers("P13", "S4")
async def test_a_fork_shows_what_children_of_its_source_did_in_their_calls_alone(
    make_client: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    works(model_server, TOUCH)
    client = await make_client(kind)
    await client.say()
    where = {"cwd": str(workspace_repo), "mcpServers": []}
    result = await client.wire.request("session/fork", {"sessionId": client.session} | where)
    began = len(client.wire.messages)
    await client.reopen(result["sessionId"])
    updates = [
        (message["params"]["sessionId"], message["params"]["update"]["sessionUpdate"])
        for message in client.wire.messages[began:]
        if message.get("method") == "session/update"
    ]
    assert {of for of, _ in updates} == {client.session}
    assert not {"subagent_update", "session_message"} & {what for _, what in updates}
    assert TITLE in client.cards(client.session)
    works(model_server, Call("read", {"path": "greeting.py"}))
    assert await client.say() == "end_turn"
