"""Decode a streamed answer of OpenAI's Responses API.

https://developers.openai.com/api/reference/resources/responses/streaming-events. An answer is a
list of items (reasoning, messages, calls). Each item arrives in pieces and then as a whole.
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
from acp_agent.models.stream_events import counted, ended_call, event_decoder


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


class _Open(Struct):
    """An item of which pieces have arrived."""

    kind: str
    call: int = 0
    name: str = ""
    told: list[str] = field(default_factory=list)  # its text or reasoning so far
    summaries: int = 0  # the number of parts of the summary so far
    pieces: list[str] = field(default_factory=list)


_decode_event = event_decoder(_Event)
_decode_response = event_decoder(_Response)

_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})


class OpenAIResponsesDecoder:
    """The decoder of one answer; see `Decoder`."""

    def __init__(self, provider: Provider, model: str) -> None:
        self.ended = False
        self._provider = provider
        self._model = model
        self._items: dict[int, _Open] = {}
        self._early: dict[int, str] = {}  # arguments that arrived before the start of their call
        self._calls: list[_Open] = []
        self._cited: dict[str, Source] = {}
        self._usage = Usage()
        self._searches = 0  # the number of completed searches
        self._refused = False
        self._end: str | None = None  # the API's name for the kind of end
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
        """Convert one event of the API and append the result to `events`.

        Raises:
            msgspec.DecodeError: the event cannot be decoded.
        """
        if data.strip() == b"[DONE]":  # sent by some compatible services, but not by OpenAI
            return
        event = _decode_event(data)
        match event.type.removeprefix("response."):
            case "output_item.added":
                if event.item is not None:
                    self._start(event.output_index, event.item, events)
            case "output_item.done":
                if event.item is not None:
                    self._finish_item(event.output_index, event.item, events)
            case "output_text.annotation.added":
                self._cite([] if event.annotation is None else [event.annotation])
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
                self._say(index, piece, events)
            case "refusal.delta":
                self._refused = True
                self._say(index, piece, events)
            case "reasoning_summary_text.delta":
                self._think(index, event.summary_index, piece, events)
            case "reasoning_text.delta":
                self._think(index, 0, piece, events)
            case "function_call_arguments.delta":
                self._argue(index, piece, events)
            case "content_part.done" if event.part is not None:
                self._finish_content(index, [event.part], events)
            case "output_text.done" | "refusal.done":
                whole = _Content(text=event.text, refusal=event.refusal)
                self._finish_content(index, [whole], events)
            case "reasoning_summary_text.done" | "reasoning_text.done":
                if not self._opened(index, "reasoning").told:
                    self._think(index, event.summary_index, event.text or "", events)
            case "function_call_arguments.done":
                self._finish_arguments(index, event.arguments or "", events)
            case _:
                pass

    def end(self) -> list[StreamEvent]:
        """Return the last events of the answer."""
        if self._failed is not None:
            return [self._failed]
        if self._end is None:
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
        if self._cited:
            events.insert(0, Cited(tuple(self._cited.values())))
        by_provider = stop == "refusal" and not self._refused
        why = self._reason or "refusal" if by_provider else ""
        return [*events, Finished(stop=stop, why=why, usage=self._usage)]

    def _stop(self) -> Literal["end_turn", "tool_calls", "max_tokens", "refusal"]:
        if self._refused or (self._end == "incomplete" and self._reason == "content_filter"):
            return "refusal"
        if self._end == "incomplete":
            return "max_tokens"
        return "tool_calls" if self._calls else "end_turn"

    def _start(self, index: int, item: _Item, events: list[StreamEvent]) -> None:
        opened = self._items[index] = _Open(kind=item.type, name=item.name or "")
        if item.type == "function_call":
            opened.call = len(self._calls)
            self._calls.append(opened)
            events.append(CallStarted(index=opened.call, name=opened.name))
            self._argue(index, self._early.pop(index, ""), events)
        elif item.type == "web_search_call":
            events.append(SearchStarted(search=str(index), query=_query(item.action)))

    def _cite(self, annotations: list[JsonObject]) -> None:
        for source in _sources(annotations):
            self._cited.setdefault(source.url, source)

    def _opened(self, index: int, kind: str) -> _Open:
        return self._items.setdefault(index, _Open(kind=kind))

    def _say(self, index: int, text: str, events: list[StreamEvent]) -> None:
        if text:
            self._opened(index, "message").told.append(text)
            events.append(TextDelta(text))

    def _finish_content(
        self, index: int, content: list[_Content], events: list[StreamEvent]
    ) -> None:
        """Append the text of a whole message that did not arrive in pieces."""
        self._refused = self._refused or any(part.refusal for part in content)
        whole = "".join(part.text or part.refusal or "" for part in content)
        told = "".join(self._opened(index, "message").told)
        if whole.startswith(told):
            self._say(index, whole[len(told) :], events)

    def _think(self, index: int, part: int, text: str, events: list[StreamEvent]) -> None:
        opened = self._opened(index, "reasoning")
        if part >= opened.summaries:
            if opened.told:
                events.append(ThoughtDelta("\n\n"))  # each part of a summary is a paragraph
            opened.summaries = part + 1
        if text:
            opened.told.append(text)
            events.append(ThoughtDelta(text))

    def _argue(self, index: int, text: str, events: list[StreamEvent]) -> None:
        opened = self._items.get(index)
        if opened is None:
            self._early[index] = self._early.get(index, "") + text
        elif opened.kind == "function_call" and text:
            opened.pieces.append(text)
            events.append(CallDelta(index=opened.call, text=text))

    def _finish_arguments(self, index: int, whole: str, events: list[StreamEvent]) -> None:
        """Use the whole arguments of a call if pieces of them were lost."""
        opened = self._items.get(index)
        if opened is None:
            self._early[index] = whole
        elif is_object(whole) and not is_object("".join(opened.pieces)):
            opened.pieces.clear()
            self._argue(index, whole, events)
        elif not opened.pieces:
            self._argue(index, whole, events)

    def _finish_item(self, index: int, item: _Item, events: list[StreamEvent]) -> None:
        if index not in self._items:
            self._start(index, item, events)  # some services send only whole items
        opened = self._items[index]
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
                if not opened.told:
                    self._think(index, 0, _summary(item), events)
                if item.encrypted_content:
                    events.append(ThoughtDone(provider_data))
            case "message":
                self._finish_content(index, item.content or [], events)
                for content in item.content or ():
                    self._cite(content.annotations or [])
                if item.phase:
                    provider_data = {"type": "phase", "phase": item.phase, "model": self._model}
                    events.append(ThoughtDone(provider_data))
            case "function_call":
                opened.name = opened.name or item.name or ""
                given = item.arguments or ""
                whole = given if isinstance(given, str) else msgspec.json.encode(given).decode()
                self._finish_arguments(index, whole, events)
            case "web_search_call":
                action = item.action or {}
                self._searches += action.get("type", "search") == "search"
                found = {"type": item.type, "id": item.id, "status": item.status, "action": action}
                events.append(
                    SearchEnded(
                        search=str(index),
                        query=_query(action),
                        sources=_sources(action.get("sources")),
                        error="failed" if item.status == "failed" else "",
                        provider_data=found,
                    )
                )
            case _:
                pass

    def _finish(self, end: str, response: _Response, events: list[StreamEvent]) -> None:
        for index, item in enumerate(() if self._items else response.output or ()):
            self._finish_item(index, item, events)  # some services send all at the end
        self.ended = True
        if response.usage is not None:
            self._usage = _usage(response.usage, self._searches)
        if response.status in _ENDS:
            end = response.status
        if end in {"completed", "done", "incomplete"}:
            self._end = end
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
    given = action or {}
    queries = given.get("queries")
    listed = queries if isinstance(queries, list) else ()
    candidates = (given.get("query"), ", ".join(map(str, listed)), given.get("url"))
    return next((text for text in candidates if isinstance(text, str) and text), "")


def _sources(given: object) -> tuple[Source, ...]:
    """Return the pages in the sources of a search or in the annotations of a text."""
    pages = [page for page in given if isinstance(page, dict)] if isinstance(given, list) else []
    return tuple(
        Source(page["url"], title if isinstance(title := page.get("title"), str) else "")
        for page in pages
        if isinstance(page.get("url"), str) and page["url"]
    )


def _usage(given: _Usage, searches: int = 0) -> Usage:
    """Convert the usage; as in ours, input includes cached tokens and output includes reasoning."""
    sent = given.input_tokens_details or _InputDetails()
    answered = given.output_tokens_details or _OutputDetails()
    return counted(
        given.input_tokens,
        given.output_tokens,
        cache_read=sent.cached_tokens,
        cache_write=sent.cache_write_tokens,
        reasoning=answered.reasoning_tokens,
        total=given.total_tokens,
        searches=searches,
    )
