"""A tool of an MCP server as one of the session's tools."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, ClassVar, TypeVar

import mcp_types as types
from mcp import MCPError

from acp_agent.content import JsonObject, printable_line
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.extensions.mcp.config import identity
from acp_agent.extensions.mcp.errors import SessionLostError
from acp_agent.extensions.mcp.schemas import ToolSchema
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.permissions.access import McpAccess
from acp_agent.tools.base import (
    EVERYTHING,
    NOTHING_IF_GRANTED,
    Outcome,
    Prepared,
    Progress,
    SchemaArguments,
    SchemaTool,
    Touches,
    arguments_content,
)
from acp_agent.tools.mcp.results import save_below, tool_outcome
from acp_agent.tools.quoting import first_line

DESCRIPTION_LIMIT = 4_000  # characters of a description that the model is sent
_MAX_TITLE = 80  # characters
_PROGRESS_INTERVAL = 0.5  # between two changes of a running call's title
_MAX_PROGRESS_UPDATES = 500  # changes of one call's title, at most

T = TypeVar("T")
_ADDRESS = re.compile(r"\s*https?://\S+\s*", re.IGNORECASE)


class McpTool(SchemaTool):
    """Calls a tool of a server. Each tool is a class, because name and kind belong to the class.

    Claims of the server about its tool have no effect on permissions: the gate asks the user.
    """

    remote: ClassVar[types.Tool]
    server: ClassVar[McpServer]
    seconds: ClassVar[float]

    def description(self) -> str:
        """Return the server's description of the tool."""
        return self.server_description()

    @classmethod
    def server_description(cls) -> str:
        """Return the server's description of the tool, shortened."""
        text = cls.remote.description or _tool_title(cls.remote)
        return text if len(text) <= DESCRIPTION_LIMIT else text[:DESCRIPTION_LIMIT] + " […]"

    def title(self, arguments: JsonObject) -> str:
        """Return the server's and the tool's own name: what it calls itself may be misleading."""
        del arguments
        return f"{first_line(self.server.config.name, _MAX_TITLE)}: {_tool_title(self.remote)}"

    def touches(self, params: SchemaArguments) -> Touches:
        """Return everything, unless the tool claims to be read-only and the user has allowed it."""
        del params
        return NOTHING_IF_GRANTED if self.effect == "reads" else EVERYTHING

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Prepare the display of the arguments, which are what is sent."""
        return Prepared(
            title=self.title(params.values),
            run=functools.partial(self._run, params.values),
            access=McpAccess(
                server=self.server.config.name,
                tool=self.remote.name,
                identity=identity(self.server.config),
                definition=definition(self.remote),
                read_only=self.effect == "reads",
                unnamed=await self._unnamed_addresses(params.values),
            ),
            content=arguments_content(params.values),
        )

    async def _unnamed_addresses(self, arguments: JsonObject) -> tuple[str, ...]:
        """Return the addresses among the arguments that neither the user nor a search named."""
        network = self.workspace.network
        return tuple([url for url in _addresses(arguments) if not await network.is_named(url)])

    async def _run(self, arguments: JsonObject, progress: Progress) -> Outcome:
        show = _ProgressTitle(progress, self.title(arguments))
        result = await call_server(
            self.server,
            lambda: self.server.client.call_tool(self.remote, arguments, show),
            seconds=self.seconds,
        )
        save = save_below(self.workspace.outputs)
        return await asyncio.to_thread(tool_outcome, result, save)


def mcp_tool(
    remote: types.Tool, name: str, *, server: McpServer, seconds: float, deferred: bool = False
) -> type[McpTool]:
    """Return a class for a tool of a server, to be instantiated with a workspace.

    Args:
        server: whose it is.
        seconds: how long a call may take.
        deferred: whether the model is not sent it, and searches for it.

    Raises:
        UnusableSchemaError: its schema cannot be used.
    """
    hints = remote.annotations or types.ToolAnnotations()
    schema = ToolSchema(remote.input_schema)
    namespace: dict[str, Any] = {
        "name": name,
        "kind": _kind(hints),
        "effect": "reads" if hints.read_only_hint else "writes",
        "remote": remote,
        "schema": schema,
        "server": server,
        "seconds": seconds,
        "deferred": deferred,
    }
    return type("McpTool", (McpTool,), namespace)


def _addresses(value: object) -> Iterator[str]:
    """Yield the values that are URLs."""
    match value:
        case str() if _ADDRESS.fullmatch(value):
            yield value.strip()
        case list():
            for item in value:
                yield from _addresses(item)
        case dict():
            for item in value.values():
                yield from _addresses(item)


def _kind(hints: types.ToolAnnotations) -> ToolKind:
    if not hints.read_only_hint:
        return "other"
    return "fetch" if hints.open_world_hint else "read"


def definition(remote: types.Tool) -> str:
    """Return a digest of the definition of a tool, to detect changes."""
    fields = remote.model_dump(mode="json", by_alias=True, exclude={"meta", "icons"})
    text = json.dumps(fields, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


async def call_server(
    server: McpServer, request: Callable[[], Awaitable[T]], *, seconds: float, retry: bool = True
) -> T:
    """Call a server and wait at most `seconds`, excluding the time of questions to the user.

    A server that lost the session, for example because it was restarted, is called once more in a
    new session.

    Raises:
        ToolError: it failed, is gone, or did not answer in time.
    """
    name = server.config.name
    client = server.client
    try:
        async with client.timeouts.limit(seconds):
            return await request()
    except TimeoutError:
        raise ToolError(
            f"the MCP server {name!r} did not answer within {seconds:g} s; the call was cancelled",
            advice="it may have taken effect: check before you call it again",
        ) from None
    except SessionLostError:
        await server.renew(client)
        if retry:
            return await call_server(server, request, seconds=seconds, retry=False)
        raise ToolError(f"the MCP server {name!r} ended the session twice") from None
    except MCPError as error:
        if retry and await client.visit(error):
            return await call_server(server, request, seconds=seconds, retry=False)
        reason = client.why(error, str)
        raise ToolError(f"the MCP server {name!r} failed: {reason}") from None
    except (ValueError, RuntimeError) as error:
        reason = printable_line(str(error).split("\n", maxsplit=1)[0], 300)
        raise ToolError(
            f"the MCP server {name!r} gave an answer of the wrong shape: {reason}"
        ) from None


class _ProgressTitle:
    """Shows a call's progress in its title, at intervals."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._next = 0.0
        self._count = 0

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._next or self._count == _MAX_PROGRESS_UPDATES:
            return
        self._next = now + _PROGRESS_INTERVAL
        self._count += 1
        share = f"{min(progress / total, 1):.0%}" if total and total > 0 else ""
        text = first_line(message, _MAX_TITLE) if message else ""
        state = ", ".join(part for part in (share, text) if part)
        if state:
            await self._progress.show(title=f"{self._title} ({state})")


def _tool_title(remote: types.Tool) -> str:
    """Return the tool's name, followed by the title that it declares."""
    declared_title = (
        remote.title or (remote.annotations.title if remote.annotations else None) or ""
    )
    name, title = first_line(remote.name, _MAX_TITLE), first_line(declared_title, _MAX_TITLE)
    return f"{title} ({name})" if title and title != name else name
