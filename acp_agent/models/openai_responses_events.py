"""Decode a streamed answer of OpenAI's Responses API.

https://developers.openai.com/api/reference/resources/responses/streaming-events. An answer is a
list of items (reasoning, messages, calls). Each item arrives in pieces and then as a whole.
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
from acp_agent.models.request_parts import is_object
from acp_agent.models.stream_events import ended_call, event_decoder, normalize_usage

_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})


class _Content(Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    annotations: list[JsonObject] | None = None


class _Item(Struct):
    type: str = ""
    id: str | None = None
    name: str | None = None
    arguments: str | JsonObject | None = None
    encrypted_content: str | None = None
    summary: list[JsonObject] | None = None
    content: list[_Content] | None = None
    phase: str | None = None
    status: str | None = None
    action: JsonObject | None = None  # of a web search


class _InputDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None
    error: JsonObject | None = None
    incomplete_details: _Incomplete | None = None


class _Event(Struct):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: str | JsonObject | None = None
    text: str | None = None
    refusal: str | None = None
    part: _Content | None = None
    arguments: str | None = None
    item: _Item | None = None
    annotation: JsonObject | None = None
    response: _Response | None = None
    error: JsonObject | None = None
    object: str | None = None
    code: str | int | None = None
    message: str | None = None


class _OpenItem(Struct):
    """An item of which pieces have arrived."""

    kind: str
    call: int = 0
    name: str = ""
    texts: list[str] = []  # its text or reasoning so far
    summaries: int = 0  # the number of parts of the summary so far
    pieces: list[str] = []


_decode_event = event_decoder(_Event)
_decode_response = event_decoder(_Response)


class OpenAIResponsesDecoder:
    """The decoder of one answer; see `Decoder`."""

    def __init__(self, provider: Provider, model: str) -> None:
        self.ended = False
        self._provider = provider
        self._model = model
        self._items: dict[int, _OpenItem] = {}
        self._early_arguments: dict[int, str] = {}  # they arrived before the start of their call
        self._calls: list[_OpenItem] = []
        self._citations: dict[str, Source] = {}
        self._usage = Usage()
        self._searches = 0  # the number of completed searches
        self._refused = False
        self._status: str | None = None  # the API's name for the kind of end
        self._reason: str | None = None
        self._failed: StreamEvent | None = None

    @property
    def answered(self) -> bool:
        """Return whether the API has reported how the answer ended."""
        return self.ended

    @property
    def usage(self) -> Usage:
        """Return the usage that the API has reported so far."""
        return self._usage

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Convert one event of the API and append the result to `events`; see `Decoder`."""
        if data.strip() == b"[DONE]":  # sent by some compatible services, but not by OpenAI
            return
        event = _decode_event(data)
        match event.type.removeprefix("response."):
            case "created" if self._items:
                # A proxy asked again in the middle; the two parts are not one answer.
                self._failed = failures.cut(self._provider.name)
                self.ended = True
            case "output_item.added":
                if event.item is not None:
                    self._start(event.output_index, event.item, events)
            case "output_item.done":
                if event.item is not None:
                    self._finish_item(event.output_index, event.item, events)
            case "output_text.annotation.added":
                self._add_citations([] if event.annotation is None else [event.annotation])
            case "completed" | "incomplete" | "failed" | "cancelled" | "done" as end:
                self._finish(end, event.response or _Response(), events)
            case "" if event.object == "response":  # from services that do not stream
                self._finish("done", _decode_response(data), events)
            case "error" | "" if event.type or event.error is not None:
                self._fail(event.error or {"code": event.code, "message": event.message})
            case kind:
                self._piece(kind, event, events)

    def _piece(self, kind: str, event: _Event, events: list[StreamEvent]) -> None:
        """Convert an event with a piece of an item. Unknown kinds of events are ignored."""
        index, piece = event.output_index, event.delta if isinstance(event.delta, str) else ""
        match kind:
            case "output_text.delta":
                self._add_text(index, piece, events)
            case "refusal.delta":
                self._refused = True
                self._add_text(index, piece, events)
            case "reasoning_summary_text.delta":
                self._add_thought(index, event.summary_index, piece, events)
            case "reasoning_text.delta":
                self._add_thought(index, 0, piece, events)
            case "function_call_arguments.delta":
                self._add_arguments(index, piece, events)
            case "content_part.done" if event.part is not None:
                self._finish_content(index, [event.part], events)
            case "output_text.done" | "refusal.done":
                content = _Content(text=event.text, refusal=event.refusal)
                self._finish_content(index, [content], events)
            case "reasoning_summary_text.done" | "reasoning_text.done":
                if not self._open_item(index, "reasoning").texts:
                    self._add_thought(index, event.summary_index, event.text or "", events)
            case "function_call_arguments.done":
                self._finish_arguments(index, event.arguments or "", events)

    def end(self) -> list[StreamEvent]:
        """Return the last events of the answer."""
        if self._failed is not None:
            return [self._failed]
        if self._status is None:
            return [failures.cut(self._provider.name)]
        stop = self._stop()
        events: list[StreamEvent] = [
            ended_call(
                call.call,
                call.name,
                call.pieces,
                cut=stop == "max_tokens" and call is self._calls[-1],
            )
            for call in self._calls
            if call.name or "".join(call.pieces).strip() not in {"", "{}"}
        ]
        if self._citations:
            events.insert(0, Cited(tuple(self._citations.values())))
        by_provider = stop == "refusal" and not self._refused
        why = self._reason or "refusal" if by_provider else ""
        return [*events, Finished(stop=stop, why=why, usage=self._usage)]

    def _stop(self) -> Literal["end_turn", "tool_calls", "max_tokens", "refusal"]:
        if self._refused or (self._status == "incomplete" and self._reason == "content_filter"):
            return "refusal"
        if self._status == "incomplete":
            return "max_tokens"
        return "tool_calls" if self._calls else "end_turn"

    def _start(self, index: int, item: _Item, events: list[StreamEvent]) -> None:
        open_item = self._items[index] = _OpenItem(kind=item.type, name=item.name or "")
        if item.type == "function_call":
            open_item.call = len(self._calls)
            self._calls.append(open_item)
            events.append(CallStarted(index=open_item.call, name=open_item.name))
            self._add_arguments(index, self._early_arguments.pop(index, ""), events)
        elif item.type == "web_search_call":
            events.append(SearchStarted(search=str(index), query=_query(item.action)))

    def _add_citations(self, annotations: list[JsonObject]) -> None:
        for source in _sources(annotations):
            self._citations.setdefault(source.url, source)

    def _open_item(self, index: int, kind: str) -> _OpenItem:
        return self._items.setdefault(index, _OpenItem(kind=kind))

    def _add_text(self, index: int, text: str, events: list[StreamEvent]) -> None:
        if text:
            self._open_item(index, "message").texts.append(text)
            events.append(TextDelta(text))

    def _finish_content(
        self, index: int, content: list[_Content], events: list[StreamEvent]
    ) -> None:
        """Append the text of a whole message that did not arrive in pieces."""
        self._refused = self._refused or any(part.refusal for part in content)
        full_text = "".join(part.text or part.refusal or "" for part in content)
        previous_text = "".join(self._open_item(index, "message").texts)
        if full_text.startswith(previous_text):
            self._add_text(index, full_text[len(previous_text) :], events)

    def _add_thought(self, index: int, part: int, text: str, events: list[StreamEvent]) -> None:
        open_item = self._open_item(index, "reasoning")
        if part >= open_item.summaries:
            if open_item.texts:
                events.append(ThoughtDelta("\n\n"))  # each part of a summary is a paragraph
            open_item.summaries = part + 1
        if text:
            open_item.texts.append(text)
            events.append(ThoughtDelta(text))

    def _add_arguments(self, index: int, text: str, events: list[StreamEvent]) -> None:
        open_item = self._items.get(index)
        if open_item is None:
            self._early_arguments[index] = self._early_arguments.get(index, "") + text
        elif open_item.kind == "function_call" and text:
            open_item.pieces.append(text)
            events.append(CallDelta(index=open_item.call, text=text))

    def _finish_arguments(self, index: int, arguments: str, events: list[StreamEvent]) -> None:
        """Use the whole arguments of a call if pieces of them were lost."""
        open_item = self._items.get(index)
        if open_item is None:
            self._early_arguments[index] = arguments
        elif is_object(arguments) and not is_object("".join(open_item.pieces)):
            open_item.pieces.clear()
            self._add_arguments(index, arguments, events)
        elif not open_item.pieces:
            self._add_arguments(index, arguments, events)

    def _finish_item(self, index: int, item: _Item, events: list[StreamEvent]) -> None:
        if index not in self._items:
            self._start(index, item, events)  # some services send only whole items
        open_item = self._items[index]
        # Only the same model accepts its encrypted reasoning, so its name is stored too.
        match item.type:
            case "reasoning":
                provider_data = {
                    "type": "reasoning",
                    "id": item.id or "",
                    "summary": item.summary or [],
                    "encrypted_content": item.encrypted_content,
                    "model": self._model,
                }
                if not open_item.texts:
                    self._add_thought(index, 0, _summary(item), events)
                if item.encrypted_content:
                    events.append(ThoughtDone(provider_data))
            case "message":
                self._finish_content(index, item.content or [], events)
                for content in item.content or ():
                    self._add_citations(content.annotations or [])
                if item.phase:
                    provider_data = {"type": "phase", "phase": item.phase, "model": self._model}
                    events.append(ThoughtDone(provider_data))
            case "function_call":
                open_item.name = open_item.name or item.name or ""
                raw = item.arguments or ""
                text = raw if isinstance(raw, str) else msgspec.json.encode(raw).decode()
                self._finish_arguments(index, text, events)
            case "web_search_call":
                action = item.action or {}
                self._searches += action.get("type", "search") == "search"
                data = {"type": item.type, "id": item.id, "status": item.status, "action": action}
                events.append(
                    SearchEnded(
                        search=str(index),
                        query=_query(action),
                        sources=_sources(action.get("sources")),
                        error="failed" if item.status == "failed" else "",
                        provider_data=data,
                    )
                )

    def _finish(self, end: str, response: _Response, events: list[StreamEvent]) -> None:
        for index, item in enumerate(() if self._items else response.output or ()):
            self._finish_item(index, item, events)  # some services send all at the end
        self.ended = True
        if response.usage is not None:
            self._usage = _usage(response.usage, self._searches)
        if response.status in _ENDS:
            end = response.status
        if end in {"completed", "done", "incomplete"}:
            self._status = end
            details = response.incomplete_details
            self._reason = details.reason if details is not None else None
            return
        self._fail(response.error or {"message": f"the answer was {end}", "type": "server_error"})

    def _fail(self, problem: JsonObject) -> None:
        self.ended = True
        self._failed = failures.from_event(self._provider, problem, model=self._model)


