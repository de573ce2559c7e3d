"""What clients of version 1 that know of child sessions are shown of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from acp_agent.content import text_part
from acp_agent.events import (
    AgentText,
    AnyEvent,
    SessionForked,
    SubagentChanged,
    ToolEnded,
    ToolShown,
    TurnEnded,
)
from acp_agent.ids import CallId, SessionId, TurnId
from acp_agent.server.child_sessions import without_inherited
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.notices import CUT_CALL
from acp_agent.server.v1.editor import make_session_tree
from acp_agent.session.history.interruption import close_open_turn
from protocol.codec import typed_json
from tests.server.v1_children_shown import KNOWS, KNOWS_NOT, Json, cards, kinds, project_updates
from tests.support import child_work
from tests.support.child_work import CHILD, INNER, PARENT, READ, TASK, TITLE, did, whole


@pytest.mark.covers("P13")
def test_a_child_is_announced_first_and_works_in_a_session_of_its_own() -> None:
    updates = project_updates(KNOWS, whole())
    first = next(at for at, (of, _) in enumerate(updates) if of == CHILD)
    assert [update["sessionUpdate"] for _, update in updates[:first]] == [
        "tool_call",
        "tool_call_update",
        "subagent_update",
        "session_message",
        "tool_call_update",
    ]
    assert kinds(updates, CHILD) == [
        "session_message",
        "tool_call",
        "agent_message_chunk",
        "agent_message_chunk",
        "tool_call_update",
        "tool_call_update",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert set(cards(updates, PARENT)) == {TASK}
    assert [one.get("status") for one in cards(updates, CHILD)[INNER]] == [
        "pending",
        "in_progress",
        None,
        "completed",
    ]
    states = [
        update["state"] for _, update in updates if update["sessionUpdate"] == "subagent_update"
    ]
    assert states == [
        {"state": "running"},
        {"state": "requires_action"},
        {"state": "running"},
        {"state": "idle", "stopReason": "end_turn"},
    ]


@pytest.mark.covers("P13")
def test_a_call_refers_to_its_child_with_any_other_content() -> None:
    reference = {"type": "session", "sessionId": CHILD}
    text = text_part("Half done")
    events = [
        *child_work.begun(),
        *child_work.announced(),
        ToolShown(call=TASK, content=(text,)),
        *did(AgentText(message=child_work.SAID, text="a")),
    ]
    content = {"type": "content", "content": {"type": "text", "text": "Half done"}}
    contents = [card["content"] for card in cards(project_updates(KNOWS, events), PARENT)[TASK][2:]]
    assert contents == [[reference], [content, reference]]
    ended = project_updates(KNOWS, [*events, ToolEnded(call=TASK, content=(text, text))])
    assert ended[-1][1]["content"] == [content, content, reference]
    cut = project_updates(KNOWS, [*events, *close_open_turn(events)])
    last = cards(cut, PARENT)[TASK][-1]["content"]
    assert last[:2] == [content, reference]
    assert len(last) == 3  # and why it ended
    assert '"session"' not in str(project_updates(KNOWS_NOT, events)).replace("'", '"')


@pytest.mark.covers("P13")
def test_the_task_of_a_child_is_a_message_of_both_sessions_and_not_the_users() -> None:
    updates = project_updates(KNOWS, whole(), replay=True)
    assert "user_message_chunk" not in kinds(updates, CHILD)
    messages = [
        (of, {key: value for key, value in update.items() if key != "sessionUpdate"})
        for of, update in updates
        if update["sessionUpdate"] == "session_message"
    ]
    between = {"senderSessionId": PARENT, "recipientSessionId": CHILD}
    text = [{"type": "text", "text": "Find it"}]
    question = child_work.ASKED
    assert messages == [
        (PARENT, {"messageId": question, "content": text} | between),
        (CHILD, {"messageId": READ, "senderMessageId": question, "content": text} | between),
        (PARENT, {"messageId": question, "recipientMessageId": READ}),
        (
            PARENT,
            {
                "messageId": child_work.ANSWERED,
                "senderSessionId": CHILD,
                "recipientSessionId": PARENT,
                "content": [{"type": "text", "text": "There."}],
            },
        ),
    ]


@pytest.mark.parametrize("client", [KNOWS, KNOWS_NOT])
@pytest.mark.covers("P13", "S4")
def test_a_replay_shows_children_as_they_were_shown_live(client: ClientProfile) -> None:
    replayed = [
        (of, update)
        for of, update in project_updates(client, whole(), replay=True)
        if update["sessionUpdate"] != "user_message_chunk"
    ]
    assert replayed == project_updates(client, whole())


def test_two_concurrent_children_are_shown_separately() -> None:
    second_session, task = SessionId("sess_other"), CallId("call_other")
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *child_work.announced(second_session, task),
        *did(AgentText(message=child_work.SAID, text="a")),
        *did(AgentText(message=child_work.SAID, text="b"), child=second_session, call=task),
        *did(AgentText(message=child_work.SAID, text="c")),
    ]
    updates = project_updates(KNOWS, events)
    texts = {
        session: "".join(
            update["content"]["text"]
            for of, update in updates
            if of == session and update["sessionUpdate"] == "agent_message_chunk"
        )
        for session in (PARENT, CHILD, second_session)
    }
    assert texts == {PARENT: "", CHILD: "ac", second_session: "b"}


def test_the_user_is_asked_about_a_call_in_the_session_that_shows_it() -> None:
    tree = make_session_tree(PARENT, KNOWS, replay=False)
    assert tree.target(INNER) == (PARENT, INNER, "")
    for event in (*child_work.begun(), *child_work.announced(), *did(child_work.called(INNER))):
        list(tree.updates(event))
    assert tree.target(INNER) == (CHILD, INNER, "")
    assert tree.target(TASK) == (PARENT, TASK, "")
    assert tree.target(None) == (PARENT, None, "")


def test_a_client_that_missed_the_start_of_a_child_gets_it_while_it_works() -> None:
    def announced(events: Sequence[AnyEvent]) -> list[Json]:
        tree = make_session_tree(PARENT, KNOWS, replay=False)
        for event in events:
            list(tree.updates(event))
        return [
            msgspec.json.decode(typed_json.encode(update)) for _, update in tree.missed_updates()
        ]

    begun = [*child_work.begun(), *child_work.announced(), *did(child_work.called(INNER))]
    assert announced([*begun, *child_work.asks()]) == [
        {
            "sessionUpdate": "subagent_update",
            "sessionId": CHILD,
            "title": TITLE,
            "description": "Looks",
            "capabilities": {"cancel": {}},
            "state": {"state": "requires_action"},
        }
    ]
    assert announced(whole()) == []


def test_a_fork_does_not_claim_the_children_of_its_source() -> None:
    forked_child, call = SessionId("sess_own"), CallId("call_own")
    after = [
        SessionForked(source=SessionId("sess_source")),
        TurnEnded(turn=TurnId("turn_2")),
        SubagentChanged(session=forked_child, state="running"),
        *did(child_work.called(call), child=forked_child, call=call),
    ]
    updates = project_updates(KNOWS, without_inherited([*whole(), *after]), replay=True)
    assert {of for of, _ in updates} == {PARENT, forked_child}
    assert "session_message" not in kinds(updates, PARENT)
    assert set(cards(updates, PARENT)) == {TASK}
    assert list(without_inherited(whole())) == list(whole())


@pytest.mark.parametrize("client", [KNOWS, KNOWS_NOT])
@pytest.mark.covers("P13", "S4")
def test_open_work_of_a_child_is_closed_after_a_crash(client: ClientProfile) -> None:
    events: list[AnyEvent] = [
        *child_work.begun(),
        *child_work.announced(),
        *did(child_work.called(INNER)),
        *child_work.asks(),
    ]
    updates = project_updates(client, [*events, *close_open_turn(events)], replay=True)
    session = CHILD if client.subagents else PARENT
    card = cards(updates, session)[INNER]
    assert card[-1]["status"] == "failed"
    assert card[-1]["content"][-1]["content"]["text"] == CUT_CALL
    assert cards(updates, PARENT)[TASK][-1]["status"] == "failed"
    changed = [update for _, update in updates if update["sessionUpdate"] == "subagent_update"]
    if client.subagents:
        assert changed[-1]["state"] == {"state": "idle", "stopReason": "cancelled"}
        assert "agent_message_chunk" in kinds(updates, CHILD)[-1:]
    else:
        assert kinds(updates, PARENT).count("agent_message_chunk") == 1


@pytest.mark.parametrize("client", [KNOWS, KNOWS_NOT])
def test_no_call_of_a_child_stays_open_when_its_end_could_not_be_written(
    client: ClientProfile,
) -> None:
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *did(child_work.called(INNER)),
        *child_work.asks(),
        ToolEnded(call=TASK, failed=True),
        *child_work.ended(),
    ]
    updates = project_updates(client, events)
    assert cards(updates, CHILD if client.subagents else PARENT)[INNER][-1]["status"] == "failed"
    states = [
        update["state"]["state"]
        for _, update in updates
        if update["sessionUpdate"] == "subagent_update"
    ]
    assert states[-1:] == (["idle"] if client.subagents else [])
