"""A conversation of which a part is damaged: what is shown of it, and what the model is sent."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest

from acp_agent.agent.context import Context
from acp_agent.config.localization import translator_for
from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ChildWorked,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    SessionStarted,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.models.base import AnswerCall, Message, ModelSide, ToolResult, UserSide, UserText
from acp_agent.session.history.interruption import close_open_turn
from acp_agent.session.localize import localize
from acp_agent.session.store.damaged_events import damaged_event
from acp_agent.session.store.event_codec import encode_event, readable_events, recovered_events
from acp_agent.session.store.records import StoredEvent, UnknownEvent
from acp_agent.session.store.recovery import recover

CHILD, TASK = SessionId("sess_child"), CallId("call_task")


def turn(number: int) -> list[AnyEvent]:
    """A turn with two calls in its first answer."""
    first, second = MessageId(f"m{number}a"), MessageId(f"m{number}b")
    calls = CallId(f"c{number}a"), CallId(f"c{number}b")
    return [
        TurnStarted(turn=TurnId(f"t{number}")),
        UserMessage(message=MessageId(f"u{number}"), content=(TextBlock(text=f"ask {number}"),)),
        ModelAsked(message=first, model="x/y"),
        AgentText(message=first, text=f"look {number}"),
        *(
            ToolCalled(call=call, message=first, name="read", arguments="{}", title="Read")
            for call in calls
        ),
        ModelAnswered(message=first, model="x/y"),
        ToolStarted(call=calls[0]),
        ToolEnded(call=calls[0], result=f"result {number}a"),
        ToolStarted(call=calls[1]),
        ToolEnded(call=calls[1], result=f"result {number}b"),
        ModelAsked(message=second, model="x/y"),
        AgentText(message=second, text=f"done {number}"),
        ModelAnswered(message=second, model="x/y"),
        TurnEnded(turn=TurnId(f"t{number}"), stop_reason="end_turn"),
    ]


def damaged(events: Sequence[AnyEvent], **bodies: bytes) -> list[StoredEvent]:
    """The events as they are read where some have other bytes; `_5` is the fifth."""
    stored = [StoredEvent(seq, 1_000 + seq, event) for seq, event in enumerate(events, 1)]
    for name, body in bodies.items():
        seq = int(name.strip("_"))
        stored[seq - 1] = damaged_event(seq, 1_000 + seq, body)
    return stored


def sent(events: Sequence[AnyEvent]) -> Sequence[Message]:
    context = Context()
    context.feed(events)
    return context.messages


def assert_sound(messages: Sequence[Message]) -> None:
    """That it is a conversation which a provider takes."""
    assert not messages or isinstance(messages[0], UserSide)
    for message, following in pairwise([*messages, None]):
        calls = [part.call for part in message.parts if isinstance(part, AnswerCall)]  # type: ignore[union-attr]  # never None
        results: Sequence[object] = [] if following is None else following.parts
        assert calls == [part.call for part in results if isinstance(part, ToolResult)]
        assert not (isinstance(message, ModelSide) and isinstance(following, ModelSide))


@pytest.mark.parametrize("seed", range(6))
def test_the_model_gets_a_consistent_conversation_after_any_loss(seed: int) -> None:
    source = random.Random(seed)
    events: list[AnyEvent] = [SessionStarted(cwd="/w"), *turn(1), *turn(2), *turn(3)]
    for _ in range(150):
        bodies = {}
        for _ in range(source.choice([1, 1, 2, 3, 9])):
            place = source.randrange(len(events))
            body = encode_event(events[place])
            bodies[f"_{place + 1}"] = source.choice([b"\xff", body[: source.randrange(len(body))]])
        stored = damaged(events, **bodies)
        found = recovered_events(stored)
        assert found == recovered_events(stored)
        assert_sound(sent([*found, *close_open_turn(found)]))
        kept = {one.text for one in found if isinstance(one, AgentText)}
        whole = [one.event.text for one in stored if isinstance(one.event, AgentText)]
        assert kept >= set(whole)
        results = {one.result for one in found if isinstance(one, ToolEnded)}
        assert results >= {one.event.result for one in stored if isinstance(one.event, ToolEnded)}


def test_a_sound_conversation_is_not_touched() -> None:
    stored = damaged(turn(1))
    assert readable_events(stored) is stored
    assert recovered_events(stored) == turn(1)
    assert [item.event for item in recover(stored)] == turn(1)


def test_a_loss_is_reported_to_the_user_in_their_language_and_to_the_model() -> None:
    found = recovered_events(damaged(turn(1), _2=b'{"event":"user_message","mes'))
    note = found[1]
    assert isinstance(note, NoticeShown)
    assert "a part of the conversation is missing" in note.title
    assert "acp-agent sessions check" in note.description
    in_chinese = localize(note, translator_for("zh"))
    assert isinstance(in_chinese, NoticeShown)
    assert "有一部分缺失" in in_chinese.title
    said = sent(found)[0].parts[0]
    assert isinstance(said, UserText)
    assert "a part is missing here" in said.text
    assert len(sent(found)) == 4  # the note, an answer, its results, an answer


def test_adjacent_lost_events_have_one_note_at_their_place_and_time() -> None:
    stored = damaged(turn(1), _8=b"", _9=b"", _10=b"", _12=b"")
    notes = [one for one in recover(stored) if isinstance(one.event, NoticeShown)]
    assert [(one.seq, one.at) for one in notes] == [(8, 1_008), (12, 1_012)]


TEXTS = {
    b'{"event":"agent_text","message":"m1a","text":"look 1 and th': "look 1 and th",
    b'{"event":"agent_text","message":"m1a","text":"look \xff 1"}': "look \ufffd 1",
    b'{"event":"agent_text","message":"m1a","text":"look \x01 1"}': "look   1",
    '{"event":"agent_text","message":"m1a","text":"日本 1"2"}'.encode(): "日本 1",
}


@pytest.mark.parametrize("body", TEXTS)
def test_a_text_that_is_damaged_is_read_as_far_as_it_goes(body: bytes) -> None:
    found = recovered_events(damaged(turn(1), _4=body))
    texts = [one.text for one in found if isinstance(one, AgentText)]
    assert texts == [TEXTS[body], "done 1"]
    note = next(one for one in found if isinstance(one, NoticeShown))
    assert "a part of the conversation is incomplete" in note.title


def test_a_call_whose_arguments_are_cut_off_stays_a_call_with_its_result() -> None:
    body = b'{"event":"tool_called","call":"c1a","message":"m1a","name":"read","arguments":"{\\"pa'
    found = recovered_events(damaged(turn(1), _5=body))
    call = next(one for one in found if isinstance(one, ToolCalled))
    assert (call.call, call.name, call.arguments) == ("c1a", "read", "{}")
    assert_sound(sent(found))


def test_a_call_whose_beginning_is_lost_keeps_its_result() -> None:
    found = recovered_events(damaged(turn(1), _5=b"{"))
    results = [part for part in sent(found)[2].parts if isinstance(part, ToolResult)]
    assert [(one.call, one.text) for one in results] == [
        ("c1a", "result 1a"), ("c1b", "result 1b"),
    ]  # fmt: skip


def test_a_lost_result_is_reported_with_its_call_and_the_other_result_stays() -> None:
    found = recovered_events(damaged(turn(1), _9=b"{"))
    results = [part for part in sent(found)[2].parts if isinstance(part, ToolResult)]
    assert [(one.call, one.failed) for one in results] == [("c1a", True), ("c1b", False)]
    assert "is lost" in results[0].text


@pytest.mark.parametrize("place", [5, 9])
def test_a_call_of_which_one_id_is_damaged_is_not_shown_as_running(place: int) -> None:
    events = turn(1)
    events[place - 1] = msgspec.structs.replace(events[place - 1], call=CallId("c1x"))
    found = recovered_events(damaged(events))
    calls = [event.call for event in found if isinstance(event, ToolCalled)]
    ended = [event.call for event in found if isinstance(event, ToolEnded)]
    assert sorted(calls) == sorted(ended)
    assert "c1b" in ended
    assert_sound(sent(found))


def test_a_turn_whose_end_is_lost_at_the_end_of_the_journal_is_closed_once() -> None:
    found = recovered_events(damaged(turn(1)[:-1], _1=b"", _14=b""))
    cut = close_open_turn(found)
    assert [type(one) for one in cut] == [TurnInterrupted]
    again = recovered_events(
        [*damaged(turn(1)[:-1], _1=b"", _14=b""), StoredEvent(15, 1_015, cut[0])]
    )
    assert again == [*found, *cut]
    assert close_open_turn(again) == []


def test_the_work_of_a_child_stays_consistent_if_a_part_is_lost() -> None:
    work: list[AnyEvent] = [
        SubagentChanged(session=CHILD, state="running"),
        *(ChildWorked(session=CHILD, call=TASK, did=event) for event in turn(2)),
        SubagentChanged(session=CHILD, state="idle", stop_reason="end_turn"),
    ]
    events = [*turn(1)[:8], *work, *turn(1)[8:]]
    for seq in range(12, 24):  # within the child's turn, behind the task
        found = recovered_events(damaged(events, **{f"_{seq}": b'{"event":"child_worked","ses'}))
        assert_sound(sent(found))
        assert_sound(sent([one.did for one in found if isinstance(one, ChildWorked)]))
        assert sum(isinstance(one, NoticeShown) for one in found) == 1


def test_events_of_a_newer_version_are_reported_once_and_stop_nothing() -> None:
    stored: list[StoredEvent] = []
    for seq, event in enumerate([*turn(1), *turn(2)], 1):
        new = UnknownEvent("hologram_shown", b'{"event":"hologram_shown"}')
        stored.append(StoredEvent(seq, 0, new if seq in {3, 9, 20} else event))
    notes = [one.event for one in recover(stored) if isinstance(one.event, NoticeShown)]
    assert [note.description for note in notes] == ["Update acp-agent to see it."]
    assert notes[0].for_model == ""
    assert_sound(sent(recovered_events(stored)))


@pytest.mark.parametrize("old", ["c1a", "m1a", "m1b", "t1", "u1"])
def test_an_id_that_is_damaged_and_still_an_id_leaves_a_conversation_that_a_provider_takes(
    old: str,
) -> None:
    events = [*turn(1), *turn(2)]
    for place, event in enumerate(events):
        body = encode_event(event)
        changed = msgspec.json.decode(
            body.replace(f'"{old}"'.encode(), b'"x\\u007f"'), type=AnyEvent
        )
        found: list[AnyEvent] = [*events[:place], changed, *events[place + 1 :]]
        assert_sound(sent([*found, *close_open_turn(found)]))
