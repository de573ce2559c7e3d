"""What a client of version 2 is shown of child sessions, live and in a replay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from acp_agent.content import TextBlock, text_part
from acp_agent.events import (
    AgentText,
    AnyEvent,
    BackgroundCommandChanged,
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
)
from acp_agent.ids import CallId, MessageId, SessionId
from acp_agent.server.notices import CUT_CALL
from acp_agent.server.v2.replay import replay
from acp_agent.server.v2.session_tree import SessionTreeV2
from acp_agent.session.history.interruption import close_open_turn
from protocol.codec import typed_json
from protocol.v2.types import SessionUpdate
from tests.support import child_work
from tests.support.child_work import CHILD, INNER, PARENT, READ, SAID, TASK, did, whole
from tests.support.v2_view import SessionView
from tests.support.wire_schema import wire_schema

Json = dict[str, Any]
Updates = list[tuple[str, Json]]


def as_json(updates: Iterable[tuple[SessionId, SessionUpdate]]) -> Updates:
    """Updates as they go out; each is one that the protocol's schema allows."""
    told: Updates = []
    schema = wire_schema("v2")
    for session, update in updates:
        encoded = msgspec.json.decode(typed_json.encode(update))
        params = {"sessionId": session, "update": encoded}
        if schema is not None:
            problem = schema.problem("session/update", "client", "Notification", params)
            assert problem is None, (problem, encoded)
        told.append((session, encoded))
    return told


def live(events: Sequence[AnyEvent], tree: SessionTreeV2 | None = None) -> Updates:
    tree = tree or SessionTreeV2(PARENT)
    return as_json(update for event in events for update in tree.updates(event))


def replayed(events: Sequence[AnyEvent]) -> Updates:
    return as_json(replay(PARENT, events))


def view(updates: Updates, session: str) -> SessionView:
    return SessionView.of(update for of, update in updates if of == session)


def states(updates: Updates, session: str) -> list[str]:
    return [
        update["state"]
        for of, update in updates
        if of == session and update["sessionUpdate"] == "state_update"
    ]


def of_kind(updates: Updates, kind: str) -> Updates:
    """The updates of one kind, without their kind."""
    return [
        (of, {key: value for key, value in update.items() if key != "sessionUpdate"})
        for of, update in updates
        if update["sessionUpdate"] == kind
    ]


def test_a_child_is_updated_with_its_changes_and_a_message_to_it_is_replayed_whole() -> None:
    message_id = MessageId("msg_2")
    events: list[AnyEvent] = [
        SubagentChanged(session=CHILD, title="Scout", state="running", can_cancel=True, cwd="/w"),
        SessionMessageSent(message=message_id, recipient=CHILD, content=(TextBlock(text="Look"),)),
        SessionMessageText(message=message_id, text=" around"),
        SessionMessageSent(message=message_id, recipient_message=MessageId("msg_3")),
        SubagentChanged(session=CHILD, title="", can_cancel=False, state="idle", error="no"),
    ]
    (_, first), (_, last) = of_kind(live(events), "subagent_update")
    assert first == {
        "sessionId": CHILD,
        "title": "Scout",
        "state": {"state": "running"},
        "capabilities": {"cancel": {}},
        "cwd": "/w",
    }
    failed = {"state": "idle", "stopReason": "error", "error": {"code": -32603, "message": "no"}}
    assert last == {"sessionId": CHILD, "title": None, "capabilities": None, "state": failed}
    messages_by_case = {
        "sessionUpdate": "subagent_update",
        "sessionId": CHILD,
        "state": failed,
        "cwd": "/w",
    }
    message = {
        "sessionUpdate": "session_message",
        "messageId": message_id,
        "recipientSessionId": CHILD,
        "recipientMessageId": "msg_3",
        "content": [{"type": "text", "text": "Look"}, {"type": "text", "text": " around"}],
    }
    assert replayed(events) == [(PARENT, messages_by_case), (PARENT, message)]
    assert len(of_kind(live(events), "session_message_chunk")) == 1


