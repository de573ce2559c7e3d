"""Decode a streamed answer of the Gemini API: a series of responses, each with new parts.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
"""

from __future__ import annotations

import json
import re
from typing import Literal

import msgspec
from msgspec import Struct, structs

from acp_agent.content import JsonObject
from acp_agent.events import Usage
from acp_agent.models import failures
from acp_agent.models.base import (
    CallDelta,
    CallDone,
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
from acp_agent.models.stream_events import event_decoder, normalize_usage

_LENGTH = {"MAX_TOKENS", "CONTINUATION"}
# The model failed; the same request may succeed when repeated.
_BROKEN = {
    "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "OTHER",
}  # fmt: skip
_USUAL = {"STOP", "FINISH_REASON_UNSPECIFIED"}
_REFUSALS = {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}


class _FunctionCall(Struct):
    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None
    tool_call: JsonObject | None = None  # of Google's server-side tools
    tool_response: JsonObject | None = None


class _Content(Struct):
    parts: list[_Part] | None = None


class _Web(Struct):
    uri: str | None = None
    title: str | None = None


class _Chunk(Struct):
    web: _Web | None = None


class _Grounding(Struct, rename="camel"):
    web_search_queries: list[str] | None = None
    grounding_chunks: list[_Chunk] | None = None


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: _Grounding | None = None


class _Usage(Struct, rename="camel"):
    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class _Feedback(Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Response(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    prompt_feedback: _Feedback | None = None
    error: JsonObject | None = None


_decode_response = event_decoder(_Response)
# The names of fields as services write them that pass on the objects of Google's Python library.
_STRUCTS = (_Part, _Grounding, _Candidate, _Usage, _Feedback, _Response)
_CAMEL_NAMES = {
    field.name: field.encode_name
    for kind in _STRUCTS
    for field in structs.fields(kind)
    if field.name != field.encode_name
}
_SNAKE_KEY = re.compile(rb'"(?:%s)"\s*:' % "|".join(_CAMEL_NAMES).encode())


def _camel_case(data: bytes) -> bytes:
    """Return a response with its fields renamed; the arguments of calls are not changed."""

    def renamed(value: object) -> object:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            _CAMEL_NAMES.get(key, key): item if key == "args" else renamed(item)
            for key, item in value.items()
        }

    try:
        return json.dumps(renamed(json.loads(data))).encode()
    except (ValueError, RecursionError):
        return data


class GeminiDecoder:
    """The decoder of one answer; see `Decoder`."""

    def __init__(self, provider: Provider, model: str) -> None:
        self.ended = False
        self._provider = provider
        self._model = model
        self._calls: list[CallDone] = []
        self._searches: dict[str, JsonObject] = {}  # the parts that started running searches
        self._searched = False
        self._queries: dict[str, None] = {}
        self._citations: dict[str, Source] = {}
        self._answered = False
        self._has_output = False  # text or a call has arrived
        self._finish: str | None = None
        self._detail = ""
        self._blocked: str | None = None
        self._counts: _Usage | None = None
        self._failed: StreamEvent | None = None

    @property
    def answered(self) -> bool:
        """Return whether the API has reported how the answer ended."""
        return self._finish is not None

    @property
    def usage(self) -> Usage:
        """Return the usage that the API has reported so far."""
        return Usage() if self._counts is None else _usage(self._counts, len(self._queries))

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Convert one response and append the result to `events`. Raises msgspec.DecodeError."""
        response = _decode_response(_camel_case(data) if _SNAKE_KEY.search(data) else data)
        if response.error is not None:
            self._failed = failures.from_event(self._provider, response.error, model=self._model)
            self.ended = True
            return
        if response.usage_metadata is not None:
            self._counts = response.usage_metadata
        if response.prompt_feedback is not None and response.prompt_feedback.block_reason:
            self._blocked = response.prompt_feedback.block_reason
            self._detail = response.prompt_feedback.block_reason_message or ""
        for candidate in (response.candidates or ())[:1]:
            self._answered = True
            self._ground(candidate.grounding_metadata or _Grounding())
            for part in (candidate.content or _Content()).parts or ():
                self._part(part, events)
            if candidate.finish_reason:
                self._finish = candidate.finish_reason
                self._detail = candidate.finish_message or self._detail

    def end(self) -> list[StreamEvent]:
        """Return the last events of the answer."""
        if self._failed is not None:
            return [self._failed]
        if not self._answered and self._blocked is None:
            return [failures.empty(self._provider)]
        if self._finish is None and self._blocked is None:
            return [failures.cut(self._provider.name)]
        if self._finish in _BROKEN:
            description = f"the answer ended with {self._finish}"
            return [failures.malformed(self._provider, description)]
        stop = self._stop()
        why = f"{self._finish or self._blocked or 'refusal'}. {self._detail}"
        finished = Finished(
            stop=stop, why=why.strip() if stop == "refusal" else "", usage=self.usage
        )
        return [*self._searches_at_end(), *self._calls, finished]

    def _ground(self, grounding: _Grounding) -> None:
        """Collect the queries and sources of the answer; responses may repeat them."""
        self._queries.update(dict.fromkeys(grounding.web_search_queries or ()))
        for chunk in grounding.grounding_chunks or ():
            if chunk.web is not None and chunk.web.uri:
                self._citations[chunk.web.uri] = Source(chunk.web.uri, chunk.web.title or "")

    def _searches_at_end(self) -> list[StreamEvent]:
        """End running searches. Older models report their searches only at the end."""
        events: list[StreamEvent] = []
        for search in list(self._searches):
            self._end_search({"id": search}, None, events, error="cut off")
        sources = tuple(self._citations.values())
        if self._queries and not self._searched:
            query = ", ".join(self._queries)
            events.append(
                SearchEnded(
                    search="grounding",
                    query=query,
                    sources=sources,
                    provider_data={"gemini": self._model, "parts": []},
                )
            )
        if sources:
            events.append(Cited(sources))
        return events

    def _start_search(
        self, call: JsonObject, signature: str | None, events: list[StreamEvent]
    ) -> None:
        search = str(call.get("id", ""))
        self._searches[search] = _signed({"toolCall": call}, signature)
        self._searched = True
        queries = call["args"].get("queries") if isinstance(call.get("args"), dict) else None
        query = ", ".join(map(str, queries)) if isinstance(queries, list) else ""
        events.append(SearchStarted(search=search, query=query))

    def _end_search(
        self,
        response: JsonObject,
        signature: str | None,
        events: list[StreamEvent],
        *,
        error: str = "",
    ) -> None:
        search = str(response.get("id", ""))
        started_part = self._searches.pop(search, None)
        if started_part is None:
            return
        search_parts = [started_part, _signed({"toolResponse": response}, signature)]
        # A search that was cut off is not sent back: the API refuses a call without a response.
        data: JsonObject = {"gemini": self._model, "parts": [] if error else search_parts}
        events.append(SearchEnded(search=search, error=error, provider_data=data))

    def _stop(self) -> Literal["end_turn", "tool_calls", "max_tokens", "refusal"]:
        if self._finish in _LENGTH:
            return "max_tokens"
        if self._finish is None or self._finish in _REFUSALS:
            return "refusal"
        if self._finish not in _USUAL and not self._has_output:
            return "refusal"  # for an unknown reason
        return "tool_calls" if self._calls else "end_turn"

    def _part(self, part: _Part, events: list[StreamEvent]) -> None:
        signature = part.thought_signature
        if part.function_call is not None:
            self._call(part.function_call, signature, events)
            return
        if part.tool_call is not None:
            self._start_search(part.tool_call, signature, events)
            return
        if part.tool_response is not None:
            self._end_search(part.tool_response, signature, events)
            return
        text = part.text or ""
        if text and part.thought:
            events.append(ThoughtDelta(text))
        elif text:
            self._has_output = True
            events.append(TextDelta(text))
        if signature:  # even without text
            # The model is stored too, because only the same model accepts its signature.
            kind = "thought" if part.thought else "text"
            provider_data = {
                "part": kind,
                "length": len(text),
                "thoughtSignature": signature,
                "gemini": self._model,
            }
            events.append(ThoughtDone(provider_data))

    def _call(self, call: _FunctionCall, signature: str | None, events: list[StreamEvent]) -> None:
        """Start a call. It arrives as a whole, but `CallDone` follows at the end of the answer."""
        self._has_output = True
        index = len(self._calls)
        arguments = bytes(call.args).decode()
        if arguments == "null":
            arguments = "{}"
        provider_data: JsonObject = {"gemini": self._model}
        if signature is not None:
            provider_data["thoughtSignature"] = signature
        if call.id is not None:
            provider_data["id"] = call.id
        name = call.name or ""
        events.append(CallStarted(index=index, name=name))
        events.append(CallDelta(index=index, text=arguments))
        self._calls.append(
            CallDone(index=index, name=name, arguments=arguments, provider_data=provider_data)
        )


def _signed(part: JsonObject, signature: str | None) -> JsonObject:
    return part if signature is None else {**part, "thoughtSignature": signature}


def _usage(counts: _Usage, searches: int = 0) -> Usage:
    """Convert the usage: Gemini's output excludes thoughts, its prompt includes cached tokens."""
    thoughts = counts.thoughts_token_count or 0
    return normalize_usage(
        (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0),
        (counts.candidates_token_count or 0) + thoughts,
        cache_read=counts.cached_content_token_count,
        reasoning=thoughts,
        searches=searches,
    )
