"""Decode a streamed answer of Anthropic's Messages API and compatible services.

https://platform.claude.com/docs/en/build-with-claude/streaming.
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
    SearchEnded,
    SearchStarted,
    Source,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
)
from acp_agent.models.providers import Provider
from acp_agent.models.stream_events import ended_call, event_decoder, normalize_usage

_SEARCH_RESULT = "web_search_tool_result"
_STOPS: dict[str, Literal["end_turn", "tool_calls", "max_tokens", "paused", "refusal"]] = {
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "pause_turn": "paused",  # the provider interrupted a long answer, to be continued
    "refusal": "refusal",
}


class _OutputDetails(Struct):
    thinking_tokens: int | None = None


class _ServerTools(Struct):
    web_search_requests: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None
    server_tool_use: _ServerTools | None = None


class _Message(Struct):
    usage: _Usage | None = None


class _Content(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: JsonObject | None = None
    tool_use_id: str | None = None
    content: list[JsonObject] | JsonObject | None = None  # of a search: its pages or an error


class _StopDetails(Struct):
    category: str | None = None
    explanation: str | None = None


class _Delta(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | JsonObject | None = None
    citation: JsonObject | None = None
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
    content: list[_Content] | None = None
    stop_reason: str | None = None


class _Block(Struct):
    kind: str
    call: int = 0
    id: str = ""
    name: str = ""
    input: JsonObject | None = None
    signature: str = ""
    data: str = ""
    pieces: list[str] = []

    @property
    def arguments(self) -> list[str]:
        """Return the pieces of the arguments; some services send all of them at the start."""
        return [_json(self.input)] if self.input and not self.pieces else self.pieces


def _json(value: str | JsonObject) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_decode_event = event_decoder(_Event)


class AnthropicDecoder:
    """The decoder of one answer; see `Decoder`."""

    def __init__(self, provider: Provider, model: str) -> None:
        self.ended = False
        self._provider = provider
        self._model = model
        self._started = False  # whether there is content
        self._blocks: dict[int, _Block] = {}
        self._calls: list[_Block] = []
        self._searches: dict[str, JsonObject] = {}  # the blocks that started running searches
        self._citations: dict[str, Source] = {}
        self._stop_reason: str | None = None
        self._stop_details = _StopDetails()
        self._usage = _Usage()
        self._failed: StreamEvent | None = None

    @property
    def answered(self) -> bool:
        """Return whether the API has reported how the answer ended."""
        return self._stop_reason is not None

    @property
    def usage(self) -> Usage:
        """Return the usage that the API has reported so far."""
        return self._total()

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Convert one event of the API and append the result to `events`; see `Decoder`."""
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
            case "message_start" if self._started:
                # A proxy asked again in the middle; the two parts are not one answer.
                self._failed = failures.cut(self._provider.name)
                self.ended = True
            case "message_start":
                if event.message is not None:
                    self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._stop_reason = event.delta.stop_reason
                    self._stop_details = event.delta.stop_details or _StopDetails()
            case "message_stop":
                self.ended = True
            case "message":  # from services that do not stream
                for index, content in enumerate(event.content or ()):
                    self._start(index, content, events)
                self._count(event.usage)
                self._stop_reason = event.stop_reason
                self.ended = True
            case "error" | "" if event.error is not None:
                problem = event.error or {}
                self._failed = failures.from_event(self._provider, problem, model=self._model)
                self.ended = True
            case _:
                pass  # ping, and events that the API may add (its versioning policy)

    def end(self) -> list[StreamEvent]:
        """Return the last events of the answer."""
        if self._failed is not None:
            return [self._failed]
        if self._stop_reason is None and not self.ended:
            return [failures.cut(self._provider.name)]
        self.ended = True
        events: list[StreamEvent] = []
        for index in list(self._blocks):
            self._end_block(index, events)
        stop = _STOPS.get(self._stop_reason or "", "tool_calls" if self._calls else "end_turn")
        # A paused answer continues with the results of its open searches.
        for search in list(self._searches):
            self._end_search(search, None, "" if stop == "paused" else "cut off", events)
        if self._citations:
            events.append(Cited(tuple(self._citations.values())))
        for call in self._calls:
            cut = stop == "max_tokens" and call is self._calls[-1]
            events.append(ended_call(call.call, call.name, call.arguments, cut=cut))
        why = f"{self._stop_details.category or 'refusal'}. {self._stop_details.explanation or ''}"
        finished = Finished(
            stop=stop, why=why.strip() if stop == "refusal" else "", usage=self._total()
        )
        return [*events, finished]

    def _start(self, index: int, content: _Content, events: list[StreamEvent]) -> None:
        block = _Block(
            kind=content.type,
            id=content.id or "",
            name=content.name or "",
            input=content.input,
            signature=content.signature or "",
            data=content.data or "",
        )
        self._started = True
        self._blocks[index] = block
        if content.type == "tool_use":
            block.call = len(self._calls)
            self._calls.append(block)
            events.append(CallStarted(index=block.call, name=block.name))
        elif content.type == _SEARCH_RESULT:
            result = {
                "type": _SEARCH_RESULT,
                "tool_use_id": content.tool_use_id,
                "content": content.content,
            }
            error = content.content if isinstance(content.content, dict) else {}
            why = str(error.get("error_code", "failed")) if error else ""
            self._end_search(content.tool_use_id or "", result, why, events)
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
        if delta.citation is not None:
            source = _source(delta.citation)
            if source is not None:
                self._citations.setdefault(source.url, source)
        if delta.partial_json:
            piece = _json(delta.partial_json)
            block.pieces.append(piece)
            if block.kind == "tool_use":  # the provider runs its own tools itself
                events.append(CallDelta(index=block.call, text=piece))

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
        elif block.kind == "server_tool_use" and block.name == "web_search":
            query_input = _object("".join(block.pieces)) or block.input or {}
            use = {"type": block.kind, "id": block.id, "name": block.name, "input": query_input}
            self._searches[block.id] = use
            events.append(SearchStarted(search=block.id, query=_query(use)))

    def _end_search(
        self, search: str, result: JsonObject | None, error: str, events: list[StreamEvent]
    ) -> None:
        use = self._searches.pop(search, None)  # None: started in the answer that this continues
        blocks = [block for block in (use, result) if block is not None]
        pages = result["content"] if result is not None and not error else ()
        events.append(
            SearchEnded(
                search=search,
                query="" if use is None else _query(use),
                sources=tuple(source for page in pages or () if (source := _source(page))),
                error=error,
                provider_data={"type": "web_search", "blocks": blocks},
            )
        )

    def _count(self, usage: _Usage | None) -> None:
        """Replace counts by newer ones, which are cumulative."""
        if usage is None:
            return
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)

    def _total(self) -> Usage:
        """Return the usage. Anthropic's input excludes cached tokens; ours includes them."""
        counts = self._usage
        cache_read = counts.cache_read_input_tokens or 0
        cache_written = counts.cache_creation_input_tokens or 0
        details = counts.output_tokens_details or _OutputDetails()
        tools = counts.server_tool_use
        return normalize_usage(
            (counts.input_tokens or 0) + cache_read + cache_written,
            counts.output_tokens,
            cache_read=cache_read,
            cache_write=cache_written,
            reasoning=details.thinking_tokens,
            searches=None if tools is None else tools.web_search_requests,
        )


def _object(text: str) -> JsonObject | None:
    try:
        return msgspec.json.decode(text, type=dict)
    except msgspec.DecodeError:
        return None


def _query(use: JsonObject) -> str:
    query = use["input"].get("query")
    return query if isinstance(query, str) else ""


def _source(page: JsonObject) -> Source | None:
    """Return the page of a search result or a citation, or None if it has no address."""
    url, title = page.get("url"), page.get("title")
    if not isinstance(url, str) or not url:
        return None
    return Source(url, title if isinstance(title, str) else "")