@pytest.mark.covers("P13", "S4")
def test_live_updates_of_a_child_equal_the_replay_at_any_moment() -> None:
    events = whole()
    for end in range(1, len(events) + 1):
        live_view, updates = live(events[:end]), replayed(events[:end])
        for session in (PARENT, CHILD):
            assert view(updates, session).conversation() == view(live_view, session).conversation()
        messages = [view(updates, PARENT).text("user"), view(updates, CHILD).text("user")]
        assert messages[1] == ""  # the child was asked by its parent
    for middle in range(len(events)):
        tree = SessionTreeV2(PARENT)
        live(events[:middle], tree)
        joined = replayed(events[:middle]) + live(events[middle:], tree)
        for session in (PARENT, CHILD):
            assert view(joined, session).conversation() == (
                view(live(events), session).conversation()
            )


@pytest.mark.covers("P13")
def test_a_child_is_announced_before_anything_that_bears_its_id() -> None:
    for updates in (live(whole()), replayed(whole())):
        kinds = [update["sessionUpdate"] for of, update in updates]
        first = next(at for at, (of, _) in enumerate(updates) if of == CHILD)
        assert kinds.index("subagent_update") < kinds.index("session_message") < first
        index = next(
            at for at, (_, update) in enumerate(updates) if '"session"' in json.dumps(update)
        )
        assert kinds.index("subagent_update") < index


@pytest.mark.covers("P13", "S4")
def test_a_call_refers_to_its_child_with_any_other_content() -> None:
    reference = {"type": "session", "sessionId": CHILD}
    text = text_part("Half done")
    half = {"type": "content", "content": {"type": "text", "text": "Half done"}}
    changed = {"type": "content", "content": {"type": "text", "text": "Changed"}}
    events: list[AnyEvent] = [*child_work.begun(), *child_work.announced()]
    assert content_of_task(live(events)) == content_of_task(replayed(events)) == [reference]
    events.append(ToolShown(call=TASK, content=(text,)))
    assert content_of_task(live(events)) == content_of_task(replayed(events)) == [half, reference]
    for last in (
        ToolShown(call=TASK, content=(text_part("Changed"),)),
        ToolEnded(call=TASK, content=(text_part("Changed"),)),
    ):
        updates = live([*events, last])
        assert content_of_task(updates) == content_of_task(replayed([*events, last]))
        assert content_of_task(updates) == [changed, reference]


def content_of_task(updates: Updates) -> list[Json]:
    """What the client shows of the parent's call in the end."""
    content: list[Json] = []
    for _, update in updates:
        if update.get("toolCallId") == TASK and "content" in update:
            chunk = update["sessionUpdate"] == "tool_call_content_chunk"
            content = [*content, update["content"]] if chunk else update["content"]
    return content


@pytest.mark.covers("P13")
def test_both_views_of_a_childs_task_refer_to_each_other() -> None:
    messages = of_kind(replayed(whole()), "session_message")
    between = {
        "senderSessionId": PARENT,
        "recipientSessionId": CHILD,
        "content": [{"type": "text", "text": "Find it"}],
    }
    question = child_work.ASKED
    assert (PARENT, {"messageId": question, "recipientMessageId": READ} | between) in messages
    assert (CHILD, {"messageId": READ, "senderMessageId": question} | between) in messages


@pytest.mark.covers("P13")
def test_the_parent_waits_for_the_user_as_long_as_its_child_can_do_nothing_else() -> None:
    updates = live(whole())
    assert states(updates, CHILD) == ["running", "requires_action", "running", "idle"]
    assert states(updates, PARENT) == ["running", "requires_action", "running", "idle"]


def test_the_parent_does_not_wait_while_another_child_works() -> None:
    second_session, task = SessionId("sess_other"), CallId("call_other")
    call, more = CallId("call_2"), child_work.called(CallId("call_2"))
    tree = SessionTreeV2(PARENT)
    live(
        [
            *child_work.begun(),
            child_work.called(task, "task"),
            ToolStarted(call=task),
            *child_work.announced(),
            *child_work.announced(second_session, task),
            *did(child_work.called(INNER)),
            *did(more, ToolStarted(call=call), child=second_session, call=task),
        ],
        tree,
    )
    assert states(live(child_work.asks(), tree), PARENT) == []
    waited = tree.waits_for_user
    ends = live(child_work.done(second_session, task), tree)
    assert states(ends, PARENT) == ["requires_action"]
    assert (waited, tree.waits_for_user) == (False, True)
    assert states(live(child_work.decided(), tree), PARENT) == ["running"]


