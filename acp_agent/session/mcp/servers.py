"""MCP servers of a session: connections in the background, and questions to the user.

Imported only by sessions that have servers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import JsonObject
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import AcpAgentError
from acp_agent.events import NoticeShown
from acp_agent.extensions.mcp.config import SavedLogins, ServerConfig, all_values, credentials
from acp_agent.extensions.mcp.names import server_labels
from acp_agent.extensions.mcp.server import McpServer, ServerSettings
from acp_agent.ids import SessionId
from acp_agent.session.client import Client
from acp_agent.session.commands.command import Command
from acp_agent.session.confinement import Confinement
from acp_agent.session.core import BackgroundTasks
from acp_agent.session.services import Services

if TYPE_CHECKING:
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.session.mcp.catalog import McpCatalog, ServerPrompt
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.workspace import Workspace


# How long the first request to the model waits for servers that are still connecting. Servers that
# connect later are included in the next request.
READY_TIMEOUT = 5.0

_log = logging.getLogger(__name__)

Notify = Callable[[NoticeShown], Awaitable[None]]


class McpServers:
    """The MCP servers to which a session is connected.

    Args:
        services: limits, environment and known secrets.
        on_commands: called when the commands have changed.
    """

    def __init__(
        self,
        *,
        session: SessionId,
        cwd: Path,
        services: Services,
        client: Client,
        notify: Notify,
        on_commands: Callable[[], None],
    ) -> None:
        self._services = services
        self._session = session
        self._cwd = cwd
        self._client = client
        self._notify = notify
        self._on_commands = on_commands
        self._catalog: McpCatalog | None = None
        self._rebuild_task: asyncio.Task[None] | None = None
        self._rebuild_again = False
        self._reported: set[str] = set()
        self._slow: set[McpServer] = set()
        self._closed = False
        self._ending = BackgroundTasks(f"the end of MCP servers of session {session}")
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
        )
        return McpServer(config, label, setting=setting, owner=self, asker=asker)

    def _end(self, servers: Sequence[McpServer]) -> None:
        for server in servers:
            self._slow.discard(server)
            self._ending.spawn(server.aclose())
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
            server.try_again()
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
    def prompts(self) -> Sequence[ServerPrompt]:
        """The current prompts of the servers."""
        return () if self._catalog is None else self._catalog.prompts

    @property
    def commands(self) -> Sequence[Command]:
        """The prompts of the servers as commands."""
        translate = self._services.translate
        commands = [prompt.command for prompt in self.prompts]
        return [
            Command(
                name=command.name,
                description=translate.rendered(command.description),
                hint=command.hint,
            )
            for command in commands
        ]

    async def aclose(self) -> None:
        """Close all connections and stop all programs."""
        self._closed = True
        if self._rebuild_task is not None:
            self._rebuild_task.cancel()
        await asyncio.gather(self._ending.wait(), *(server.aclose() for server in self.servers))

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
        return McpCatalog(tuple(self.servers), call_seconds=limits.mcp_call_timeout)


class McpAsker:
    """Asks the user for a server (`acp_agent.extensions.mcp.elicitation.Asker`).

    Args:
        server: its name, which starts every question so that the user knows who asks.
        tell: notifies the user about questions that were refused.
        lock: a lock shared by the servers of a session.
        hooks: returns the session's hooks, which may answer for the user.
    """

    def __init__(
        self,
        server: str,
        session: SessionId,
        client: Client,
        tell: Callable[[str, str], Awaitable[None]],
        lock: asyncio.Lock,
        *,
        translate: Translator = ENGLISH,
        hooks: Callable[[], SessionHooks | None] = lambda: None,
    ) -> None:
        self._server = server
        self._session = session
        self._client = client
        self._tell = tell
        self._lock = lock
        self._translate = translate
        self._hooks = hooks
        self._pages: dict[str, Page] = {}

    async def ask_form(self, form: Form) -> Response | None:
        """Ask the user to fill in a form. Return None if the client cannot show it."""
        labelled = msgspec.structs.replace(form, message=self._from_server(form.message))
        fields = {"mode": "form", "message": form.message, "requested_schema": form.schema}
        return await self._ask(lambda: self._client.ask_form(self._session, labelled), fields)

    async def ask_page(self, page: Page) -> Response | None:
        """Ask the user to visit a page. Return None if the client cannot show it."""
        fields = {"mode": "url", "message": page.message, "url": page.url}
        fields["elicitation_id"] = page.id
        page = msgspec.structs.replace(page, message=self._from_server(page.message))
        response = await self._ask(lambda: self._client.ask_page(self._session, page), fields)
        if response is not None and response.action == "accept":
            self._pages[page.id] = page
        return response

    def page_done(self, visit: str) -> None:
        """Report to the client that the visit of a page is complete."""
        page = self._pages.pop(visit, None)
        if page is not None:
            self._client.page_done(page)

    async def refused(self, reason: str) -> None:
        """Notify the user that a question was refused, and why."""
        await self._tell(
            f"A question of the MCP server {self._server!r} was refused.", f"{reason}."
        )

    def _from_server(self, message: str) -> str:
        return self._translate(
            "The MCP server {server} asks: {message}", server=repr(self._server), message=message
        )

    async def _ask(
        self, ask: Callable[[], Awaitable[Response | None]], fields: JsonObject
    ) -> Response | None:
        """Return the response of the hooks, else of the user; `fields` describe the question."""
        hooks = self._hooks()
        if hooks is None:
            return await self._ask_user(ask)
        fields = {"mcp_server_name": self._server, **fields}
        answer = await hooks.fire("Elicitation", fields, matched=self._server)
        response = Response(action="decline") if answer.blocked else answer.response
        if response is None:
            hooks.report_question(str(fields["message"]), "elicitation_dialog")
            response = await self._ask_user(ask)
        if response is None:
            return None
        fields = {"mcp_server_name": self._server, "mode": fields["mode"]}
        fields |= {"action": response.action, "content": response.content or {}}
        answer = await hooks.fire("ElicitationResult", fields, matched=self._server)
        if answer.blocked:
            return Response(action="decline")
        return answer.response or response

    async def _ask_user(self, ask: Callable[[], Awaitable[Response | None]]) -> Response | None:
        try:
            async with self._lock:
                return await ask()
        except AcpAgentError as error:
            _log.info("a question of an MCP server was not answered: %s", error)
        except Exception as error:  # noqa: BLE001 - no editor supports this form
            _log.warning("a question of an MCP server could not be asked: %s", error)
        return None
