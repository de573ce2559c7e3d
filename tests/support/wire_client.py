"""A client's end of a connection, line by line, with every line judged by the oracle.

The oracle judges both directions. What the agent writes is always held to all rules. What the
client sends is held to the schema where it means to be well-behaved: the usual requests below,
those given `checked=True`, and all answers of the editor, unless the editor is made to misbehave
(`Editor.well_behaved`). Other requests may be anything, for most of them are meant to be wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.editor import Editor
from tests.support.framing import ClientFaultError, Json, ViolationError
from tests.support.oracle import Oracle

JsonId = str | int | None


class AnswerError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class WireClient:
    """Sends anything, collects all that comes, and lets the editor answer the agent's requests."""

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        reader: asyncio.StreamReader,
        *,
        editor: Editor,
        oracle: Oracle,
    ) -> None:
        self.writer = writer
        self.reader = reader
        self.editor = editor
        self.oracle = oracle
        self.lines: list[bytes] = []  # all that the agent wrote
        self.messages: list[Json] = []
        self.violation: ViolationError | None = None
        self.fault: ClientFaultError | None = None  # the editor's, found in an answer of its
        self.may_read = asyncio.Event()  # cleared: a client that does not drain stdout
        self.may_read.set()
        self.serving: set[asyncio.Task[None]] = set()
        self.cut_off = False  # the agent was killed, so half a line at the end is no fault
        self._next_id = 0
        self._changed = asyncio.Condition()
        self._ended = False

    # --- to the agent

    async def send(self, message: Json | list[Any] | bytes) -> None:
        """Write a message, or bytes as they are."""
        if not isinstance(message, bytes):
            message = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self.oracle.sent(message)
        with contextlib.suppress(ConnectionError):
            self.writer.write(message)
            await self.writer.drain()

    def post(self, method: str, params: Json | None = None, *, checked: bool = False) -> int:
        """Send a request without waiting; its id. `checked`: it has to have the schema's shape."""
        self._next_id += 1
        message: Json = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        self._write(message if params is None else message | {"params": params}, checked=checked)
        return self._next_id

    def notify(self, method: str, params: Json, *, checked: bool = False) -> None:
        """Send a notification. `checked`: it has to have the schema's shape."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params}, checked=checked)

    def _write(self, message: Json, *, checked: bool) -> None:
        if checked and self.editor.well_behaved:
            self.oracle.vet(message)
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self.oracle.sent(data)
        self.writer.write(data)

    async def request(
        self,
        method: str,
        params: Json | None = None,
        *,
        timeout: float = 60.0,
        checked: bool = False,
    ) -> Any:
        """Send a request and wait for its result.

        Raises:
            AnswerError: the agent answered with an error.
        """
        return await self.result(self.post(method, params, checked=checked), timeout=timeout)

    async def result(self, request: JsonId, *, timeout: float = 60.0) -> Any:
        """The result of a request that was posted. Raises AnswerError."""
        answer = await self.answer(request, timeout=timeout)
        if "error" in answer:
            raise AnswerError(answer["error"])
        return answer["result"]

    async def answer(self, request: JsonId, *, timeout: float = 60.0) -> Json:
        """The response to a request, whatever it is."""
        return await self.expect(
            lambda message: "method" not in message and _same(message["id"], request),
            timeout=timeout,
        )

    async def expect(self, wanted: Callable[[Json], bool], *, timeout: float = 60.0) -> Json:
        """The first message, of those that came and those to come, that is wanted."""
        seen = 0
        found: Json | None = None

        def look() -> bool:
            nonlocal seen, found
            while found is None and seen < len(self.messages):
                message = self.messages[seen]
                seen += 1
                found = message if wanted(message) else None
            return found is not None or self._ended or self.violation is not None

        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(look)
        except TimeoutError:
            raise AssertionError(f"did not come within {timeout} s.{self.report()}") from None
        if self.violation is not None:
            raise self.violation
        if found is None:
            raise AssertionError(f"the agent exited before it came.{self.report()}")
        return found

    async def expect_served(self, method: str, *, timeout: float = 60.0) -> None:
        """Wait until the agent has made a request of this method, and the editor done it."""
        await self.expect(lambda message: message.get("method") == method, timeout=timeout)
        async with asyncio.timeout(timeout):
            await asyncio.gather(*self.serving)

    def forget_what_came(self) -> None:
        """Drop what came so far, in runs so long that it would be too much to keep and look at."""
        self.lines.clear()
        self.messages.clear()

    # --- the usual requests

    async def initialize(self, *, version: int = 1, **params: Any) -> Json:
        """`initialize` with what the editor offers."""
        result = await self.request(
            "initialize",
            {
                "protocolVersion": version,
                "clientCapabilities": self.editor.capabilities,
                "clientInfo": {"name": "test-editor", "version": "1.0"},
            }
            | params,
            checked=version == 1 and not params,
        )
        assert isinstance(result, dict)
        return result

    async def new_session(self, cwd: Path, **params: Any) -> str:
        """`session/new`; the session's id."""
        result = await self.request(
            "session/new", {"cwd": str(cwd), "mcpServers": []} | params, checked=not params
        )
        name = result["sessionId"]
        assert isinstance(name, str)
        return name

    def post_prompt(self, session: str, *content: str | Json) -> int:
        """`session/prompt` without waiting; the request's id."""
        blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
        plain = all(isinstance(c, str) for c in content)
        return self.post("session/prompt", {"sessionId": session, "prompt": blocks}, checked=plain)

    async def prompt(self, session: str, *content: str | Json, timeout: float = 60.0) -> Json:
        """`session/prompt`; its result."""
        result = await self.result(self.post_prompt(session, *content), timeout=timeout)
        assert isinstance(result, dict)
        return result

    def cancel(self, session: str) -> None:
        """`session/cancel`."""
        self.notify("session/cancel", {"sessionId": session}, checked=True)

    # --- from the agent

    def updates(self, session: str, kind: str | None = None) -> list[Json]:
        """The updates of a session that came so far."""
        return [
            message["params"]["update"]
            for message in self.messages
            if _is_update(message, session, kind)
        ]

    def text(self, session: str) -> str:
        """All text that the agent said in a session so far."""
        chunks = self.updates(session, "agent_message_chunk")
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    async def expect_update(
        self,
        session: str,
        kind: str,
        holds: Callable[[Json], bool] = lambda _: True,
        *,
        timeout: float = 60.0,
    ) -> Json:
        """The first update of this kind for which `holds` is true, when it is there."""
        message = await self.expect(
            lambda message: (
                _is_update(message, session, kind) and holds(message["params"]["update"])
            ),
            timeout=timeout,
        )
        update = message["params"]["update"]
        assert isinstance(update, dict)
        return update

    async def read(self) -> None:
        """Read until the agent closes its end."""
        rest = b""
        while True:
            await self.may_read.wait()
            piece = await self.reader.read(1 << 16)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                await self._line(line + b"\n")
        if rest and not self.cut_off:
            self.violation = self.violation or ViolationError(f"T1: cut off at {rest[-200:]!r}")
        self._ended = True
        async with self._changed:
            self._changed.notify_all()

    async def _line(self, line: bytes) -> None:
        self.lines.append(line)
        try:
            messages = self.oracle.received(line)
        except ViolationError as violation:
            self.violation = self.violation or violation
        else:
            self.messages += messages
            if "method" in messages[0] and "id" in messages[0]:
                task = asyncio.create_task(self._serve(line))
                self.serving.add(task)
                task.add_done_callback(self.serving.discard)
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, line: bytes) -> None:
        response = await self.editor.dispatch(line.decode())
        if not response:
            return
        if self.editor.well_behaved:
            try:
                self.oracle.vet(json.loads(response))
            except ClientFaultError as fault:
                self.fault = self.fault or fault
        await self.send(response.encode() + b"\n")

    def report(self) -> str:
        """What happened so far, for the message of a failed assertion."""
        return "\n--- last lines\n" + b"".join(self.lines[-12:]).decode("utf-8", "replace")


def content_text(update: dict[str, Any]) -> str:
    """All text in what a tool call shows."""
    return "\n".join(
        part["content"]["text"]
        for part in update.get("content") or ()
        if part["type"] == "content" and part["content"]["type"] == "text"
    )


def _same(one: JsonId, other: JsonId) -> bool:
    return type(one) is type(other) and one == other


def _is_update(message: Json, session: str, kind: str | None) -> bool:
    if message.get("method") != "session/update" or message["params"]["sessionId"] != session:
        return False
    return kind is None or message["params"]["update"]["sessionUpdate"] == kind
