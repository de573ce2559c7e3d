"""A session that is open in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.events import AnyEvent, ChildWorked, SubagentChanged, SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.models.base import ModelInfo
from acp_agent.platform import module_cache
from acp_agent.session.children.running import RunningChildren, TaskRecords
from acp_agent.session.client import AttachedClient, Client
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.session.option_change import change_option
from acp_agent.session.prompts import PromptHandler
from acp_agent.session.services import Services
from acp_agent.session.store.lease import Lease
from acp_agent.session.turns.resources import SessionResources
from acp_agent.session.turns.runner import TurnRunner
from acp_agent.session.turns.turn import Turn
from acp_agent.workspace.threads import in_daemon_thread

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import ServerConfig  # for sessions that have MCP servers
    from acp_agent.session.history.rewind import RewindResult, Scope


class Session:
    """An open session. It creates the session's parts and connects them.

    Args:
        model: the model, if one is already chosen.
        lease: the right to write its journal; released when it is closed.

    Attributes:
        extensions: its MCP servers, skills and agents.
    """

    def __init__(
        self,
        session: SessionId,
        *,
        cwd: Path,
        directories: Sequence[Path],
        model: ModelInfo | None,
        services: Services,
        lease: Lease,
    ) -> None:
        self.id = session
        self.client = AttachedClient(session, on_timeout=self.cancel)
        self.core = SessionCore(
            session,
            cwd=cwd,
            directories=directories,
            model=model,
            services=services,
            client=self.client,
        )
        children = RunningChildren(TaskRecords(self.core.history))
        self.core.subscribe(children.apply, ChildWorked, SubagentChanged)
        self.extensions = Extensions(self.core, self.move)
        self.resources = SessionResources(self.core, self.extensions, children)
        self.turns = TurnRunner(self.core, self.resources, children)
        self.prompts = PromptHandler(self.core, self.turns, self.resources, self.extensions)
        self._lease = lease
        self._closing: asyncio.Task[None] | None = None

    # -- opening -------------------------------------------------------------------------------

    async def move(self, cwd: Path, directories: Sequence[Path]) -> None:
        """Change the folders. A running turn continues with the previous ones."""
        if await self.core.move(cwd, directories):
            self.resources.rebuild_tools()
            if self.extensions.mcp is not None:
                self.extensions.mcp.report_roots()

    async def set_system_prompt(self, system_prompt: SystemPromptGiven | None) -> None:
        """Set the client's instructions; None leaves them unchanged.

        New instructions change the system prompt from the next turn on, which invalidates the
        provider's cache of the conversation.
        """
        if system_prompt is not None and system_prompt != self.core.state.client_prompt:
            await self.core.emit(system_prompt)

    def attach(self, client: Client, final_events: Sequence[AnyEvent] = ()) -> None:
        """Attach a client in place of the current one; see `AttachedClient.attach`."""
        had_terminals = self.client.terminals(self.id) is not None
        self.client.attach(client, final_events)
        if had_terminals or self.client.terminals(self.id) is not None:
            self.resources.rebuild_tools()  # the next turn uses the client's terminals

    def opened(
        self,
        mcp_servers: Sequence[ServerConfig],
        modules: Sequence[str] = (),
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """Connect MCP servers and prepare the first prompt. Call it once the client has the id.

        Args:
            mcp_servers: the servers that the client named; they replace earlier ones.
            modules: the modules that the client's connection imports for a prompt.
            busy: returns whether the connection is answering a request other than a prompt.
        """
        self.core.journal.drop_cached_history()  # it is not replayed any more
        self.extensions.use_servers(mcp_servers)
        if self.extensions.definitions.folder_exists:
            self.core.background.spawn(self.extensions.definitions.load())
        if self.client.asks_outside_turns:
            self.core.background.spawn(self.extensions.trust.ask_by_form())
        self.core.background.spawn(self._prepare(modules, busy))

    async def _prepare(self, modules: Sequence[str], busy: Callable[[], bool]) -> None:
        """Prepare the first prompt, then save the imported modules for later starts."""
        await self.resources.prepare(modules, busy)
        await in_daemon_thread(module_cache.save, name="module-cache")

    # -- running -------------------------------------------------------------------------------

    async def set_option(self, option: str, value: str) -> None:
        """Set an option of the session.

        Raises:
            InvalidInputError: there is no such option, it has no such value, or a hook refuses it.
            AuthRequiredError: the model cannot be used.
            StoreError: the journal could not be written; the option is unchanged.
        """
        if option == "agent":
            self.extensions.definitions.expire()
            await self.extensions.definitions.load()
        await change_option(self.core, self.resources, option, value)

    @property
    def turn(self) -> Turn | None:
        """The running turn; None if the session is idle."""
        return self.turns.current

    def cancel(self) -> None:
        """Stop the running turn. Does nothing when idle."""
        self.turns.cancel()

    async def rewind(self, point: str, scope: Scope, *, force: bool = False) -> RewindResult:
        """Rewind to an earlier point; see `acp_agent.session.history.rewind.Rewinder.rewind`.

        Raises:
            TurnRunsError: a turn runs.
        """
        async with self.turns.idle():
            return await self.resources.rewinder.rewind(point, scope, force=force)

    # -- closing -------------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        """Return whether it is being closed, or is closed."""
        return self.core.closing

    @property
    def closed(self) -> bool:
        """Return whether it is closed or failed to close; in both cases others may open it."""
        return self._closing is not None and self._closing.done()

    async def close(self) -> None:
        """Stop the turn, end every process, write all events and release the lease.

        Closing finishes even if the caller is cancelled. Further calls wait for it.
        """
        if self._closing is None:
            self.core.closing = True
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        core = self.core
        try:
            core.background.cancel()
            self.cancel()
            if self.turn is not None:
                await self.turn.wait()
            await core.background.wait()
            outcomes = await asyncio.gather(
                self.resources.aclose(), self.extensions.aclose(), return_exceptions=True
            )
            await core.services.sandboxes.remove_temporary(core.id)
            await core.flush()
            for outcome in outcomes:
                if outcome is not None:
                    raise outcome
        finally:
            core.journal.close()
            self._lease.release()
