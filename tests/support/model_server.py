"""A model provider on 127.0.0.1 that does what a test tells it to.

It speaks OpenAI's chat completions (`POST …/chat/completions`) and Responses (`POST …/responses`),
Anthropic's messages (`POST …/messages`, and as Bedrock and Vertex have them), Gemini's
`…:streamGenerateContent` and `GET …/models`, over real HTTP with keep-alive. One script serves all:

    async with ModelServer() as server:
        server.add(answer("Hel", "lo", Call("read", {"path": "a.py"}, pieces=3)))
        server.add(Status(code=429, headers={"Retry-After": "1"}), answer("Better now."))
        stall = Stall()
        server.add(answer("begun", stall, "ended"))
        ...                                   # point a driver or an agent at the server
        await server.arrived(2)               # until two requests were read
        server.requests[0].json["messages"]   # what was sent
        await server.requests[2].closed_early.wait()   # the client closed in mid-answer

- `server.url` for Anthropic, `server.openai_url` (with `/v1`) for OpenAI.
- `server.environ(api)` are the variables that make a spawned agent use it.
- `add()` queues replies, served in the order of the requests; with the queue empty
  `server.otherwise` answers: a reply, or a function from the `Request` to one; by default a 500.
- Steps of an answer: a str or Text, Thought, Redacted, Call, CallStart, CallPiece, Raw (bytes of
  the stream), Pause, Stall, Cut. See `tests/support/model_script.py` for their fields.
- `Status(code=500, hold=Stall())` answers nothing, not even a header, until it is released.
- `answer(..., write_size=1)` splits every character across writes; `ended=False` sends no end.
- `server.embed` answers `POST …/embeddings`: the texts' vectors, or the whole body as bytes; an
  exception is a status 500. The requests are in `server.embeddings`.
- Calls of `GET …/models` are counted in `server.lookups` and list `server.models`.

`model_server_in_thread()` is the same for tests that block. As a program,
`python -m tests.support.model_server --deltas 2000` prints its address, then serves streams of that
many pieces as fast as they are read, until its stdin closes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Self
from urllib.parse import urlsplit

from tests.support.model_script import (
    Answer,
    Call,
    CallPiece,
    CallStart,
    Cite,
    Cut,
    Drop,
    Pause,
    Raw,
    Redacted,
    Refusal,
    Reply,
    Search,
    Stall,
    Status,
    Step,
    Text,
    Thought,
    answer,
)
from tests.support.model_wire import Api, error_body, render

__all__ = [
    "Answer", "Api", "Call", "CallPiece", "CallStart", "Cite", "Cut", "Drop", "ModelServer",
    "Pause", "Raw", "Redacted", "Refusal", "Reply", "Request", "Search", "Stall", "Status", "Step",
    "Text", "Thought", "answer", "model_server_in_thread",
]  # fmt: skip

_AWS = b"application/vnd.amazon.eventstream"
_NOTHING_SCRIPTED = Status(code=500, message="the test scripted no answer for this request")


# The end of an address -> the API that answers there; chat completions everywhere else.
_APIS: dict[str, Api] = {
    "/messages": "anthropic",
    ":streamRawPredict": "anthropic",
    "/responses": "openai_responses",
    ":streamGenerateContent": "gemini",
    "/invoke-with-response-stream": "bedrock",
}


class Request:
    """A request that was read: `body` as it came, header names in lower case."""

    def __init__(
        self, method: str, target: str, headers: dict[str, str], body: bytes, client_port: int
    ) -> None:
        self.client_port = client_port  # tells connections apart
        self.method = method
        self.target = target
        self.path = urlsplit(target).path
        self.headers = headers
        self.body = body
        self.answered = asyncio.Event()  # the whole answer was written
        self.closed_early = asyncio.Event()  # the client closed before that

    @property
    def api(self) -> Api:
        """Which API was called."""
        return next((api for end, api in _APIS.items() if self.path.endswith(end)), "openai")

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body or b"{}")


class ModelServer:
    """The server; see the module. Use it with `async with`, or `start()` and `stop()`."""

    def __init__(self, *, models: tuple[str, ...] = ("scripted-model",)) -> None:
        self.models = models
        self.lookups = 0
        self.requests: list[Request] = []
        self.embeddings: list[Request] = []
        self.embed: Callable[[list[str]], Awaitable[list[list[float]] | bytes]] | None = None
        self.otherwise: Reply | Callable[[Request], Reply] = _NOTHING_SCRIPTED
        self.port = 0
        self._queue: deque[Reply] = deque()
        self._arrival = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Protocol(self), "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close every connection, whatever it is in the middle of."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def url(self) -> str:
        """The server's address, Anthropic's base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base URL of an OpenAI-compatible service."""
        return f"{self.url}/v1"

    def environ(self, api: Api = "openai") -> dict[str, str]:
        """The environment variables that point an agent here, with a key that is not one."""
        if api == "anthropic":
            return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "sk-test"}
        return {"OPENAI_BASE_URL": self.openai_url, "OPENAI_API_KEY": "sk-test"}

    def add(self, *replies: Reply) -> None:
        """Queue replies for the next requests."""
        self._queue.extend(replies)

    async def arrived(self, count: int, *, within: float = 60.0) -> None:
        """Wait until `count` requests in all were read; TimeoutError after `within` seconds."""
        async with asyncio.timeout(within), self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= count)

    def _next(self, request: Request) -> Reply:
        if self._queue:
            return self._queue.popleft()
        return self.otherwise(request) if callable(self.otherwise) else self.otherwise

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the server stops
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        port = writer.get_extra_info("peername")[1]
        request = Request(method, target, headers, body, port)
        if method == "GET" and request.path.endswith("/models"):
            self.lookups += 1
            entries = [
                {"id": m, "object": "model", "created": 1, "owned_by": "test"} for m in self.models
            ]
            _whole(writer, 200, json.dumps({"object": "list", "data": entries}).encode(), {})
            return True
        if self.embed is not None and request.path.endswith("/embeddings"):
            self.embeddings.append(request)
            return await _unless_closed(writer, request, self._embed(writer, request))
        async with self._arrival:
            self.requests.append(request)
            self._arrival.notify_all()
        return await _unless_closed(writer, request, self._reply(writer, request))

    async def _embed(self, writer: asyncio.StreamWriter, request: Request) -> bool:
        assert self.embed is not None
        try:
            found = await self.embed(request.json["input"])
        except RuntimeError as error:
            failed = Status(code=500, message=str(error))
            _whole(writer, 500, error_body("openai", failed), {})
            return True
        if not isinstance(found, bytes):
            data = [{"index": n, "embedding": vector} for n, vector in enumerate(found)]
            usage = {"prompt_tokens": sum(len(text.split()) for text in request.json["input"])}
            body = {"object": "list", "data": data[::-1], "usage": usage}
            found = json.dumps(body).encode()
        _whole(writer, 200, found, {})
        return True

    async def _reply(self, writer: asyncio.StreamWriter, request: Request) -> bool:
        reply = self._next(request)
        if isinstance(reply, Drop):
            return False
        if isinstance(reply, Status):
            if reply.hold is not None:
                await reply.hold.wait()
            _whole(writer, reply.code, error_body(request.api, reply), dict(reply.headers))
            await writer.drain()
            return True
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
            % (_AWS if request.api == "bedrock" else b"text/event-stream")
        )
        for part in render(request.api, reply, request.json):
            if isinstance(part, Stall):
                await part.wait()
            elif isinstance(part, Pause):
                await asyncio.sleep(part.seconds)
            elif isinstance(part, Cut):
                if part.within:
                    writer.write(_chunk(part.within))
                await writer.drain()
                return False
            elif isinstance(part, bytes):
                await _write(writer, part, reply.write_size)
        if reply.late_end:
            await asyncio.sleep(reply.late_end)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _write(writer: asyncio.StreamWriter, data: bytes, size: int | None) -> None:
    if size is None:
        writer.write(_chunk(data))
        await writer.drain()
        return
    for at in range(0, len(data), size):
        writer.write(_chunk(data[at : at + size]))
        await writer.drain()
        await asyncio.sleep(0)  # so that a client in this loop reads every write by itself


def _whole(writer: asyncio.StreamWriter, code: int, body: bytes, headers: dict[str, str]) -> None:
    lines = [f"HTTP/1.1 {code} Scripted", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1") + body)


async def _unless_closed(
    writer: asyncio.StreamWriter, request: Request, reply: Awaitable[bool]
) -> bool:
    """Run `reply` until it is done or the client closes; says whether the connection goes on."""
    answering = asyncio.ensure_future(reply)
    protocol = writer.transport.get_protocol()
    assert isinstance(protocol, _Protocol)
    watching = asyncio.ensure_future(protocol.gone.wait())
    try:
        await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            request.answered.set()
            return answering.result()
        request.closed_early.set()
        return False
    except ConnectionError:
        request.closed_early.set()
        return False
    finally:
        for task in (answering, watching):
            task.cancel()
        await asyncio.gather(answering, watching, return_exceptions=True)


class _Protocol(asyncio.StreamReaderProtocol):
    """A stream that tells of the client's closing without reading from it."""

    def __init__(self, server: ModelServer) -> None:
        super().__init__(asyncio.StreamReader(), server._serve)
        self.gone = asyncio.Event()

    def eof_received(self) -> bool | None:
        self.gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        super().connection_lost(exc)


@contextlib.contextmanager
def model_server_in_thread(**options: Any) -> Iterator[ModelServer]:
    """A server on an event loop of its own, for tests that block. Scripting it is thread-safe."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def make() -> ModelServer:
        server = ModelServer(**options)
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(make(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _main(deltas: int, port: int, text: str) -> None:
    server = ModelServer()
    server.otherwise = answer(*[text] * deltas)
    await server.start(port)
    print(server.url, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A model provider for benchmarks.")
    parser.add_argument("--deltas", type=int, default=2000)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--text", default="word ")
    given = parser.parse_args()
    asyncio.run(_main(given.deltas, given.port, given.text))
