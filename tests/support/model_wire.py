"""What a scripted model answer is, and how each provider's API writes it as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from acp_agent.events import Usage

Api = Literal["openai", "anthropic"]


class Text(Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class Thought(Struct, frozen=True):
    """A piece of reasoning. `signature` ends Anthropic's block."""

    text: str
    signature: str = ""


class Redacted(Struct, frozen=True):
    """A block of reasoning that Anthropic shows nobody. OpenAI's stream leaves it out."""

    data: str


class Call(Struct, frozen=True):
    """A whole tool call, its arguments (an object, or JSON text as it is) sent in `pieces`."""

    name: str
    arguments: Mapping[str, Any] | str = ""
    id: str | None = None
    pieces: int = 1


class CallStart(Struct, frozen=True):
    """The start of call `index`, for calls that come in pieces or interleaved."""

    index: int
    name: str
    id: str | None = None


class CallPiece(Struct, frozen=True):
    """A piece of the arguments of call `index`."""

    index: int
    text: str


class Raw(Struct, frozen=True):
    """Bytes of the event stream as they are: malformed events, comments, anything."""

    data: bytes


class Pause(Struct, frozen=True):
    """Nothing for some seconds."""

    seconds: float


class Cut(Struct, frozen=True):
    """The connection breaks here. `within` bytes of the next event are sent before."""

    within: bytes = b""


class Stall:
    """Nothing until `release()`, which any thread may call. `reached` is set when it begins."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._released = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early = False

    def release(self) -> None:
        """Let the stream go on."""
        self._early = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._released.set)

    async def wait(self) -> None:
        """Wait for the release; the server calls it."""
        self._loop = asyncio.get_running_loop()
        self.reached.set()
        if not self._early:
            await self._released.wait()


Step = Text | Thought | Redacted | Call | CallStart | CallPiece | Raw | Pause | Cut | Stall


class Answer(Struct, frozen=True, kw_only=True):
    """A streamed answer.

    `stop` is the provider's own word, None: the usual one. `write_size` splits the stream into
    writes of so many bytes, wherever that cuts. `reasoning_field` is where an OpenAI-compatible
    service puts its reasoning. `late_end` holds back the end of the HTTP body, but not the answer's,
    for so many seconds. `ended` False leaves out everything that ends an answer.
    """

    steps: Sequence[Any]
    usage: Usage | None = field(default_factory=lambda: Usage(input=10, output=5))
    stop: str | None = None
    write_size: int | None = None
    reasoning_field: str = "reasoning_content"
    ended: bool = True
    late_end: float = 0.0


class Status(Struct, frozen=True, kw_only=True):
    """An HTTP error. `body` None: the error object of the API that was called.

    Nothing at all is answered before `hold` is released.
    """

    code: int
    message: str = "scripted failure"
    kind: str = "scripted_error"
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    hold: Any = None  # a Stall


class Drop(Struct, frozen=True):
    """The connection closes before a byte is answered."""


Reply = Answer | Status | Drop


def answer(*steps: Step | str, **options: Any) -> Answer:
    """An `Answer` of `steps`; a plain string is a piece of text. `options` are Answer's fields."""
    return Answer(steps=[Text(s) if isinstance(s, str) else s for s in steps], **options)


def error_body(api: Api, status: Status) -> bytes:
    """The body with which `api` explains an HTTP error."""
    if status.body is not None:
        return status.body
    error = {"type": status.kind, "message": status.message}
    if api == "anthropic":
        return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()
    return json.dumps({"error": {**error, "param": None, "code": status.kind}}).encode()


def render(api: Api, answered: Answer, request: Mapping[str, Any]) -> Iterator[bytes | Step]:
    """The events of `answered` as bytes, with the steps that are not bytes in between."""
    writer = _OpenAI(answered, request) if api == "openai" else _Anthropic(answered, request)
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


def _pieces(call: Call) -> list[str]:
    given = call.arguments
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    size = max(1, -(-len(text) // call.pieces))
    return [text[at : at + size] for at in range(0, len(text), size)]


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
                for piece in _pieces(step):
                    yield self._call(index, {"arguments": piece})
            case CallStart(index, name, id_):
                self._calls = max(self._calls, index + 1)
                given = id_ or f"call_{index}"
                yield self._call(index, {"name": name, "arguments": ""}, id=given, type="function")
            case CallPiece(index, text):
                yield self._call(index, {"arguments": text})
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
                for piece in _pieces(step):
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
            case _:
                pass

    def end(self) -> Iterator[bytes]:
        yield from self._close()
        for index in self._open_calls:
            yield self._event("content_block_stop", index=index)
        stop = self._answer.stop or ("tool_use" if self._calls else "end_turn")
        usage = self._answer.usage or Usage()
        yield self._event(
            "message_delta",
            delta={"stop_reason": stop, "stop_sequence": None},
            usage={"output_tokens": usage.output},
        )
        yield self._event("message_stop")
