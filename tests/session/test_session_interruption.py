"""How the journal of a turn that the process did not survive is closed."""

from __future__ import annotations

import msgspec
import pytest

from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    BackgroundCommandChanged,
    ChildWorked,
    CompactionChanged,
    ModelAnswered,
    ModelAsked,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.session.history.interruption import (
    close_lost_commands,
    close_open_turn,
    find_interruption,
)
from tests.support import child_work

STARTED = TurnStarted(turn=TurnId("t"))
ENDED = TurnEnded(turn=TurnId("t"), stop_reason="end_turn")


def said(message: str) -> AgentText:
    return AgentText(message=MessageId(message), text="x")


def answered(message: str) -> ModelAnswered:
    return ModelAnswered(message=MessageId(message), model="m")


def called(call: str) -> ToolCalled:
    return ToolCalled(
        call=CallId(call), message=MessageId("a"), name="n", arguments="{}", title="t"
    )


def ended(call: str) -> ToolEnded:
    return ToolEnded(call=CallId(call))


@pytest.mark.parametrize(
    "events",
    [
        [],
        [STARTED, said("a"), answered("a"), ENDED],
        [STARTED, said("a"), TurnInterrupted(turn=TurnId("t"), message=MessageId("i"))],
    ],
)
def test_a_journal_without_an_open_turn_needs_nothing(events: list[AnyEvent]) -> None:
    assert find_interruption(events) is None


@pytest.mark.parametrize(
    ("events", "cut", "calls"),
    [
        ([STARTED], None, ()),
        ([STARTED, ModelAsked(message=MessageId("a"), model="m")], None, ()),
        ([STARTED, said("a")], "a", ()),
        ([STARTED, AgentThought(message=MessageId("a"), text="hm")], "a", ()),
        ([STARTED, said("a"), answered("a")], None, ()),
        ([STARTED, said("a"), said("local"), answered("local"), said("a")], "a", ()),
        ([STARTED, said("a"), answered("other")], "a", ()),
        ([STARTED, called("1"), called("2"), answered("a"), ended("1")], None, ("2",)),
        ([STARTED, called("1"), ToolStarted(call=CallId("1"))], None, ("1",)),
        ([STARTED, said("a"), called("1"), ENDED, STARTED], None, ()),
    ],
)
def test_an_open_turn_is_closed_with_what_was_cut_off_in_it(
    events: list[AnyEvent], cut: str | None, calls: tuple[str, ...]
) -> None:
    found = find_interruption(events)
    assert found is not None
    assert (found.turn, found.cut, found.calls) == ("t", cut, calls)
    assert find_interruption([*events, found]) is None


def test_a_compaction_that_was_cut_off_is_closed_as_failed_before_the_turn_is() -> None:
    begun = CompactionChanged(compaction="c", status="in_progress")
    ended = CompactionChanged(compaction="b", status="completed", summary="s")
    failed, cut = close_open_turn(
        [STARTED, msgspec.structs.replace(begun, compaction="b"), ended, begun]
    )
    assert isinstance(failed, CompactionChanged)
    assert (failed.compaction, failed.status) == ("c", "failed")
    assert isinstance(cut, TurnInterrupted)
    assert close_open_turn([STARTED, begun, ENDED]) == []


def test_a_working_child_is_closed_with_its_open_calls() -> None:
    begun = [
        *child_work.begun(),
        *child_work.announced(),
        *child_work.did(
            said("child"),
            called("inner"),
            CompactionChanged(compaction="c", status="in_progress"),
        ),
    ]
    *closed, parent = close_open_turn(begun)
    assert isinstance(parent, TurnInterrupted)
    assert parent.calls == (child_work.TASK,)
    compaction, cut, changed = closed
    for event in (compaction, cut):
        assert isinstance(event, ChildWorked)
        assert (event.session, event.call) == (child_work.CHILD, child_work.TASK)
    assert isinstance(compaction, ChildWorked)
    assert isinstance(compaction.did, CompactionChanged)
    assert compaction.did.status == "failed"
    assert isinstance(cut, ChildWorked)
    assert isinstance(cut.did, TurnInterrupted)
    assert (cut.did.cut, cut.did.calls) == ("child", ("inner",))
    assert changed == SubagentChanged(
        session=child_work.CHILD, state="idle", stop_reason="cancelled"
    )
    assert close_open_turn([*begun, *closed, parent]) == []


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_child_is_closed_however_little_it_did(length: int) -> None:
    begun = [*child_work.begun(), *child_work.announced()[:length]]
    assert [type(event) for event in close_open_turn(begun)][-2:] == [
        SubagentChanged,
        TurnInterrupted,
    ]
    done = [*child_work.begun(), *child_work.announced(), *child_work.done()]
    assert [type(event) for event in close_open_turn(done)] == [TurnInterrupted]


def test_a_background_command_of_a_child_is_lost_with_the_process_too() -> None:
    started = BackgroundCommandChanged(call=CallId("inner"), name="1", status="running")
    (lost,) = close_lost_commands(child_work.did(started))
    assert isinstance(lost, ChildWorked)
    assert lost.session == child_work.CHILD
    assert isinstance(lost.did, BackgroundCommandChanged)
    assert (lost.did.call, lost.did.status) == ("inner", "lost")
    assert close_lost_commands([*child_work.did(started), lost]) == []
