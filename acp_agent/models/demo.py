"""The offline model `demo/demo`: no network and no language model, but the real tools.

It is there to try the agent without a key, to show an editor everything that it can be shown, and
to test with. It says what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec

from acp_agent.events import Usage
from acp_agent.models.base import (
    CallDelta,
    CallDone,
    CallStarted,
    Driver,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
)
from acp_agent.models.demo_conversation import next_step
from acp_agent.models.demo_script import Step

_WORDS_PER_BATCH = 8
_CHARACTERS_PER_TOKEN = 4  # an estimate, as there is no tokenizer behind this model


class DemoDriver(Driver):
    """Answers every request from its own small script; see `acp_agent.models.demo_conversation`."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Answer in words, a few to a batch, then the calls, then `Finished`."""
        step = next_step(request)
        for batch in _batches(step):
            yield batch
            await asyncio.sleep(0)  # a real model lets the loop run between two reads
        usage = _usage(request, step)
        yield [Finished(stop="tool_calls" if step.calls else "end_turn", usage=usage)]

    async def aclose(self) -> None:
        """Nothing is open."""


def _batches(step: Step) -> Iterator[Sequence[StreamEvent]]:
    yield from _worded(step.thought, ThoughtDelta)
    yield from _worded(step.text, TextDelta)
    for index, call in enumerate(step.calls):
        arguments = msgspec.json.encode(call.arguments).decode()
        half = len(arguments) // 2
        yield [
            CallStarted(index=index, name=call.tool),
            CallDelta(index=index, text=arguments[:half]),
        ]
        yield [
            CallDelta(index=index, text=arguments[half:]),
            CallDone(index=index, name=call.tool, arguments=arguments),
        ]


def _worded(text: str, kind: type[TextDelta | ThoughtDelta]) -> Iterator[Sequence[StreamEvent]]:
    """`text` in pieces that end at spaces and join to the whole again."""
    pieces = text.split(" ")
    words = [f"{piece} " for piece in pieces[:-1]] + [piece for piece in pieces[-1:] if piece]
    for start in range(0, len(words), _WORDS_PER_BATCH):
        yield [kind(word) for word in words[start : start + _WORDS_PER_BATCH]]


def _usage(request: ModelRequest, step: Step) -> Usage:
    sent = len(request.system) + sum(
        len(msgspec.json.encode(part)) for part in (*request.messages, *request.tools)
    )
    said = len(step.text) + len(step.thought) + len(msgspec.json.encode(step.calls))
    return Usage(input=sent // _CHARACTERS_PER_TOKEN, output=said // _CHARACTERS_PER_TOKEN)
