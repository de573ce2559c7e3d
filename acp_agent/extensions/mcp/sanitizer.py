"""Sanitise everything that a server sends, before other code reads it.

Control characters, direction marks and invisible characters in texts are escaped. Malformed list
entries are removed: the package validates a response as a whole, so one tool whose schema is not an
object would make all the others unusable.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.client._transport import ReadStream, TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from acp_agent.content import HIDDEN, escaped, escaped_values, is_deeper

MAX_ENTRIES = 1_000  # entries of a list; one more is read to detect a longer list
_MAX_DEPTH = 64  # levels of a schema; the package's own checks fail on very deep ones

_METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}


def is_list(message: SessionMessage) -> bool:
    """Return whether a message seems to be one of a server's lists."""
    response = message.message
    return isinstance(response, types.JSONRPCResponse) and any(
        isinstance(response.result.get(name), list) for name in _METHODS
    )


class Sanitizer:
    """Sanitises the messages of one server. `tools` are the names of the tools removed."""

    def __init__(self) -> None:
        self.tools: list[str] = []
        self._names: dict[str, str] = {}

    def original(self, name: str) -> str:
        """Return a name or an address as the server wrote it."""
        return self._names.get(name, name)

    def sanitize(self, message: SessionMessage) -> SessionMessage:
        """Escape hidden characters in `message`, and remove malformed list entries."""
        if is_list(message):
            message = self._filter_list(message)
        original = message.message
        if isinstance(original, types.JSONRPCResponse):
            original = original.model_copy(update={"result": _with_usable_content(original.result)})
        sanitized: types.JSONRPCMessage = original
        match original:
            case types.JSONRPCResponse():
                sanitized = original.model_copy(update={"result": escaped_values(original.result)})
            case types.JSONRPCError():
                error = original.error.model_copy(
                    update={
                        "message": escaped(original.error.message),
                        "data": escaped_values(original.error.data),
                    }
                )
                sanitized = original.model_copy(update={"error": error})
            case types.JSONRPCRequest() | types.JSONRPCNotification():
                sanitized = original.model_copy(update={"params": escaped_values(original.params)})
        return SessionMessage(sanitized, message.metadata)

    def _filter_list(self, message: SessionMessage) -> SessionMessage:
        response = message.message
        if not isinstance(response, types.JSONRPCResponse):
            return message
        result = dict(response.result)
        changed = False
        for name in _METHODS:
            entries = result.get(name)
            if isinstance(entries, list):
                entries_read = [
                    _with_object_schema(entry_read) for entry_read in entries[: MAX_ENTRIES + 1]
                ]
                result[name] = [
                    _without_output_schema(entry)
                    for entry in entries_read
                    if self._is_usable(entry, name)
                ]
                self._names |= {
                    escaped(text): text
                    for entry in result[name]
                    for key in ("name", "uri")
                    if isinstance(text := entry.get(key), str) and HIDDEN.search(text)
                }
                changed = True
        if not changed:
            return message
        filtered = types.JSONRPCResponse(jsonrpc="2.0", id=response.id, result=result)
        return SessionMessage(filtered, message.metadata)

    def _is_usable(self, entry: Any, name: str) -> bool:  # JSON, of any kind
        if (
            isinstance(entry, dict)
            and all(_is_schema(schema) for schema in _schemas(entry))
            and _is_valid(entry, name)
        ):
            return True
        if name == "tools":
            tool_name = entry.get("name") if isinstance(entry, dict) else None
            self.tools.append(tool_name if isinstance(tool_name, str) else "a tool without a name")
        return False


def _with_object_schema(entry: Any) -> Any:  # JSON, of any kind
    """Return an entry whose schema says that its arguments are an object, where it leaves it out.

    Servers write no type, `true`, alternatives without a type, or a list of types.
    """
    if not isinstance(entry, dict) or "name" not in entry or "uri" in entry:
        return entry
    schema = entry.get("inputSchema")
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        return entry
    kind = schema.get("type")
    if kind is None or (isinstance(kind, list) and "object" in kind):
        return {**entry, "inputSchema": {**schema, "type": "object"}}
    return entry


def _with_usable_content(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call in which unusable parts are replaced by a text that names them.

    The package validates a result as a whole.
    """
    content = result.get("content")
    if content is None and ("structuredContent" in result or "task" in result):
        return {**result, "content": []}
    if isinstance(content, str):
        return {**result, "content": [{"type": "text", "text": content}]}
    if not isinstance(content, list):
        return result
    content_blocks = [_usable_block(block) for block in content[:MAX_ENTRIES]]
    if left := len(content) - len(content_blocks):
        content_blocks.append(_note_block(f"{left} more parts, which are left out"))
    return {**result, "content": content_blocks}


def _usable_block(block: Any) -> Any:  # JSON, of any kind
    try:
        methods.validate_server_result("tools/call", LATEST_HANDSHAKE_VERSION, {"content": [block]})
    except (ValueError, RecursionError):  # including pydantic's ValidationError
        kind = block.get("type") if isinstance(block, dict) else None
        return _note_block(f"a part of the type {str(kind)[:40]!r}, which cannot be read")
    return block


def _note_block(description: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[{description}]"}


def _without_output_schema(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without the schema of a tool's results.

    The package would validate results with it, and matching a server's pattern can take forever.
    """
    return {key: value for key, value in entry.items() if key != "outputSchema"}


def _is_valid(entry: Any, name: str) -> bool:  # JSON, of any kind
    """Return whether the package would accept a list with only this entry."""
    try:
        methods.validate_server_result(_METHODS[name], LATEST_HANDSHAKE_VERSION, {name: [entry]})
    except (ValueError, RecursionError):  # including pydantic's ValidationError
        return False
    return True


def _schemas(entry: dict[str, Any]) -> list[Any]:
    return [entry[key] for key in ("inputSchema", "outputSchema") if entry.get(key) is not None]


def _is_schema(schema: Any) -> bool:  # JSON, of any kind
    return (
        isinstance(schema, dict)
        and schema.get("type") == "object"
        and not is_deeper(schema, _MAX_DEPTH)
    )


@asynccontextmanager
async def sanitized_transport(
    transport: AbstractAsyncContextManager[TransportStreams],
    ended: asyncio.Event,
    sanitizer: Sanitizer,
) -> AsyncIterator[TransportStreams]:
    """Wrap `transport`: sanitise messages, and set `ended` when the server closes its side.

    The package itself notifies only those who wait for a response.
    """
    async with transport as (incoming, outgoing):
        yield _SanitizedStream(incoming, ended, sanitizer), outgoing


class _SanitizedStream:
    """A message stream that reports its end and sanitises messages."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        ended: asyncio.Event,
        sanitizer: Sanitizer,
    ) -> None:
        self._sanitizer = sanitizer
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> contextvars.Context | None:
        """Return the context that the package reads, if the wrapped stream has one."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended.set()
            raise
        if isinstance(item, Exception):
            return item
        # In a thread, because a list or a result may be long and all of it is processed.
        if isinstance(item.message, JSONRPCResponse):
            return await asyncio.to_thread(self._sanitizer.sanitize, item)
        return self._sanitizer.sanitize(item)

    async def aclose(self) -> None:
        """Close this side."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, traceback)
