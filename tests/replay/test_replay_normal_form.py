"""The normal form of a session's events does not depend on when a background command spoke."""

from __future__ import annotations

import pytest

from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    BackgroundCommandChanged,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    Rewound,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.replay.normal_form import arrange
from acp_agent.session.history.checkpoints import UNSAVED

CALL = CallId("call_1")
OUTPUT = ToolOutput(call=CALL, text="later\n")
END = BackgroundCommandChanged(call=CALL, name="1", status="ended", exit_code=0)


def answer(name: str, *pieces: AnyEvent) -> list[AnyEvent]:
    message = MessageId(name)
    request = ModelAsked(message=message, model="m")
    return [request, *pieces, ModelAnswered(message=message, model="m")]


def started() -> list[AnyEvent]:
    """A turn that started a command in the background, and was answered once more."""
    called = ToolCalled(call=CALL, message=MessageId("a"), name="shell", arguments="{}", title="x")
    running = BackgroundCommandChanged(call=CALL, name="1", status="running")
    return [
        TurnStarted(turn=TurnId("turn_1")),
        *answer("a", called),
        ToolStarted(call=CALL),
        running,
        ToolEnded(call=CALL, result="It runs."),
        *answer("b", AgentText(message=MessageId("b"), text="It runs.")),
        TurnEnded(turn=TurnId("turn_1"), stop_reason="end_turn"),
    ]


def with_late(events: list[AnyEvent], output: int, end: int) -> list[AnyEvent]:
    """The events with the output and the end of the command, each behind so many of them."""
    late: list[AnyEvent] = []
    for index, event in enumerate(events, 1):
        late.append(event)
        late += [OUTPUT] * (index == output) + [END] * (index == end)
    return late


@pytest.mark.parametrize("position", [7, 8, 9, 10])
def test_output_belongs_to_its_call_whenever_it_arrived(position: int) -> None:
    events = started()
    assert arrange(with_late(events, position, 10)) == arrange(with_late(events, 7, 10))


@pytest.mark.parametrize(("first_position", "second_position"), [(8, 10), (9, 10)])
def test_an_end_is_placed_by_the_request_that_tells_the_model_of_it(
    first_position: int, second_position: int
) -> None:
    events = started()
    assert arrange(with_late(events, 7, first_position)) == arrange(
        with_late(events, 7, second_position)
    )


@pytest.mark.parametrize("position", [10, 11])
def test_an_end_that_another_request_tells_of_is_another_event(position: int) -> None:
    events = started()
    assert arrange(with_late(events, 7, 7)) != arrange(with_late(events, 7, position))


def test_the_note_of_a_rewind_about_files_is_not_compared() -> None:
    def rewound(text: str, restored: str) -> list[AnyEvent]:
        message = MessageId("said")
        return [
            TurnStarted(turn=TurnId("turn_1")),
            UserMessage(
                message=MessageId("m"), content=(TextBlock(text="/rewind 1 both"),), local=True
            ),
            Rewound(rewind="rew_1", to="msg_1", restored=restored),
            AgentText(message=message, text=text),
            TurnEnded(turn=TurnId("turn_1"), stop_reason="end_turn"),
        ]

    assert arrange(rewound("- `~ a.py`", "ckpt_1")) == arrange(rewound("nothing", ""))


def test_a_notice_that_files_were_not_saved_is_not_compared() -> None:
    turn = started()
    notice = NoticeShown(severity="warning", title=UNSAVED, description="the folder is too large.")
    other = NoticeShown(severity="warning", title="Something else")
    assert arrange([turn[0], notice, *turn[1:]]) == arrange(turn)
    assert arrange([turn[0], other, *turn[1:]]) != arrange(turn)
