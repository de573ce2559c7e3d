"""Child sessions that are stopped, were killed, or go on when the session is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.children_client import (
    SLEEP,
    TASK,
    TITLE,
    TOUCH,
    Client,
    ClientOf,
    Kind,
    Thinking,
    every_kind,
    knows_children,
    works,
)
from tests.support.editor import Json
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.wire_client import AnswerError


async def asking_client(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> tuple[Client, int, Thinking]:
    """A client whose user is asked about a child's call: with its prompt, and the user."""
    works(model_server, TOUCH)
    user = Thinking()
    client = await make_client(kind, permission=user)
    prompt = client.post()
    await user.asked()
    return client, prompt, user


# -- coming back ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "replay"),
    [
        ("v1", True),
        ("v1 with subagents", True),
        ("v2", False),
    ],
)
@pytest.mark.covers("P13", "S4")
async def test_reopening_a_session_while_a_child_waits_shows_the_child(
    make_client: ClientOf, model_server: ModelServer, kind: Kind, replay: bool
) -> None:
    client, prompt, user = await asking_client(make_client, model_server, kind)
    began = len(client.wire.messages)
    await client.reopen(client.session, replay=replay)
    user.allows()
    assert await client.ends(prompt) == "end_turn"
    assert len(client.asked) == 1
    since = [
        (message["params"]["sessionId"], message["params"]["update"])
        for message in client.wire.messages[began:]
        if message.get("method") == "session/update"
    ]
    if client.knows_children:
        child = client.child()
        announced = next(update for _, update in since if update.get("sessionId") == child)
        assert announced["title"] == TITLE
        first = next(at for at, (of, _) in enumerate(since) if of == child)
        assert (client.session, announced) in since[:first]
        states = [update["state"]["state"] for _, update in since if "sessionId" in update]
        assert states[-3:] == ["requires_action", "running", "idle"]
    (question,) = client.asked
    card = next(
        card
        for title, card in client.cards(question["sessionId"]).items()
        if "touch made.txt" in title
    )
    assert card["status"] == "completed"


@every_kind
@pytest.mark.covers("P13", "S4")
async def test_a_child_that_was_killed_in_the_middle_is_closed_when_the_session_is_opened(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    client, _, _ = await asking_client(make_client, model_server, kind)
    await client.wire.kill()
    second_client = await make_client(kind, new=False)
    await second_client.reopen(client.session)
    (question,) = client.asked
    cards = second_client.cards(client.session) | second_client.cards(question["sessionId"])
    assert len(cards) == 2
    assert {card["status"] for card in cards.values()} == {"failed"}
    if second_client.knows_children:
        (*_, last) = second_client.wire.updates(client.session, "subagent_update")
        assert last["state"] == {"state": "idle", "stopReason": "cancelled"}
    model_server.add(answer("Here I am."))
    assert await second_client.say() == "end_turn"


# -- stopping ------------------------------------------------------------------------------------


@knows_children
@pytest.mark.covers("P13", "P7")
async def test_a_child_alone_is_stopped_and_its_parent_continues(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    model_server.add(answer(TASK), answer(SLEEP), answer("Then I look myself."))
    client = await make_client(kind)
    prompt = client.post()
    await client.child_shows(lambda update: "in_progress" in str(update))
    client.wire.cancel(client.child())
    assert await client.ends(prompt) == "end_turn"
    (*_, last) = client.wire.updates(client.session, "subagent_update")
    assert last["state"] == {"state": "idle", "stopReason": "cancelled"}
    assert "Then I look myself." in str(client.told()[client.session])
    assert client.cards(client.session)[TITLE]["status"] in {"failed", "cancelled"}


@knows_children
@pytest.mark.covers("P13", "P7")
async def test_a_child_that_waits_for_the_user_is_stopped_and_its_question_withdrawn(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    client, prompt, _ = await asking_client(make_client, model_server, kind)
    question = await client.wire.expect(
        lambda request: request.get("method") == "session/request_permission"
    )
    client.wire.cancel(client.child())
    await client.wire.expect(
        lambda request: (
            request.get("method") == "$/cancel_request"
            and request["params"]["requestId"] == question["id"]
        )
    )
    assert await client.ends(prompt) == "end_turn"
    (inner,) = client.cards(client.child()).values()
    assert inner["status"] in {"failed", "cancelled"}


@every_kind
@pytest.mark.covers("P13", "P7", "P3")
async def test_cancelling_the_turn_stops_its_child_and_withdraws_its_question(
    make_client: ClientOf, model_server: ModelServer, kind: Kind
) -> None:
    client, prompt, _ = await asking_client(make_client, model_server, kind)
    client.wire.cancel(client.session)
    assert await client.ends(prompt) == "cancelled"
    (question,) = client.asked
    cards = client.cards(client.session) | client.cards(question["sessionId"])
    assert len(cards) == 2
    assert {card["status"] for card in cards.values()} <= {"failed", "cancelled"}


async def test_one_call_of_a_child_is_stopped_and_the_child_continues(
    make_client: ClientOf, model_server: ModelServer
) -> None:
    works(model_server, SLEEP)
    client = await make_client("v2")
    prompt = client.post()
    update = await client.child_shows(
        lambda update: (
            update["sessionUpdate"] == "tool_call_update" and update.get("status") == "in_progress"
        ),
    )
    await client.v2.cancel_call(client.child(), update["toolCallId"])
    assert await client.ends(prompt) == "end_turn"
    (inner,) = client.cards(client.child()).values()
    assert inner["status"] == "cancelled"
    assert "In greeting.py." in str(client.told()[client.child()])


async def test_a_command_of_a_child_is_stopped_by_its_terminal(
    make_client: ClientOf, model_server: ModelServer
) -> None:
    works(model_server, SLEEP)
    client = await make_client("v2")
    prompt = client.post()
    chunk = await client.child_shows(
        lambda update: update["sessionUpdate"] == "terminal_output_chunk"
    )
    params = {"sessionId": client.child(), "terminalId": chunk["terminalId"]}
    await client.wire.request("terminal/cancel", params, checked=True)
    assert await client.ends(prompt) == "end_turn"


@knows_children
@pytest.mark.covers("P13", "S6")
async def test_other_requests_to_a_child_fail_with_an_explanation(
    make_client: ClientOf, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    stall = Stall()
    model_server.add(answer(TASK), answer("Let me", stall, " see."), answer("There."))
    client = await make_client(kind)
    prompt = client.post()
    await client.child_shows(lambda update: "agent_message" in update["sessionUpdate"])
    child = client.child()
    folder = {"cwd": str(workspace_repo), "mcpServers": []}
    words = {"prompt": [{"type": "text", "text": "Hi"}]}
    option = {"configId": "mode", "value": "ask"} | ({"type": "id"} if kind == "v2" else {})
    questions: list[tuple[str, Json]] = [
        ("session/prompt", words),
        ("session/resume", folder),
        ("session/fork", folder),
        ("session/close", {}),
        ("session/delete", {}),
        ("session/set_config_option", option),
        ("session/archive", {}),
        ("session/set_title", {"title": "x"}),
        ("session/status", {}),
    ]
    for method, params in questions:
        with pytest.raises(AnswerError) as refused:
            await client.wire.request(method, {"sessionId": child} | params)
        assert refused.value.code == -32002, method
        assert "not found" in refused.value.message
        assert f"a child of {client.session}" in refused.value.message
    stall.release()
    assert await client.ends(prompt) == "end_turn"
    assert "Let me see." in str(client.told()[child])
