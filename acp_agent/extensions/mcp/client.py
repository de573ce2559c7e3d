"""A connection to an MCP server: version negotiation, lists, requests.

The package's client is entered and exited in the task that runs `connected`, as its task groups
require. Any other task may send requests meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import mcp_types as types
import msgspec
from mcp import MCPError
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from acp_agent import __version__
from acp_agent.content import JsonObject
from acp_agent.elicitation import Page
from acp_agent.extensions.mcp.acp_transport import acp_transport
from acp_agent.extensions.mcp.call_timeouts import CallTimeouts
from acp_agent.extensions.mcp.config import (
    ChannelServer,
    HttpServer,
    Launcher,
    ProgramServer,
    SavedLogins,
    ServerConfig,
)
from acp_agent.extensions.mcp.elicitation import Asker
from acp_agent.extensions.mcp.errors import SessionLostError, describe_error
from acp_agent.extensions.mcp.http_transport import HttpStatus, http_transport
from acp_agent.extensions.mcp.listing import ServerCatalog, list_catalog
from acp_agent.extensions.mcp.sanitizer import Sanitizer, sanitized_transport
from acp_agent.extensions.mcp.server_messages import LOG_LEVEL, Host, ServerMessages
from acp_agent.extensions.mcp.stdio_transport import ServerProcess, stdio_transport
from acp_agent.extensions.mcp.subscriptions import Subscriptions
from acp_agent.extensions.mcp.tasks import call_as_task, runs_only_as_task
from acp_agent.platform.watchdog import Watchdog

T = TypeVar("T")

# Errors of a server that only supports the newer handshake.
_UNSUPPORTED_HANDSHAKE = frozenset({types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND})

_OLDER_HTTP_SECONDS = 5.0  # for a server of the older transport to accept the connection

_log = logging.getLogger(__name__)


class McpClient:
    """A connected server.

    Args:
        host: is notified of changes, and has the session's folders.
        trace: returns the trace of the current turn, as a `_meta`.
    """

    def __init__(
        self, config: ServerConfig, asker: Asker, host: Host, trace: Callable[[], JsonObject]
    ) -> None:
        self._config = config
        self._asker = asker
        self._host = host
        self._trace = trace
        self._subscriptions: Subscriptions | None = None
        self._client: Client | None = None
        self._program: ServerProcess | None = None
        self._http_status = HttpStatus()
        self._sanitizer = Sanitizer()
        self.timeouts = CallTimeouts()
        self._busy = 0  # requests of ours that the server is processing
        self.ended = asyncio.Event()
        self.is_stale = False  # the connection is to be replaced by a new one
        self._messages = ServerMessages(config, asker, host, self.timeouts, lambda: self._busy > 0)

    # -- requests --------------------------------------------------------------------------

    async def list_offer(self) -> ServerCatalog:
        """List everything that the server offers, within limits."""
        self._sanitizer.tools.clear()
        offer = await list_catalog(self._connected)
        return msgspec.structs.replace(offer, unusable=tuple(self._sanitizer.tools))

    async def call_tool(
        self, tool: types.Tool, arguments: dict[str, Any], on_progress: ProgressFnT
    ) -> types.CallToolResult:
        """Call a tool, as a task if the server requires that.

        Raises:
            MCPError: the server answered with an error, or is disconnected.
            SessionLostError: the server no longer knows the session.
            ValueError: its answer has the wrong shape.
        """
        client, name, meta = self._connected, self._sanitizer.original(tool.name), self._meta()
        if runs_only_as_task(tool) and client.server_capabilities.tasks is not None:
            return await self._ask(call_as_task(client.session, name, arguments, on_progress, meta))
        return await self._ask(
            client.call_tool(name, arguments, progress_callback=on_progress, meta=meta)
        )

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
        """Fetch a prompt. Raises as `call_tool` does."""
        return await self._ask(
            self._connected.get_prompt(self._sanitizer.original(name), arguments)
        )

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """Read a resource. Raises as `call_tool` does."""
        original_uri = self._sanitizer.original(uri)
        return await self._ask(self._connected.read_resource(original_uri, meta=self._meta()))

    async def complete(
        self, template: types.ResourceTemplate, variable: str, value: str, values: dict[str, str]
    ) -> list[str]:
        """Return values for a variable of a resource template that begin with `value`.

        Args:
            value: what the user has typed of it.

        Raises: as `call_tool` does.
        """
        client = self._connected
        if client.server_capabilities.completions is None:
            return []
        reference = types.ResourceTemplateReference(
            uri=self._sanitizer.original(template.uri_template)
        )
        argument = {"name": variable, "value": value}
        result = await self._ask(client.complete(reference, argument, values or None))
        return result.completion.values

    def follow(self, uri: str) -> None:
        """Follow the changes of a resource, if the server reports them. Does not wait."""
        if self._subscriptions is not None:
            self._subscriptions.follow(uri)

    async def report_roots(self) -> None:
        """Tell the server that the session's folders have changed; newer versions ask each time."""
        with suppress(MCPError, OSError, RuntimeError):
            if self._connected.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
                await self._connected.session.send_notification(
                    types.RootsListChangedNotification()
                )

    def _meta(self) -> types.RequestParamsMeta | None:
        """Return the `_meta` of the requests of a turn."""
        trace = self._trace()
        return cast("types.RequestParamsMeta", trace) if trace else None

    async def _ask(self, request: Awaitable[T]) -> T:
        """Wait for an answer in a separate task.

        A cancelled caller does not wait until the server has been notified: the turn must end at
        once.
        """
        task = asyncio.ensure_future(request)
        self._busy += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            task.add_done_callback(_mark_retrieved)
            raise
        except MCPError as error:
            if self._http_status.is_session_unknown(error):
                raise SessionLostError from error
            raise
        finally:
            self._busy -= 1

    @property
    def _connected(self) -> Client:
        assert self._client is not None, "only while `connected` runs"
        return self._client

    # -- the connection --------------------------------------------------------------------

    @property
    def wants_login(self) -> bool:
        """Return whether the server refused the credentials of the last request."""
        return self._http_status.wants_login

    def ending(self) -> str:
        """Return why the connection ended, as far as it is known."""
        if self._program is not None:
            return self._program.ending()
        return self._http_status.ending() or "the connection ended"

    def why(self, error: Exception, clean: Callable[[str], str]) -> str:
        """Return a description of an error in one line without secrets."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        closed = isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED
        if closed and self._program is not None:
            return self._program.ending()
        description = describe_error(error, clean)
        return self._http_status.ending(description) or description

    @asynccontextmanager
    async def connected(
        self,
        *,
        label: str,
        cwd: Path,
        environ: Mapping[str, str],
        watch: Watchdog,
        clean: Callable[[str], str],
        launch: Launcher,
        logins: SavedLogins,
    ) -> AsyncIterator[None]:
        """Connect for the duration of the context; see `stdio_transport` for the arguments.

        All known servers support the old handshake, and some end if anything else comes first. A
        server that rejects it gets the newer one, and then, over HTTP, the older transport with
        server-sent events. MCP over ACP starts with the newer handshake, because it has no
        notifications to the server, which the old handshake needs.
        """
        # The package logs the content of messages, and addresses.
        for name in ("mcp", "client", "httpx2"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

        def transport(config: ServerConfig) -> AbstractAsyncContextManager[TransportStreams]:
            match config:
                case ProgramServer():
                    return stdio_transport(
                        config,
                        label=label,
                        cwd=cwd / config.cwd,  # `cwd` may be ""
                        environ=environ,
                        watch=watch,
                        clean=clean,
                        launch=launch,
                        on_start=self._started,
                    )
                case HttpServer():
                    return http_transport(config, self._http_status, logins, self.ended.set)
                case ChannelServer():
                    return acp_transport(config)

        client = await self._negotiate(transport)
        self._client = client
        self._subscriptions = Subscriptions(client, self._host, self._sanitizer.original)
        try:
            yield
        finally:
            await self._subscriptions.aclose()
            await client.__aexit__(None, None, None)

    async def _negotiate(
        self, transport: Callable[[ServerConfig], AbstractAsyncContextManager[TransportStreams]]
    ) -> Client:
        """Return an entered client, connected in the first way that the server supports.

        Source: Model Context Protocol 2026-07-28, Backward Compatibility.
        """
        config = self._config
        is_newer_first = isinstance(config, ChannelServer)
        try:
            client = self._new_client(transport(config), newer=is_newer_first)
            return await client.__aenter__()
        except (MCPError, ExceptionGroup) as error:
            code = _error_code(error)
            may_be_older = code is not None and self._http_status.may_be_older
            if is_newer_first or (code not in _UNSUPPORTED_HANDSHAKE and not may_be_older):
                raise
        try:
            self.ended.clear()
            return await self._new_client(transport(config), newer=True).__aenter__()
        except (MCPError, ExceptionGroup) as error:
            may_be_older = _error_code(error) is not None and self._http_status.may_be_older
            if not isinstance(config, HttpServer) or not may_be_older:
                raise
            status, self._http_status = self._http_status, HttpStatus()
            older = transport(msgspec.structs.replace(config, sse=True))
            try:
                self.ended.clear()
                async with asyncio.timeout(_OLDER_HTTP_SECONDS):
                    return await self._new_client(older, newer=False).__aenter__()
            except Exception:  # noqa: BLE001 - the error of the newer transport is reported
                self._http_status = status
                raise error from None

    def _new_client(
        self, transport: AbstractAsyncContextManager[TransportStreams], *, newer: bool
    ) -> Client:
        messages = self._messages
        return Client(
            sanitized_transport(transport, self.ended, self._sanitizer),
            mode="auto" if newer else "legacy",
            client_info=types.Implementation(name="acp-agent", version=__version__),
            elicitation_callback=messages.answer_elicitation,
            sampling_callback=messages.answer_sampling if self._config.options.sampling else None,
            list_roots_callback=messages.list_roots,
            logging_callback=messages.log,
            log_level=LOG_LEVEL,
            message_handler=messages.receive,
            cache=None,
        )

    def _started(self, program: ServerProcess) -> None:
        self._program = program

    async def visit(self, error: MCPError) -> bool:
        """Send the user to the pages that an error requires; return whether they accepted all.

        Source: Model Context Protocol, Elicitation, URL mode (`URL_ELICITATION_REQUIRED`).
        """
        if error.code != types.URL_ELICITATION_REQUIRED:
            return False
        try:
            elicitations = types.ElicitationRequiredErrorData.model_validate(
                error.data
            ).elicitations
        except ValueError:
            return False
        for elicitation in elicitations[:3]:
            page = Page(
                message=elicitation.message,
                url=elicitation.url,
                id=elicitation.elicitation_id or "",
            )
            response = await self._asker.ask_page(page)
            if response is None or response.action != "accept":
                return False
        return bool(elicitations)


def _error_code(error: Exception) -> int | None:
    """Return the code of a server's error; task groups wrap it where transports have them."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error.code if isinstance(error, MCPError) else None


def _mark_retrieved(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()  # marks the exception as retrieved
