"""Lifecycle of an MCP server: connect in the background, reconnect after failures, close."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.errors import ToolError
from acp_agent.extensions.mcp.config import HttpServer, Launcher, SavedLogins, ServerConfig
from acp_agent.platform.watchdog import Watchdog

if TYPE_CHECKING:  # these import the `mcp` package
    from acp_agent.extensions.mcp.client import McpClient
    from acp_agent.extensions.mcp.elicitation import Asker
    from acp_agent.extensions.mcp.listing import ServerCatalog

RESTARTS = 3  # consecutive restarts before a failing server is given up
_STABLE_SECONDS = 60.0  # after this uptime the restart count is reset
_BACKOFF_FACTOR = 4  # factor by which the delay grows with each restart
_SETTLE_SECONDS = 0.1  # delay before lists are read again: changes often come in groups
_LISTING_INTERVAL = 1.0  # seconds; limits a server that reports changes continuously
_RETRY_SECONDS = 30.0  # between two attempts to reach a server that was given up
_MAX_LOGGED = 200  # messages of a server's log that are logged
_MAX_RECENT = 10  # messages of its log that are shown
_MAX_CHANGED = 50  # changed resources that are remembered
_CLOSE_SECONDS = 1.2
_CANCELLED_SECONDS = 0.3

_log = logging.getLogger(__name__)


class Owner(Protocol):
    """The session that owns the servers."""

    def changed(self) -> None:
        """Called when a server's tools, prompts or resources have changed."""

    def roots(self) -> Sequence[Path]:
        """Return the session's folders."""

    def trace(self) -> JsonObject:
        """Return the turn's trace (W3C Trace Context) as a `_meta`, or an empty one."""

    async def tell(self, title: str, description: str = "") -> None:
        """Notify the user."""


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Where and how servers are started; `clean` removes secrets from a text.

    `connect` is how long a server may take to connect, `restart_delay` the delay before the first
    restart, both in seconds. `watch` ends programs if this process is killed; `launch` starts them.
    """

    cwd: Path
    environ: Mapping[str, str]
    watch: Watchdog
    connect: float
    restart_delay: float
    clean: Callable[[str], str]
    launch: Launcher
    logins: SavedLogins


class McpServer:
    """One server of a session. `label` is its internal name, `config.name` the name for the user.

    The whole connection runs in a separate task.
    """

    def __init__(
        self,
        config: ServerConfig,
        label: str,
        *,
        setting: ServerSettings,
        owner: Owner,
        asker: Asker,
    ) -> None:
        self.config = config
        self.label = label  # may change at runtime, if another server has the same one
        self.offer: ServerCatalog | None = None
        self.recent_log: deque[str] = deque(maxlen=_MAX_RECENT)
        self.problem = ""  # why the last connection ended or failed, in one line without secrets
        self._setting = setting
        self._owner = owner
        self._asker = asker
        self._client: McpClient | None = None
        self._followed: dict[str, None] = {}  # addresses of resources
        self._changed_resources: dict[str, None] = {}
        self._lists_changed = asyncio.Event()
        self._logged = 0
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()
        self._was_connected = False
        self._is_stale = False  # the last connection is to be replaced at once
        self._given_up_at = 0.0  # the loop's time
        self._logins_stamp = 0
        self._task = asyncio.create_task(self._run())

    @property
    def client(self) -> McpClient:
        """Return the connection. Raises ToolError if the server is not connected at the moment."""
        if self._client is None:
            raise ToolError(f"the MCP server {self.config.name!r} is not connected at the moment")
        return self._client

    @property
    def is_settled(self) -> bool:
        """Return whether it is known if the server can be used."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Wait until it is known whether the server can be used, also after a restart."""
        await self._settled.wait()

    async def renew(self, client: McpClient) -> None:
        """Replace a connection that cannot be used any more, and wait for the new one."""
        self._replace(client)
        await self.settled()

    def reconnect(self) -> None:
        """Connect again to a server that was given up, or at which the user has logged in since.

        Only over HTTP, where servers come back without us, and only now and then. Does not wait.
        """
        if not isinstance(self.config, HttpServer) or self._stop.is_set():
            return
        has_new_login = self._setting.logins.stamp() != self._logins_stamp
        if self._client is not None:
            if has_new_login and self._client.wants_login:
                self._replace(self._client)
        elif self._task.done():
            pause = asyncio.get_running_loop().time() - self._given_up_at
            if has_new_login or pause > _RETRY_SECONDS:
                self._settled.clear()
                self._task = asyncio.create_task(self._run())

    def _replace(self, client: McpClient) -> None:
        if self._client is client:
            self._client = None
            self._settled.clear()
            client.is_stale = True
            client.ended.set()

    async def aclose(self) -> None:
        """End the connection, and the program behind it. Takes at most two seconds."""
        self._stop.set()
        if self._client is None:
            self._task.cancel()  # it is connecting, or waiting to reconnect
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CANCELLED_SECONDS)

    # -- resources and folders -------------------------------------------------------------

    def follow(self, uri: str) -> None:
        """Follow a resource that the conversation contains, also after a reconnection."""
        self._followed[uri] = None
        self._changed_resources.pop(uri, None)
        if self._client is not None:
            self._client.follow(uri)

    def take_changed_resources(self) -> Sequence[str]:
        """Return the followed resources that changed since the last call."""
        changed, self._changed_resources = self._changed_resources, {}
        return tuple(changed)

    async def report_roots(self) -> None:
        """Tell the server that the session's folders have changed."""
        if self._client is not None:
            await self._client.report_roots()

    # -- calls from the connection (`acp_agent.extensions.mcp.server_messages.Host`) -------

    def roots(self) -> Sequence[Path]:
        """Return the session's folders."""
        return self._owner.roots()

    def list_changed(self) -> None:
        """Read the lists again."""
        self._lists_changed.set()

    def resource_changed(self, uri: str) -> None:
        """Remember that a resource has changed; it may be below one that is followed."""
        if len(self._changed_resources) < _MAX_CHANGED and any(
            uri.startswith(followed) for followed in self._followed
        ):
            self._changed_resources[uri] = None

    def log(self, level: str, text: str) -> None:
        """Write a message of the server's log to the log, up to a limit."""
        text = f"{level}: {self._setting.clean(text)}"
        self.recent_log.append(text)
        if self._logged < _MAX_LOGGED:
            self._logged += 1
            _log.info("the MCP server %s: %s", self.label, text)

    # -- the task --------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            # In a thread: it imports the `mcp` package.
            await asyncio.to_thread(import_module, f"{__package__}.client")
            await self._stay_connected()
        except Exception:  # noqa: BLE001 - an internal error must be reported
            _log.exception("the MCP server %s broke", self.label)
            self.problem = "an internal error: see the log"
            await self._owner.tell(f"The MCP server {self.config.name!r} cannot be used.")
        finally:
            self._given_up_at = asyncio.get_running_loop().time()
            self._settled.set()

    async def _stay_connected(self) -> None:
        loop = asyncio.get_running_loop()
        restarts = 0
        while True:
            start = loop.time()
            previous = self.problem
            why = self.problem = await self._connect_once()
            if self._stop.is_set():
                return
            self._settled.clear()  # a new turn waits briefly for the server to return
            if self._is_stale:
                continue
            if not self._was_connected:
                if why != previous:
                    await self._owner.tell(
                        f"The MCP server {self.config.name!r} could not be connected.", f"{why}."
                    )
                return
            self.offer = None
            self._owner.changed()
            if loop.time() - start > _STABLE_SECONDS:
                restarts = 0
            if restarts == RESTARTS:
                self._was_connected = False
                await self._owner.tell(
                    (f"The MCP server {self.config.name!r} ended repeatedly and is not restarted."),
                    f"{why}.",
                )
                return
            await self._owner.tell(
                f"The MCP server {self.config.name!r} ended and is being restarted.", f"{why}."
            )
            await asyncio.sleep(self._setting.restart_delay * _BACKOFF_FACTOR**restarts)
            restarts += 1

    async def _connect_once(self) -> str:
        """Connect, and wait until the connection ends; return the reason."""
        from acp_agent.extensions.mcp.client import McpClient  # noqa: PLC0415 - imported by now

        client = McpClient(self.config, self._asker, self, self._owner.trace)
        setting = self._setting
        self._logins_stamp = setting.logins.stamp()
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(setting.connect):
                    await stack.enter_async_context(
                        client.connected(
                            label=self.label,
                            cwd=setting.cwd,
                            environ=setting.environ,
                            watch=setting.watch,
                            clean=setting.clean,
                            logins=setting.logins,
                            launch=setting.launch,
                        )
                    )
                    self._lists_changed.clear()
                    self.offer = await client.list_offer()
                self._client = client
                for uri in self._followed:
                    client.follow(uri)
                self._was_connected = True
                self.problem = ""
                self._settled.set()
                self._owner.changed()
                await self._until_ended(client)
        except TimeoutError:
            return f"it did not answer within {setting.connect:g} s"
        except Exception as error:  # noqa: BLE001 - any failure of a server is reported to the user
            _log.info("the MCP server %s failed", self.label, exc_info=error)
            return client.why(error, setting.clean)
        finally:
            self._client = None
            self._is_stale = client.is_stale
        return client.ending()

    async def _until_ended(self, client: McpClient) -> None:
        """Keep the lists up to date while the connection is open."""
        loop = asyncio.get_running_loop()
        listed = loop.time()
        changed = self._lists_changed
        while await self._wait_for_first(client, changed) is changed:
            pause = max(_SETTLE_SECONDS, listed + _LISTING_INTERVAL - loop.time())
            if await self._wait_for_first(client, client.ended, limit=pause) is not None:
                return
            try:
                changed.clear()
                async with asyncio.timeout(self._setting.connect):
                    self.offer = await client.list_offer()
            except Exception as error:  # noqa: BLE001 - the old lists stay
                why = client.why(error, self._setting.clean)
                _log.warning("the MCP server %s did not list what it has: %s", self.label, why)
            listed = loop.time()
            self._owner.changed()

    async def _wait_for_first(
        self, client: McpClient, event: asyncio.Event, *, limit: float | None = None
    ) -> asyncio.Event | None:
        """Wait for `event` or the connection's end; return the event set, or None on timeout."""
        events = [self._stop, client.ended, event]
        waits = [asyncio.create_task(candidate.wait()) for candidate in events]
        try:
            await asyncio.wait(waits, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return next((candidate for candidate in events if candidate.is_set()), None)
