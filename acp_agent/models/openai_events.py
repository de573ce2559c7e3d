"""Decode a streamed answer of OpenAI's chat completions API and compatible services.

https://platform.openai.com/docs/api-reference/chat-streaming. The services differ in the fields for
reasoning and usage and in the numbering of the pieces of tool calls. All variants are decoded here.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.events import Usage
from acp_agent.models import failures
from acp_agent.models.base import (
    CallDelta,
    CallStarted,
    Cited,
    Finished,
    Source,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
)
from acp_agent.models.providers import Provider
from acp_agent.models.request_parts import is_object
from acp_agent.models.stream_events import ended_call, event_decoder, normalize_usage

Number = int | float | None
_LENGTH = {"length", "max_tokens", "model_context_window_exceeded"}  # the last one is Zhipu's
_REFUSALS = {"content_filter", "sensitive", "refusal"}
_BROKEN = {"error", "network_error", "insufficient_system_resource"}


class _Function(Struct):
    name: str | None = None
    arguments: str | JsonObject | None = None


class _CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: JsonObject | None = None  # Gemini's signature of its reasoning
    # Some services write the function without the `function` object.
    name: str | None = None
    arguments: str | JsonObject | None = None


class _Part(Struct):
    text: str | None = None
    thinking: list[_Part] | str | None = None  # Mistral's reasoning


class _Citation(Struct):
    url: str | None = None
    title: str | None = None


class _Annotation(Struct):
    url_citation: _Citation | None = None


class _Delta(Struct):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking: str | None = None
    reasoning_text: str | None = None
    reasoning_details: list[JsonObject] | None = None
    refusal: str | None = None
    tool_calls: list[_CallPiece] | None = None
    annotations: list[_Annotation] | None = None
    function_call: _Function | None = None  # the old form, for one call per answer


class _InputDetails(Struct):
    cached_tokens: Number = None
    cache_write_tokens: Number = None


class _OutputDetails(Struct):
    reasoning_tokens: Number = None


class _Usage(Struct):
    prompt_tokens: Number = None
    completion_tokens: Number = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    total_tokens: Number = None
    prompt_cache_hit_tokens: Number = None  # DeepSeek's
    cached_tokens: Number = None  # Kimi's


class _Choice(Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None  # the whole answer, from services that do not stream
    text: str | None = None  # the field of the older API for completions
    finish_reason: str | None = None
    usage: _Usage | None = None  # Kimi's place for it
    error: JsonObject | str | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: JsonObject | str | None = None
    # Some services write the error without the `error` object.
    message: str | None = None
    type: str | None = None
    code: str | int | None = None

    @property
    def problem(self) -> JsonObject | str | None:
        """Return the error in this event, or None."""
        if self.error is not None or self.message is None or self.choices is not None:
            return self.error
        return {"message": self.message, "type": self.type, "code": self.code}


class _Call(Struct):
    index: int
    id: str = ""
    name: str = ""
    pieces: list[str] = []
    provider_data: JsonObject | None = None


_decode_chunk = event_decoder(_Chunk)


class OpenAIDecoder:
    """The decoder of one answer; see `Decoder`."""

    def __init__(self, provider: Provider, model: str) -> None:
        self.ended = False
        self._provider = provider
        self._model = model
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish: str | None = None
        self._choice: int | None = None
        self._usage = Usage()
        self._refused = False
        self._started = False
        self._thinking = False
        self._details: list[JsonObject] = []
        self._citations: dict[str, Source] = {}
        self._failed: StreamEvent | None = None

    @property
    def answered(self) -> bool:
        """Return whether the API has reported how the answer ended."""
        return self._finish is not None

    @property
    def usage(self) -> Usage:
        """Return the usage that the API has reported so far."""
        return self._usage

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Convert one event of the API and append the result to `events`; see `Decoder`."""
        if data.strip() == b"[DONE]":
            self.ended = True
            return
        chunk = _decode_chunk(data)
        problem = chunk.problem
        if problem is not None:
            self._failed = failures.from_event(self._provider, problem, model=self._model)
            self.ended = True
            return
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            if self._choice is None:
                self._choice = choice.index
            if choice.index is not None and choice.index != self._choice:
                continue  # an additional answer that was not requested
            if choice.error is not None:
                self._failed = failures.from_event(self._provider, choice.error, model=self._model)
                self.ended = True
                return
            if choice.usage is not None:
                self._usage = _usage(choice.usage)
            delta = choice.delta
            if delta is None and not self._started:
                delta = choice.message
            if delta is None and choice.text:
                delta = _Delta(content=choice.text)
            if delta is not None:
                self._started = True
                self._delta(delta, events)
            if choice.finish_reason:
                self._finish = choice.finish_reason

    def end(self) -> list[StreamEvent]:
        """Return the last events of the answer."""
        if self._failed is not None:
            return [self._failed]
        if self._finish is None and not self.ended:
            return [failures.cut(self._provider.name)]
        if self._finish in _BROKEN:
            problem = {"message": f"the answer ended with {self._finish}", "type": "server_error"}
            return [failures.from_event(self._provider, problem, model=self._model)]
        self.ended = True
        events: list[StreamEvent] = []
        self._end_thought(events)
        if self._citations:
            events.append(Cited(tuple(self._citations.values())))
        stop = self._stop()
        events += [
            ended_call(
                call.index,
                call.name,
                call.pieces,
                cut=stop == "max_tokens" and call is self._calls[-1],
                provider_data=call.provider_data,
            )
            for call in self._calls
            if call.name or "".join(call.pieces).strip() not in {"", "{}"}
        ]
        by_provider = stop == "refusal" and not self._refused
        why = self._finish or "refusal" if by_provider else ""
        events.append(Finished(stop=stop, why=why, usage=self._usage))
        return events

    def _stop(self) -> Literal["end_turn", "tool_calls", "max_tokens", "refusal"]:
        if self._refused or self._finish in _REFUSALS:
            return "refusal"
        if self._finish in _LENGTH:
            return "max_tokens"
        # Some services report "stop" after calls too.
        return "tool_calls" if self._calls else "end_turn"

    def _delta(self, delta: _Delta, events: list[StreamEvent]) -> None:
        for annotation in delta.annotations or ():
            cited = annotation.url_citation
            if cited is not None and cited.url:
                self._citations.setdefault(cited.url, Source(cited.url, cited.title or ""))
        content = delta.content
        thought = delta.reasoning_content or delta.reasoning or delta.thinking
        thought = thought or delta.reasoning_text
        if isinstance(content, list):
            thought = thought or "".join(_text(part.thinking) for part in content)
            content = _text(content)
        if delta.reasoning_details:
            _join_details(self._details, delta.reasoning_details)
            self._thinking = True
        if thought:
            self._thinking = True
            events.append(ThoughtDelta(thought))
        if content:
            self._end_thought(events)
            events.append(TextDelta(content))
        if delta.refusal:
            self._end_thought(events)
            self._refused = True
            events.append(TextDelta(delta.refusal))
        pieces = delta.tool_calls or ()
        if delta.function_call is not None and not pieces:
            pieces = [_CallPiece(index=0, function=delta.function_call)]
        for piece in pieces:
            self._end_thought(events)
            self._piece(piece, events)

    def _end_thought(self, events: list[StreamEvent]) -> None:
        if not self._thinking:
            return
        self._thinking = False
        thoughts_field = self._provider.dialect.thoughts_back
        if thoughts_field == "reasoning_details" and self._details:
            events.append(ThoughtDone({"reasoning_details": self._details}))
        elif thoughts_field == "reasoning_content":
            events.append(ThoughtDone({"field": "reasoning_content"}))
        self._details = []

    def _piece(self, piece: _CallPiece, events: list[StreamEvent]) -> None:
        function = piece.function or _Function(name=piece.name, arguments=piece.arguments)
        call = self._find_call(piece, function)
        if piece.extra_content:
            call.provider_data = {
                "extra_content": piece.extra_content,
                "provider": self._provider.id,
            }
        arguments = function.arguments
        text = msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else arguments
        begins = text.lstrip().startswith("{") if text else function.name != call.name
        if function.name and call.name and begins and is_object("".join(call.pieces)):
            # Another call with the same index, unless the event only repeats the call.
            if piece.id and piece.id == call.id and text == "".join(call.pieces):
                return
            call = self._new_call(piece)
            if piece.index is not None:
                self._by_index[piece.index] = call
        if function.name and call.name and not call.pieces and function.name != call.name:
            call.name += function.name  # some services send a name in pieces
        elif function.name and not call.name:
            call.name = function.name
            events.append(CallStarted(index=call.index, name=call.name))
            events.extend(CallDelta(index=call.index, text=text) for text in call.pieces)
        if text:
            call.pieces.append(text)
            if call.name:
                events.append(CallDelta(index=call.index, text=text))

    def _find_call(self, piece: _CallPiece, function: _Function) -> _Call:
        """Return the call that a piece belongs to, by its index or id, or a new call."""
        if piece.index is not None:
            call = self._by_index.get(piece.index)
            # Gemini gives every call the index 0; only the ids differ.
            another = bool(call and piece.id and call.id and piece.id != call.id and function.name)
            if call is None or another:
                call = self._new_call(piece)
                self._by_index[piece.index] = call
            elif piece.id and not call.id:
                call.id = piece.id
            return call
        last = self._calls[-1] if self._calls else None
        if piece.id:
            existing = next((call for call in self._calls if call.id == piece.id), None)
            return existing or self._new_call(piece)
        if last is None or (function.name and last.name):
            return self._new_call(piece)
        return last

    def _new_call(self, piece: _CallPiece) -> _Call:
        call = _Call(index=len(self._calls), id=piece.id or "")
        self._calls.append(call)
        return call


def _usage(counts: _Usage) -> Usage:
    input_details = counts.prompt_tokens_details or _InputDetails()
    output_details = counts.completion_tokens_details or _OutputDetails()
    return normalize_usage(
        counts.prompt_tokens,
        counts.completion_tokens,
        cache_read=input_details.cached_tokens
        or counts.prompt_cache_hit_tokens
        or counts.cached_tokens,
        cache_write=input_details.cache_write_tokens,
        reasoning=output_details.reasoning_tokens,
        total=counts.total_tokens,
    )


def _text(content: list[_Part] | str | None) -> str:
    return (
        content if isinstance(content, str) else "".join(part.text or "" for part in content or ())
    )


def _join_details(details: list[JsonObject], pieces: list[JsonObject]) -> None:
    """Add pieces of OpenRouter's `reasoning_details`, joining the texts of the same part."""
    for piece in pieces:
        last = details[-1] if details else None
        is_same_part = last is not None and all(
            last.get(key) == piece.get(key) for key in ("type", "index", "format")
        )
        if last is None or not is_same_part or piece.get("type") == "reasoning.encrypted":
            details.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in {"text", "summary"} and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value
