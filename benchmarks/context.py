"""Build and shorten the model's context in a long session."""

from __future__ import annotations

import time

from acp_agent.agent.context import Context
from acp_agent.agent.context_shortening import cut_old_results, leave_out, start_to_keep
from acp_agent.agent.context_size import context_limits, used_tokens
from acp_agent.config.types import ContextConfig
from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ContextTrimmed,
    ModelAnswered,
    ModelAsked,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.models.base import ModelInfo, ModelRequest
from acp_agent.models.openai_request import body
from acp_agent.models.providers import Provider
from benchmarks.table import Row, row

EVENTS = 10_000
ROUNDS = 15
LIMIT = 20.0  # milliseconds

_PROVIDER = Provider(id="openai", name="OpenAI", api="openai", base_url="")


def rows() -> list[Row]:
    """The rows of the context."""
    return [_build(), _trim(), _first()]


def conversation() -> list[AnyEvent]:
    """A session of 10,000 events as real work makes them: words, answers, calls, results."""
    events: list[AnyEvent] = []
    number = 0
    while len(events) < EVENTS:
        number += 1
        call, message = CallId(f"call_{number}"), MessageId(f"msg_{number}")
        last = MessageId(f"last_{number}")
        words = TextBlock(text="Please look at how the parser reads a line, and mend it. " * 3)
        events += [
            TurnStarted(turn=TurnId(f"turn_{number}")),
            UserMessage(message=MessageId(f"user_{number}"), content=(words,)),
            ModelAsked(message=message, model="openai/model"),
            AgentText(message=message, text="Let me look at how the parser reads a line. " * 4),
            ToolCalled(
                call=call,
                message=message,
                name="read",
                arguments='{"path": "/project/src/parser.py", "limit": 200}',
                title="Read src/parser.py",
            ),
            ModelAnswered(message=message, model="openai/model"),
            ToolEnded(
                call=call,
                result="    def parse(self, line):\n        return line.split()\n" * 60,
            ),
            ModelAsked(message=last, model="openai/model"),
            AgentText(message=last, text="The parser splits at white space only. " * 8),
            ModelAnswered(
                message=last, model="openai/model", usage=Usage(input=1_000 * number, output=100)
            ),
            TurnEnded(turn=TurnId(f"turn_{number}"), stop_reason="end_turn"),
        ]
    return events[:EVENTS]


def _fed(events: list[AnyEvent]) -> Context:
    context = Context()
    context.feed(events)
    return context


def _timed(began: float) -> float:
    return (time.perf_counter() - began) * 1e3


def _build() -> Row:
    """One more event, the count, and the messages of the next request."""
    context = _fed(conversation())
    model = ModelInfo(provider="openai", id="model", window=1_000_000)
    times: list[float] = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        words = UserMessage(message=MessageId(f"new_{number}"), content=(TextBlock(text="More."),))
        context.feed([words])
        used_tokens(context, model, 3_000)
        tuple(context.messages)
        times.append(_timed(began))
    return row("context of 10,000 events: build again", "ms", times, plus=LIMIT)


def _trim() -> Row:
    """Everything that may be tried to make room, and the context after it."""
    events = conversation()
    model = ModelInfo(provider="openai", id="model", window=400_000, max_output=16_000)
    room = context_limits(model, ContextConfig())
    times: list[float] = []
    for _ in range(ROUNDS):
        context = _fed(events)
        began = time.perf_counter()
        used = used_tokens(context, model, 3_000)
        before = cut_old_results(context.view, room, used, 1.0, 2_000)
        if before is not None:
            cut_from = context.view.entries[before].id
            context.feed([ContextTrimmed(results_before=cut_from, result_limit=2_000)])
        start_to_keep(context.view, room.recent)
        left_out = leave_out(context.view, room, used_tokens(context, model, 3_000), 1.0, 2_000)
        if left_out is not None:
            context.feed([left_out])
        tuple(context.messages)
        times.append(_timed(began))
    return row("context of 10,000 events: trim", "ms", times, plus=LIMIT)


def _first() -> Row:
    """Folding the whole journal, against writing the request that it makes."""
    events = conversation()
    times: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        context = _fed(events)
        times.append(_timed(began))
        request = ModelRequest(
            model=ModelInfo(provider="openai", id="model"),
            system="",
            messages=tuple(context.messages),
        )
        began = time.perf_counter()
        body(_PROVIDER, request)
        floors.append(_timed(began))
    return row(
        "context of 10,000 events: the first time", "ms", times, "writing its request", floors
    )