def _summary(item: _Item) -> str:
    texts = [part.get("text") for part in item.summary or ()]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _query(action: JsonObject | None) -> str:
    """Return the query of a search, or the address of the page that is read."""
    fields = action or {}
    queries = fields.get("queries")
    query_list = queries if isinstance(queries, list) else ()
    candidates = (fields.get("query"), ", ".join(map(str, query_list)), fields.get("url"))
    return next((text for text in candidates if isinstance(text, str) and text), "")


def _sources(value: object) -> tuple[Source, ...]:
    """Return the pages in the sources of a search or in the annotations of a text."""
    pages = [page for page in value if isinstance(page, dict)] if isinstance(value, list) else []
    return tuple(
        Source(page["url"], title if isinstance(title := page.get("title"), str) else "")
        for page in pages
        if isinstance(page.get("url"), str) and page["url"]
    )


def _usage(counts: _Usage, searches: int = 0) -> Usage:
    """Convert the usage; as in ours, input includes cached tokens and output includes reasoning."""
    input_details = counts.input_tokens_details or _InputDetails()
    output_details = counts.output_tokens_details or _OutputDetails()
    return normalize_usage(
        counts.input_tokens,
        counts.output_tokens,
        cache_read=input_details.cached_tokens,
        cache_write=input_details.cache_write_tokens,
        reasoning=output_details.reasoning_tokens,
        total=counts.total_tokens,
        searches=searches,
    )
