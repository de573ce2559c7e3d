"""Reads a streamed answer of Anthropic's Messages API, and of the services that speak it.

https://platform.claude.com/docs/en/build-with-claude/streaming.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct, field

from acp_agent.content import JsonObject
from acp_agent.events import Usage
from acp_agent.models import failures
from acp_agent.models.base import (
    CallDelta,
    CallStarted,
    Finished,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
)
from acp_agent.models.providers import Provider
from acp_agent.models.stream_events import counted, ended_call, event_decoder


class _OutputDetails(Struct):
    thinking_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


class _Message(Struct):
    usage: _Usage | None = None


class _Content(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    name: str | None = None
    input: JsonObject | None = None


class _StopDetails(Struct):
    category: str | None = None
    explanation: str | None = None


class _Delta(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Content | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: JsonObject | None = None


class _Block(Struct):
    kind: str
    call: int = 0
    name: str = ""
    input: JsonObject | None = None
    signature: str = ""
    data: str = ""
    pieces: list[str] = field(default_factory=list)


_decode_event = event_decoder(_Event)

_STOPS: dict[str, Literal["end_turn", "tool_calls", "max_tokens", "refusal"]] = {
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "pause_turn": "max_tokens",  # the provider interrupted a long answer: it is continued
    "refusal": "refusal",
}


class AnthropicDecoder:
    """One answer."""

    def __init__(self, provider: Provider, model: str) -> None:
        self.ended = False
        self._provider = provider
        self._model = model
        self._blocks: dict[int, _Block] = {}
        self._calls: list[_Block] = []
        self._stop: str | None = None
        self._why = _StopDetails()
        self._usage = _Usage()
        self._failed: StreamEvent | None = None

    @property
    def answered(self) -> bool:
        """Whether the API has said how the answer ended."""
        return self._stop is not None

    @property
    def usage(self) -> Usage:
        """What the API has counted so far."""
        return self._total()

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Append what one event says.

        Raises:
            msgspec.DecodeError: the event cannot be read.
        """
        event = _decode_event(data)
        match event.type:
            case "content_block_delta":
                if event.delta is not None:
                    self._delta(event.index, event.delta, events)
            case "content_block_start":
                if event.content_block is not None:
                    self._start(event.index, event.content_block, events)
            case "content_block_stop":
                self._end_block(event.index, events)
            case "message_start":
                if event.message is not None:
                    self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._stop = event.delta.stop_reason
                    self._why = event.delta.stop_details or _StopDetails()
            case "message_stop":
                self.ended = True
            case "error":
                problem = event.error or {}
                self._failed = failures.from_event(self._provider, problem, model=self._model)
                self.ended = True
            case _:
                pass  # ping, and what the API may add (its versioning policy)

    def end(self) -> list[StreamEvent]:
        """The last events of the answer."""
        if self._failed is not None:
            return [self._failed]
        if self._stop is None:
            return [failures.cut(self._provider.name)]
        self.ended = True
        events: list[StreamEvent] = []
        for index in list(self._blocks):
            self._end_block(index, events)
        stop = _STOPS.get(self._stop, "end_turn")
        for call in self._calls:
            text = "".join(call.pieces)
            if not text and call.input:
                text = msgspec.json.encode(call.input).decode()  # whole at its start
            events.append(
                ended_call(
                    call.call, call.name, text, cut=stop == "max_tokens" and call is self._calls[-1]
                )
            )
        why = f"{self._why.category or 'refusal'}. {self._why.explanation or ''}"
        finished = Finished(
            stop=stop, why=why.strip() if stop == "refusal" else "", usage=self._total()
        )
        return [*events, finished]

    def _start(self, index: int, content: _Content, events: list[StreamEvent]) -> None:
        block = _Block(
            kind=content.type,
            name=content.name or "",
            input=content.input,
            signature=content.signature or "",
            data=content.data or "",
        )
        self._blocks[index] = block
        if content.type == "tool_use":
            block.call = len(self._calls)
            self._calls.append(block)
            events.append(CallStarted(index=block.call, name=block.name))
        first = _Delta(text=content.text, thinking=content.thinking)
        self._delta(index, first, events)

    def _delta(self, index: int, delta: _Delta, events: list[StreamEvent]) -> None:
        if delta.text:
            events.append(TextDelta(delta.text))
        if delta.thinking:
            events.append(ThoughtDelta(delta.thinking))
        block = self._blocks.get(index)
        if block is None:
            return
        if delta.signature:
            block.signature += delta.signature
        if delta.partial_json and block.kind == "tool_use":  # the provider runs its own tools
            block.pieces.append(delta.partial_json)
            events.append(CallDelta(index=block.call, text=delta.partial_json))

    def _end_block(self, index: int, events: list[StreamEvent]) -> None:
        block = self._blocks.pop(index, None)
        if block is None:
            return
        # Only the same model accepts its reasoning, so its name is stored too.
        if block.kind == "thinking":
            provider_data = {"type": "thinking", "signature": block.signature, "model": self._model}
            events.append(ThoughtDone(provider_data))
        elif block.kind == "redacted_thinking":
            events.append(
                ThoughtDone({"type": block.kind, "data": block.data, "model": self._model})
            )

    def _count(self, usage: _Usage | None) -> None:
        """Take the newer counts, which are cumulative."""
        if usage is None:
            return
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)

    def _total(self) -> Usage:
        """Anthropic counts cached input beside the rest; ours includes it."""
        given = self._usage
        read = given.cache_read_input_tokens or 0
        written = given.cache_creation_input_tokens or 0
        details = given.output_tokens_details or _OutputDetails()
        return counted(
            (given.input_tokens or 0) + read + written,
            given.output_tokens,
            cache_read=read,
            cache_write=written,
            reasoning=details.thinking_tokens,
        )