def test_a_form_of_a_childs_call_makes_both_wait() -> None:
    tree = SessionTreeV2(PARENT)
    events = [*child_work.begun(), *child_work.announced(), *did(child_work.called(INNER))]
    live([*events, *did(ToolStarted(call=INNER))], tree)
    updates = as_json(tree.waiting_updates(INNER))
    assert (states(updates, CHILD), states(updates, PARENT)) == (["requires_action"],) * 2
    assert tree.target(INNER) == (CHILD, INNER, "")
    answered = as_json(tree.waiting_updates(INNER, answered=True))
    assert (states(answered, CHILD), states(answered, PARENT)) == (["running"],) * 2


def test_a_background_command_of_a_child_belongs_to_the_child() -> None:
    running = BackgroundCommandChanged(call=INNER, name="1", status="running")
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *did(
            child_work.called(INNER, arguments='{"command":"sleep 9"}'),
            ToolStarted(call=INNER, cwd="/w"),
            running,
            ToolEnded(call=INNER),
        ),
        *child_work.done(),
        *child_work.ended(),
    ]
    tree = SessionTreeV2(PARENT)
    updates = live(events, tree)
    lists = [update["background"] for of, update in of_kind(updates, "state_update") if of == CHILD]
    assert lists[-1] == [{"type": "terminal", "terminalId": INNER}]
    assert {
        str(one)
        for of, one in of_kind(updates, "state_update")
        if of == PARENT and INNER in str(one)
    } == set()
    missed = as_json(tree.missed_updates())
    assert [(of, one["sessionUpdate"]) for of, one in missed] == [
        (PARENT, "subagent_update"),
        (CHILD, "terminal_update"),
    ]
    now = as_json(tree.states())
    assert [(of, one["state"]) for of, one in now] == [(PARENT, "idle"), (CHILD, "idle")]
    ends = live(
        did(
            ToolOutput(call=INNER, text="x"),
            BackgroundCommandChanged(call=INNER, name="1", status="ended", exit_code=0),
        ),
        tree,
    )
    assert {of for of, _ in ends} == {CHILD}
    assert [(of, one["state"]) for of, one in as_json(tree.states())] == [(PARENT, "idle")]


def test_a_client_that_missed_the_start_of_a_child_gets_the_child_and_its_state() -> None:
    tree = SessionTreeV2(PARENT)
    events = [*child_work.begun(), *child_work.announced(), *did(child_work.called(INNER))]
    live([*events, *child_work.asks()], tree)
    ((of, updates),) = as_json(tree.missed_updates())
    assert (of, updates["sessionId"], updates["state"]) == (
        PARENT,
        CHILD,
        {"state": "requires_action"},
    )
    assert [(of, state_update["state"]) for of, state_update in as_json(tree.states())] == [
        (PARENT, "requires_action"),
        (CHILD, "requires_action"),
    ]


@pytest.mark.covers("P13", "S4")
def test_open_work_of_a_child_is_closed_after_a_crash() -> None:
    events: list[AnyEvent] = [
        *child_work.begun(),
        *child_work.announced(),
        *did(AgentText(message=SAID, text="I lo"), child_work.called(INNER)),
        *child_work.asks(),
    ]
    events += close_open_turn(events)
    updates = live(events)
    assert states(updates, CHILD)[-1] == states(updates, PARENT)[-1] == "idle"
    card = view(replayed(events), CHILD).calls[INNER]
    assert card["status"] == "failed"
    assert card["content"][-1]["content"]["text"] == CUT_CALL
    assert view(replayed(events), PARENT).calls[TASK]["status"] == "failed"
    _, child = of_kind(replayed(events), "subagent_update")[0]
    assert child["state"] == {"state": "idle", "stopReason": "cancelled"}


def test_no_call_of_a_child_stays_open_when_its_end_could_not_be_written() -> None:
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *did(child_work.called(INNER)),
        *child_work.asks(),
        ToolEnded(call=TASK, failed=True),
        *child_work.ended(),
    ]
    updates = live(events)
    assert view(updates, CHILD).calls[INNER]["status"] == "failed"
    assert view(updates, CHILD).state == view(updates, PARENT).state == "idle"
    (*_, (_, child)) = of_kind(updates, "subagent_update")
    assert child["state"]["state"] == "idle"
