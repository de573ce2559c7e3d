"""How each provider's API writes a scripted answer as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

from acp_agent.events import Usage
from tests.support.aws_event_stream import chunk, from_sse
from tests.support.model_script import (
    Answer,
    Call,
    CallPiece,
    CallStart,
    Cite,
    Cut,
    Pause,
    Raw,
    Redacted,
    Search,
    Stall,
    Status,
    Step,
    Text,
    Thought,
    pieces_of,
)
from tests.support.model_wire_gemini import GeminiWriter
from tests.support.model_wire_responses import ResponsesWriter

Api = Literal["openai", "openai_responses", "anthropic", "gemini", "bedrock"]


def error_body(api: Api, status: Status) -> bytes:
    """The body with which `api` explains an HTTP error."""
    if status.body is not None:
        return status.body
    error = {"type": status.kind, "message": status.message}
    if api == "anthropic":
        return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()
    if api == "gemini":
        problem = {"code": status.code, "message": status.message, "status": status.kind}
        return json.dumps({"error": problem}).encode()
    if api == "bedrock":
        return json.dumps({"message": status.message}).encode()
    return json.dumps({"error": {**error, "param": None, "code": status.kind}}).encode()


class _Writer(Protocol):
    """Writes one answer in an API's events."""

    def begin(self) -> Iterator[bytes]:
        """What comes before the first step."""
        ...

    def step(self, step: Step) -> Iterator[bytes]:
        """A step of the script."""
        ...

    def end(self) -> Iterator[bytes]:
        """What comes after the last step."""
        ...


def render(api: Api, answered: Answer, request: Mapping[str, Any]) -> Iterator[bytes | Step]:
    """The events of `answered` as bytes, with the steps that are not bytes in between."""
    if api == "bedrock":
        for part in render("anthropic", answered, request):
            if isinstance(part, Cut) and part.within:
                yield Cut(within=chunk(part.within)[:-5])
            else:
                yield from_sse(part) if isinstance(part, bytes) and b"data:" in part else part
        return
    writer = _WRITERS[api](answered, request)
    yield from writer.begin()
    for step in answered.steps:
        if isinstance(step, Raw):
            yield step.data
        elif isinstance(step, (Stall, Pause, Cut)):
            yield step
        else:
            yield from writer.step(step)
    if answered.ended:
        yield from writer.end()


