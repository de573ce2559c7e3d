"""MCP servers of a session: connections in the background, and what they offer.

Imported only by sessions that have servers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.content import JsonObject
from acp_agent.events import NoticeShown, ServerTool
from acp_agent.extensions.mcp.config import SavedLogins, ServerConfig, all_values, credentials
from acp_agent.extensions.mcp.names import server_labels
from acp_agent.extensions.mcp.server import McpServer, ServerSettings
from acp_agent.ids import SessionId
from acp_agent.session.client import Client
from acp_agent.session.commands.command import Command
from acp_agent.session.confinement import Confinement
from acp_agent.session.core import BackgroundTasks
from acp_agent.session.mcp.questions import McpAsker
from acp_agent.session.services import Services

if TYPE_CHECKING:
    from acp_agent.agent.resources import TurnResources
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.session.mcp.catalog import McpCatalog, ServerPrompt
    from acp_agent.session.mcp.sampling import Sampler
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.workspace import Workspace


# How long the first request to the model waits for servers that are still connecting. Servers that
# connect later are included in the next request.
READY_TIMEOUT = 5.0

_log = logging.getLogger(__name__)

Notify = Callable[..., Awaitable[None]]  # takes events


class McpServers:
    """The MCP servers to which a session is connected.

    Args:
        roots: returns the session's folders.
        turn: returns the current or last turn, in which servers may ask models.
        services: limits, environment and known secrets.
        notify: shows events that are not part of the conversation.
        on_commands: called when the commands have changed.
    """

    def __init__(
        self,
        *,
        session: SessionId,
        cwd: Path,
        roots: Callable[[], Sequence[Path]],
        turn: Callable[[], TurnResources | None],
        services: Services,
        client: Client,
        notify: Notify,
        on_commands: Callable[[], None],
    ) -> None:
        self._services = services
        self._session = session
        self._cwd = cwd
        self.roots = roots
        self._turn = turn
        self._sampler: Sampler | None = None
        self._client = client
        self._notify = notify
        self._on_commands = on_commands
        self._catalog: McpCatalog | None = None
        self._rebuild_task: asyncio.Task[None] | None = None
        self._rebuild_again = False
        self._reported: set[str] = set()
        self._slow: set[McpServer] = set()
        self._closed = False
        self._background = BackgroundTasks(f"the MCP servers of session {session}")
        self._question_lock = asyncio.Lock()
        self._hidden: tuple[str, ...] = ()
        self.hooks: SessionHooks | None = None  # of the current or last turn
        self.secrets: list[str] = []  # the list object stays the same: logins add to it
        self.servers: list[McpServer] = []

    def use(self, configs: Sequence[ServerConfig]) -> None:
        """Connect to these servers; existing connections to them stay open, others are closed."""
        self._hidden = tuple(value for config in configs for value in all_values(config))
        self._add_secrets([value for config in configs for value in credentials(config)])
        unused = list(self.servers)
        used: list[McpServer] = []
        labels = server_labels([config.name for config in configs])
        for config, label in zip(configs, labels, strict=True):
            server = next((server for server in unused if server.config == config), None)
            if server is None:
                server = self._start(config, label)
            else:
                unused.remove(server)
                server.label = label
            used.append(server)
        self.servers = used
        self._end(unused)

    def _add_secrets(self, secrets: Sequence[str]) -> None:
        self.secrets += [value for value in secrets if value not in self.secrets]

    def restart(self, server: McpServer) -> None:
        """Stop a server and start it again."""
        at = self.servers.index(server)
        self.servers[at] = self._start(server.config, server.label)
        self._end([server])

    def _start(self, config: ServerConfig, label: str) -> McpServer:
        services, options = self._services, config.options
        limits = services.config.limits
        setting = ServerSettings(
            cwd=self._cwd,
            environ=services.environ,
            watch=services.watch,
            connect=options.start_timeout or limits.mcp_connect_timeout,
            restart_delay=limits.mcp_restart_delay,
            clean=self.clean,
            launch=Confinement.from_services(services).mcp_server,
            logins=SavedLogins(services.mcp_logins, self._add_secrets),
        )
        asker = McpAsker(
            config.name,
            self._session,
            self._client,
            self.tell,
            self._question_lock,
            translate=services.translate,
            hooks=lambda: self.hooks,
            sampler=self._current_sampler,
        )
        return McpServer(config, label, setting=setting, owner=self, asker=asker)

    def _end(self, servers: Sequence[McpServer]) -> None:
        for server in servers:
            self._slow.discard(server)
            self._background.spawn(server.aclose())
        if servers:
            self.changed()

    def clean(self, text: str) -> str:
        """Return `text` without known secrets and without values passed to the servers."""
        from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - not while a session opens

        return scrub(text, (*self._services.secrets.values(), *self._hidden))

    async def ready(self) -> None:
        """Wait, for a few seconds at most, until all servers are connected or have failed.

        A server that exceeded this time once is not awaited again.
        """
        for server in self.servers:
            server.reconnect()
        awaited = [server for server in self.servers if server not in self._slow]
        try:
            async with asyncio.timeout(
                self._services.config.limits.mcp_ready_timeout or READY_TIMEOUT
            ):
                await asyncio.gather(*(server.settled() for server in awaited))
                if self._rebuild_task is not None:
                    await asyncio.wait([self._rebuild_task])
        except TimeoutError:
            self._slow.update(server for server in awaited if not server.is_settled)
            _log.info("a turn begins without MCP servers that still connect")

    def toolset(self, core: Toolset, workspace: Workspace) -> Toolset:
        """Return the session's own tools and the current tools of the servers."""
        return core if self._catalog is None else self._catalog.toolset(core, workspace)

    @property
    def offered(self) -> tuple[ServerTool, ...]:
        """The tools of the last toolset, as the journal describes them."""
        return () if self._catalog is None else self._catalog.offered

    @property
    def prompts(self) -> Sequence[ServerPrompt]:
        """The current prompts of the servers."""
        return () if self._catalog is None else self._catalog.prompts

    @property
    def commands(self) -> Sequence[Command]:
        """The prompts of the servers as commands."""
        translate = self._services.translate
        commands = [prompt.command for prompt in self.prompts]
        return [
            replace(command, description=translate.rendered(command.description))
            for command in commands
        ]

    async def aclose(self) -> None:
        """Close all connections and stop all programs."""
        self._closed = True
        if self._rebuild_task is not None:
            self._rebuild_task.cancel()
        await asyncio.gather(self._background.wait(), *(server.aclose() for server in self.servers))

    def report_roots(self) -> None:
        """Tell the servers that the session's folders have changed. Does not wait."""
        for server in self.servers:
            self._background.spawn(server.report_roots())

    def take_changed_resources(self) -> list[str]:
        """Return mentions of the attached resources that changed since the last call."""
        return [
            self.clean(f"@{server.label}:{uri}")
            for server in self.servers
            for uri in server.take_changed_resources()
        ]

    def _current_sampler(self) -> Sampler | None:
        turn = self._turn()
        if turn is None:
            return None
        if self._sampler is None or self._sampler.turn is not turn:
            from acp_agent.session.mcp.sampling import Sampler  # noqa: PLC0415 - few servers ask

            self._sampler = Sampler(turn, self._session, self._client, self._notify, self.clean)
        return self._sampler

    # -- calls from servers (`acp_agent.extensions.mcp.server.Owner`) ----------------------------

    def changed(self) -> None:
        """Rebuild the catalog, in a thread because it may be large."""
        self._rebuild_again = True
        if self._rebuild_task is None and not self._closed:
            self._rebuild_task = asyncio.create_task(self._rebuild())

    def trace(self) -> JsonObject:
        """Return the trace of the turn."""
        return self._client.trace(self._session)

    async def tell(self, title: str, description: str = "") -> None:
        """Notify the user."""
        if not self._closed:
            notice = NoticeShown(
                severity="warning",
                title=self.clean(title),
                description=self.clean(description),
            )
            await self._notify(notice)

    async def _rebuild(self) -> None:
        try:
            while self._rebuild_again:
                self._rebuild_again = False
                previous = self.commands
                self._catalog = await asyncio.to_thread(self._build_catalog)
                if self.commands != previous:
                    self._on_commands()
        except Exception:  # noqa: BLE001 - log our own faults
            _log.exception("the catalog of MCP servers could not be built")
        finally:
            self._rebuild_task = None
        for title, description in self._catalog.notices if self._catalog is not None else ():
            if title not in self._reported:
                self._reported.add(title)
                await self.tell(title, description)

    def _build_catalog(self) -> McpCatalog:
        from acp_agent.session.mcp.catalog import McpCatalog  # noqa: PLC0415 - in a thread

        limits = self._services.config.limits
        return McpCatalog(
            tuple(self.servers), call_seconds=limits.mcp_call_timeout, previous=self._catalog
        )
