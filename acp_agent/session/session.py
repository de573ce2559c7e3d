"""A session: a conversation that is open in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.events import AnyEvent, ChildWorked, SubagentChanged, SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.models.base import ModelInfo
from acp_agent.session.children.running import RunningChildren, TaskRecords
from acp_agent.session.client import AttachedClient, Client
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.session.prompts import PromptHandler
from acp_agent.session.services import Services
from acp_agent.session.store.lease import Lease
from acp_agent.session.turns.resources import SessionResources
from acp_agent.session.turns.runner import TurnRunner
from acp_agent.session.turns.turn import Turn

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import ServerConfig  # for sessions that have MCP servers
    from acp_agent.session.history.rewind import RewindResult, What


class Session:
    """An open session, put together of its parts.

    Args:
        session: its id.
        cwd: the working folder.
        directories: the further folders.
        model: the model, where one is chosen already.
        services: what it is built on.
        lease: the right to write it; released when it is closed.

    Attributes:
        id: its id.
        client: the client that is attached.
        core: its journal and its state.
        extensions: its MCP servers, skills and agents.
        resources: what its turns work with.
        turns: its turns.
        prompts: handles what the user says.
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
        self.extensions = Extensions(self.core)
        self.resources = SessionResources(self.core, self.extensions, children)
        self.turns = TurnRunner(self.core, self.resources, children)
        self.prompts = PromptHandler(self.core, self.turns, self.resources, self.extensions)
        self._lease = lease
        self._closing: asyncio.Task[None] | None = None

    # -- opening -------------------------------------------------------------------------------

    async def move(self, cwd: Path, directories: Sequence[Path]) -> None:
        """Use other folders, which the client named. A turn that runs keeps its own."""
        if await self.core.move(cwd, directories):
            self.resources.rebuild_tools()

    async def set_system_prompt(self, given: SystemPromptGiven | None) -> None:
        """Use the instructions that the client gave; None: those that it gave before hold.

        Other instructions make another system prompt, from the next turn on. The provider's cache
        of the conversation is lost then.
        """
        if given is not None and given != self.core.state.given_system_prompt:
            await self.core.emit(given)

    def attach(self, client: Client, left: Sequence[AnyEvent] = ()) -> None:
        """Show the session to this client, and to no other; see `AttachedClient.attach`."""
        had_terminals = self.client.terminals(self.id) is not None
        self.client.attach(client, left)
        if had_terminals or self.client.terminals(self.id) is not None:
            self.resources.rebuild_tools()  # for the next turn, with its terminals

    def opened(
        self,
        mcp_servers: Sequence[ServerConfig],
        modules: Sequence[str] = (),
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """Connect the MCP servers and prepare the first prompt, once the client knows the session.

        Args:
            mcp_servers: the servers that the client named; those of an earlier opening end.
            modules: what the client's connection imports for a prompt.
            busy: whether it is answering a request.
        """
        self.core.drop_history()  # nobody is going to replay it any more
        self.extensions.use_servers(mcp_servers)
        if self.extensions.definitions.there:
            self.core.background.spawn(self.extensions.definitions.load())
        if self.client.asks_outside_turns:
            self.core.background.spawn(self.extensions.trust.ask_by_form())
        self.core.background.spawn(self.resources.prepare(modules, busy))

    # -- while it is open ----------------------------------------------------------------------

    async def set_option(self, option: str, value: str) -> None:
        """Set an option of the session.

        Raises:
            InvalidInputError: there is no such option, or it has no such value.
            AuthRequiredError: the model that was named cannot be used.
            StoreError: the journal could not be written; the option is unchanged.
        """
        if option == "agent":
            await self.extensions.definitions.load()
        await self.core.emit(await self.core.settings.change(option, value))

    @property
    def turn(self) -> Turn | None:
        """The turn that runs."""
        return self.turns.current

    def cancel(self) -> None:
        """Stop the turn that runs. Silent when idle."""
        self.turns.cancel()

    async def rewind(self, point: str, what: What, *, force: bool = False) -> RewindResult:
        """Go back to an earlier point; see `acp_agent.session.history.rewind.Rewinder.go`.

        Raises:
            TurnRunsError: a turn runs.
        """
        async with self.turns.idle():
            return await self.resources.rewinder.go(point, what, force=force)

    # -- closing -------------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        """Whether it is being closed, or is closed."""
        return self.core.closing

    @property
    def closed(self) -> bool:
        """Whether it is closed, or failed to close; others may open it in any case."""
        return self._closing is not None and self._closing.done()

    async def close(self) -> None:
        """Stop the turn, end every process, write what is left, release the lease.

        It finishes even if the caller is cancelled. Called again, it waits for that.
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
            ended = await asyncio.gather(
                self.resources.aclose(), self.extensions.aclose(), return_exceptions=True
            )
            await core.settled()
            for failure in ended:
                if failure is not None:
                    raise failure
        finally:
            core.close_journal()
            self._lease.release()
