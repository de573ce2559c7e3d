"""What follows from a session's journal, however it is taken in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from acp_agent.agent.loop_detection import LoopLimits
from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ConfigChanged,
    ModelAnswered,
    ModelAsked,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Usage,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.session.manager import SessionManager
from acp_agent.session.state import SessionState
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import Desk

TURNS = 4


def turn(number: int) -> list[AnyEvent]:
    """A turn with a call, which is the same one in every turn and fails."""
    message, call = MessageId(f"answer {number}"), CallId(f"call {number}")
    return [
        TurnStarted(turn=TurnId(f"turn {number}")),
        UserMessage(message=MessageId(f"words {number}"), content=(TextBlock(text="Again"),)),
        ModelAsked(message=message, model="openai/gpt-5"),
        AgentText(message=message, text="Let me look."),
        ToolCalled(call=call, message=message, name="read", arguments="{}", title="Read"),
        ModelAnswered(message=message, model="openai/gpt-5", usage=Usage(input=100, output=10)),
        UsageReported(used=110, size=1000, cost=0.5 * (number + 1)),
        ToolEnded(call=call, failed=True, result="there is no such file"),
        TurnEnded(turn=TurnId(f"turn {number}"), stop_reason="end_turn"),
    ]


JOURNAL: Sequence[AnyEvent] = [
    ConfigChanged(option="mode", value="full"),
    TitleChanged(title="A file"),
    *(event for number in range(TURNS) for event in turn(number)),
]


def what_follows(state: SessionState) -> list[object]:
    """All that is asked of a state."""
    context = state.context
    return [
        list(context.messages),
        (context.tokens, context.measured, context.awaits_answer),
        state.loop_detector.next_step(LoopLimits(warn=1, ask=2, stop=3)),
        (state.title, state.cost, state.turns, state.turn_is_open, state.settings.mode),
        (state.spent.tokens, state.spent_in_turn.tokens, state.turn_usage, state.last_usage),
    ]


def test_a_restored_state_equals_the_live_one(desk: Desk) -> None:
    lived = SessionState(desk.services, None)
    for event in JOURNAL:
        lived.apply([event])
    restored = SessionState(desk.services, None)
    restored.restore(JOURNAL)
    assert what_follows(restored) == what_follows(lived)
    assert len(restored.context.messages) == 3 * TURNS


def test_a_loop_in_a_restored_journal_is_detected_after_any_first_request(desk: Desk) -> None:
    restored = SessionState(desk.services, None)
    restored.restore(JOURNAL)
    assert restored.loop_detector.next_step(LoopLimits(warn=1)) is not None


@pytest.mark.parametrize("looks", [False, True])
def test_events_after_a_restored_journal_follow_it(desk: Desk, *, looks: bool) -> None:
    lived = SessionState(desk.services, None)
    lived.apply([*JOURNAL, *turn(TURNS)])
    restored = SessionState(desk.services, None)
    restored.restore(JOURNAL)
    if looks:
        assert what_follows(restored) != what_follows(lived)
    restored.apply(turn(TURNS))
    assert what_follows(restored) == what_follows(lived)


async def test_what_turns_need_is_there_before_the_first_prompt_of_a_session_opened_again(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Hello."))
    await desk.say("Hi")
    await desk.session.close()
    session = await SessionManager(desk.services).open(desk.session.id, str(desk.folder), [])
    assert session.core.state._context.messages == []
    session.opened([])
    async with asyncio.timeout(60):
        while session.core.background:
            await asyncio.sleep(0)
    assert len(session.core.state._context.messages) == 2
    await session.close()