class _OpenAI:
    def __init__(self, answered: Answer, request: Mapping[str, Any]) -> None:
        self._answer = answered
        self._model = str(request.get("model", "scripted"))
        self._wants_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        self._calls = 0

    def _chunk(self, choices: list[Any], **more: Any) -> bytes:
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": self._model,
            "choices": choices,
            **more,
        }
        return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"

    def _delta(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": finish}])

    def begin(self) -> Iterator[bytes]:
        yield self._delta({"role": "assistant", "content": ""})

    def _call(self, index: int, function: dict[str, str], **more: Any) -> bytes:
        return self._delta({"tool_calls": [{"index": index, **more, "function": function}]})

    def step(self, step: Step) -> Iterator[bytes]:
        match step:
            case Text(text):
                yield self._delta({"content": text})
            case Thought(text):
                yield self._delta({self._answer.reasoning_field: text})
            case Call():
                index = self._calls
                yield from self.step(CallStart(index, step.name, step.id))
                for piece in pieces_of(step):
                    yield self._call(index, {"arguments": piece})
            case CallStart(index, name, id_):
                self._calls = max(self._calls, index + 1)
                given = id_ or f"call_{index}"
                yield self._call(index, {"name": name, "arguments": ""}, id=given, type="function")
            case CallPiece(index, text):
                yield self._call(index, {"arguments": text})
            case Cite(title, url):
                cited = {"url": url, "title": title, "start_index": 0, "end_index": 1}
                annotation = {"type": "url_citation", "url_citation": cited}
                yield self._delta({"annotations": [annotation]})
            case _:
                pass

    def end(self) -> Iterator[bytes]:
        finish = self._answer.stop or ("tool_calls" if self._calls else "stop")
        yield self._delta({}, finish)
        usage = self._answer.usage
        if usage is not None and self._wants_usage:
            yield self._chunk(
                [],
                usage={
                    "prompt_tokens": usage.input,
                    "completion_tokens": usage.output,
                    "total_tokens": usage.input + usage.output,
                    "prompt_tokens_details": {"cached_tokens": usage.cache_read},
                    "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
                },
            )
        yield b"data: [DONE]\n\n"


class _Anthropic:
    def __init__(self, answered: Answer, request: Mapping[str, Any]) -> None:
        self._answer = answered
        self._model = str(request.get("model", "scripted"))
        self._next = 0
        self._open: str | None = None  # the kind of block that text or reasoning goes on in
        self._calls: dict[int, int] = {}  # a call's number -> its block
        self._open_calls: list[int] = []
        self._searches = 0

    @staticmethod
    def _event(kind: str, **body: Any) -> bytes:
        data = json.dumps({"type": kind, **body}, ensure_ascii=False).encode()
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    def begin(self) -> Iterator[bytes]:
        usage = self._answer.usage or Usage()
        yield self._event(
            "message_start",
            message={
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": self._model,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {
                    "input_tokens": usage.input - usage.cache_read - usage.cache_write,
                    "cache_creation_input_tokens": usage.cache_write,
                    "cache_read_input_tokens": usage.cache_read,
                    "output_tokens": 1,
                },
            },
        )
        yield self._event("ping")

    def _close(self) -> Iterator[bytes]:
        if self._open is not None:
            yield self._event("content_block_stop", index=self._next - 1)
            self._open = None

    def _start(self, block: dict[str, Any]) -> bytes:
        self._next += 1
        return self._event("content_block_start", index=self._next - 1, content_block=block)

    def _delta(self, index: int, delta: dict[str, Any]) -> bytes:
        return self._event("content_block_delta", index=index, delta=delta)

    def _flow(self, kind: str, block: dict[str, Any]) -> Iterator[bytes]:
        if self._open != kind:
            yield from self._close()
            yield self._start(block)
            self._open = kind

    def step(self, step: Step) -> Iterator[bytes]:
        match step:
            case Text(text):
                yield from self._flow("text", {"type": "text", "text": ""})
                yield self._delta(self._next - 1, {"type": "text_delta", "text": text})
            case Thought(text, signature):
                block = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._flow("thinking", block)
                if text:
                    yield self._delta(self._next - 1, {"type": "thinking_delta", "thinking": text})
                if signature:
                    delta = {"type": "signature_delta", "signature": signature}
                    yield self._delta(self._next - 1, delta)
                    yield from self._close()
            case Redacted(data):
                yield from self._close()
                yield self._start({"type": "redacted_thinking", "data": data})
                yield self._event("content_block_stop", index=self._next - 1)
            case Call():
                number = len(self._calls)
                yield from self.step(CallStart(number, step.name, step.id))
                for piece in pieces_of(step):
                    yield from self.step(CallPiece(number, piece))
                self._open_calls.remove(self._calls[number])
                yield self._event("content_block_stop", index=self._calls[number])
            case CallStart(number, name, id_):
                yield from self._close()
                block = {"type": "tool_use", "id": id_ or f"toolu_{number}", "name": name}
                self._calls[number] = self._next
                self._open_calls.append(self._next)
                yield self._start({**block, "input": {}})
            case CallPiece(number, text):
                delta = {"type": "input_json_delta", "partial_json": text}
                yield self._delta(self._calls[number], delta)
            case Search():
                yield from self._search(step)
            case Cite(title, url):
                cited = {"type": "web_search_result_location", "url": url, "title": title}
                citation = {**cited, "encrypted_index": "SW5kZXg=", "cited_text": "so it says"}
                yield self._delta(self._next - 1, {"type": "citations_delta", "citation": citation})
            case _:
                pass

    def _search(self, search: Search) -> Iterator[bytes]:
        yield from self._close()
        name = f"srvtoolu_{search.query}"
        if search.began:
            self._searches += 1
            block = {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}
            yield self._start(block)
            piece = json.dumps({"query": search.query})
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield self._delta(self._next - 1, delta)
            yield self._event("content_block_stop", index=self._next - 1)
        if not search.ended:
            return
        pages = [
            {
                "type": "web_search_result",
                "title": title,
                "url": url,
                "encrypted_content": f"sealed {url}",
                "page_age": None,
            }
            for title, url in search.pages
        ]
        failed = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        found: dict[str, Any] = {
            "type": "web_search_tool_result",
            "tool_use_id": name,
            "content": pages or failed,
        }
        yield self._start(found)
        yield self._event("content_block_stop", index=self._next - 1)

    def end(self) -> Iterator[bytes]:
        yield from self._close()
        for index in self._open_calls:
            yield self._event("content_block_stop", index=index)
        stop = self._answer.stop or ("tool_use" if self._calls else "end_turn")
        usage = self._answer.usage or Usage()
        searched = {"web_search_requests": self._searches}
        yield self._event(
            "message_delta",
            delta={"stop_reason": stop, "stop_sequence": None},
            usage={
                "output_tokens": usage.output,
                **({"server_tool_use": searched} if self._searches else {}),
            },
        )
        yield self._event("message_stop")


_WRITERS: Mapping[str, Callable[[Answer, Mapping[str, Any]], _Writer]] = {
    "openai": _OpenAI,
    "openai_responses": ResponsesWriter,
    "anthropic": _Anthropic,
    "gemini": GeminiWriter,
}
