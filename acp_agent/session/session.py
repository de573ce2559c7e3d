"""One conversation: its state, a fold of its journal, and the turn that may be running in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp_agent.agent.context import Context
from acp_agent.content import ContentBlock
from acp_agent.events import (
    OTHERS_WORDS,
    AnyEvent,
    DirectoriesChanged,
    SystemPromptGiven,
    of_a_child,
)
from acp_agent.ids import SessionId
from acp_agent.models.base import ModelInfo
from acp_agent.permissions.access import Mode
from acp_agent.session.background_tasks import BackgroundTasks
from acp_agent.session.children.running import Children
from acp_agent.session.commands import Command
from acp_agent.session.editor import Editor
from acp_agent.session.extensions import Extensions
from acp_agent.session.journal import Journal
from acp_agent.session.prompt_queue import PromptQueue
from acp_agent.session.prompter import Prompter, Said
from acp_agent.session.seat import Seat
from acp_agent.session.services import Services
from acp_agent.session.settings import Settings
from acp_agent.session.state import SessionState
from acp_agent.session.store.lease import Lease
from acp_agent.session.turn import Turn
from acp_agent.session.turns import Turns
from acp_agent.session.workbench import Workbench

if TYPE_CHECKING:  # for sessions that have MCP servers
    from acp_agent.extensions.mcp.config import ServerConfig


class Session:
    """An open conversation.

    Args:
        session: its id.
        cwd: the working folder.
        directories: the further folders.
        model: the model, where one is chosen already.
        services: what it is built on.
        lease: the right to write it; released when it is closed.
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
        self.session = session
        self.cwd = cwd
        self.directories = tuple(directories)
        self.services = services
        self.editor = Seat(session, abandoned=self.cancel)
        self.state = SessionState(services, model)
        self._lease = lease
        self._journal = Journal(session, services.store, take=self.take, show=self._show)
        self.turns = Turns(self)
        self.workbench = Workbench(self)
        self.prompter = Prompter(self)
        self.queue = PromptQueue()
        self._background = BackgroundTasks(f"session {session}")
        self.extensions = Extensions(self)
        self.children = Children()
        self._closing: asyncio.Task[None] | None = None

    # -- what the session is: a fold of its journal ------------------------------------------

    def take(self, events: Sequence[AnyEvent]) -> None:
        """Bring the state up to events that are in the journal."""
        self.state.take(events)
        self.children.take(events)

    @property
    def context(self) -> Context:
        """What the model is sent."""
        return self.state.context

    @property
    def settings(self) -> Settings:
        """What the user chose."""
        return self.state.settings

    @property
    def mode(self) -> Mode:
        """The permission mode as it is now."""
        return self.state.settings.mode

    @property
    def model(self) -> ModelInfo:
        """The chosen model."""
        return self.state.settings.model

    def restore(self, events: Sequence[AnyEvent]) -> None:
        """Take the whole journal in, as it was read when the session was opened."""
        self.state.restore(events)
        self._journal.was_read(events)

    async def history(self) -> Sequence[AnyEvent]:
        """Every event so far."""
        return await self._journal.history()

    async def dated_history(self) -> Sequence[tuple[int, AnyEvent]]:
        """Every event so far with its time, in milliseconds since 1970 (UTC)."""
        return await self._journal.dated_history()

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the journal, take them in, and show them (`TurnHost.emit`)."""
        if events:
            await self.write(*events)

    def write(self, *events: AnyEvent) -> asyncio.Future[None]:
        """Queue events to be written, taken in and shown; `emit` waits for that.

        Raises:
            SessionNotFoundError: the session is closed; another process may write it by now.
        """
        return self._journal.write(self._without_secrets(events))

    def _without_secrets(self, events: tuple[AnyEvent, ...]) -> tuple[AnyEvent, ...]:
        """Events whose words, which others chose, have no secret in them."""
        if not any(isinstance(of_a_child(event), OTHERS_WORDS) for event in events):
            return events
        from acp_agent.agent.cleaning import clean_event  # noqa: PLC0415 - as with `clean`

        secrets = self.secrets
        return tuple(clean_event(event, secrets) for event in events)

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that nobody waits for, until the session is closed."""
        self._background.run(work)

    async def settled(self) -> None:
        """Wait until everything that anyone emitted is taken in and shown."""
        await self._journal.flush()

    async def replay(self, action: Callable[[], Awaitable[None]]) -> None:
        """Run `action`, which shows the journal, with no live event in between."""
        await self._journal.alone(action)

    async def tell(self, *events: AnyEvent) -> None:
        """Show events that are not part of the conversation, or could not be made part of it."""
        cleaned = self._without_secrets(events)
        await self._journal.alone(lambda: self._show(cleaned))

    async def _show(self, events: Sequence[AnyEvent]) -> None:
        await self.editor.show(self.session, events)

    # -- settings --------------------------------------------------------------------------

    async def set_option(self, option: str, value: str) -> None:
        """Set an option of the session.

        Raises:
            InvalidInputError: there is no such option, or it has no such value.
            AuthRequiredError: the model that was named cannot be used.
            StoreError: the journal could not be written; the option is as it was.
        """
        await self.emit(await self.settings.change(option, value))

    async def move(self, cwd: Path, directories: Sequence[Path]) -> None:
        """The editor opened the session with other folders. A turn that runs keeps its own."""
        if (cwd, tuple(directories)) == (self.cwd, self.directories):
            return
        await self.emit(
            DirectoriesChanged(cwd=str(cwd), directories=tuple(str(path) for path in directories))
        )
        self.cwd, self.directories = cwd, tuple(directories)
        self.workbench.move()

    async def give_system_prompt(self, given: SystemPromptGiven | None) -> None:
        """The editor gave instructions with the session; None: what it gave before holds.

        Other ones than before make another system prompt, from the next turn on. The provider's
        cache of the conversation is lost then.
        """
        if given is not None and given != self.state.given_system_prompt:
            await self.emit(given)

    # -- turns -----------------------------------------------------------------------------

    @property
    def turn(self) -> Turn | None:
        """The turn that runs."""
        return self.turns.current

    async def prompt(
        self,
        content: tuple[ContentBlock, ...],
        *,
        cancelled: Callable[[], bool],
        steers: bool | None = None,
        withdrawable: bool = False,
    ) -> Said:
        """Say something to the agent.

        While a turn runs, it steers that turn: the words reach the model with its next request, and
        a command that the agent answers by itself is answered at once.

        Args:
            content: what the user says.
            cancelled: whether it was cancelled before a turn could begin.
            steers: true where it must become part of the turn that runs, false where it must not.
            withdrawable: whether words that were cancelled before they are in the conversation
                never are; else they are said, and their turn is stopped.

        Returns:
            The message, and the turn that it is part of. The turn's result is the prompt's; words
            that began it are in the conversation when `Turn.inserted` says so, others are already.

        Raises:
            InvalidInputError: the model cannot take a block of the content.
            AuthRequiredError: no model can be used.
            SessionNotFoundError: the session was closed meanwhile.
            StoreError: the journal could not be written.
            TurnRunsError, NoTurnError: it is to begin a turn, or to steer one, and cannot now;
                nothing was said.
            PromptCancelledError: it was withdrawn.
        """
        return await self.prompter.say(content, cancelled, steers, withdrawable=withdrawable)

    def cancel(self) -> None:
        """Stop the turn that runs. Silent when idle."""
        if self.turn is not None:
            self.turn.cancel()

    # -- whom it is shown to -----------------------------------------------------------------

    def attach(self, editor: Editor, left: Sequence[AnyEvent] = ()) -> None:
        """Show it to this editor from now on, and to no other; see `Seat.take`."""
        had_terminals = self.editor.terminals(self.session) is not None
        self.editor.take(editor, left)
        if had_terminals or self.editor.terminals(self.session) is not None:
            self.workbench.move()  # for the next turn, with its terminals

    # -- beside the turns --------------------------------------------------------------------

    def opened(self, mcp_servers: Sequence[ServerConfig]) -> None:
        """What is due once the editor knows the session: its MCP servers, a warm start.

        Args:
            mcp_servers: the servers that the editor named; those of an earlier opening end.
        """
        self._journal.let_go()  # nobody is going to replay it any more
        self.extensions.use_servers(mcp_servers)
        if self.extensions.definitions.there:
            self._background.run(self.extensions.definitions.look())
        self._background.run(self.workbench.warm_up())

    @property
    def commands(self) -> Sequence[Command]:
        """The slash commands as they are at the moment."""
        return self.extensions.commands

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must not be shown, sent or stored."""
        return self.extensions.secrets

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - its patterns take time to build

        return scrub(text, self.secrets)

    # -- its end -----------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        """Whether it is being closed, or is closed."""
        return self._closing is not None

    @property
    def closed(self) -> bool:
        """Whether it is closed, or failed to close; others may have it in any case."""
        return self._closing is not None and self._closing.done()

    async def close(self) -> None:
        """Stop the turn, end every process, write what is left, let others have the session.

        It goes on to its end although the caller is cancelled. Called again, it waits for that.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            self._background.cancel()
            self.cancel()
            if self.turn is not None:
                await self.turn.wait()
            await self._background.wait()
            ended = await asyncio.gather(
                self.workbench.aclose(), self.extensions.aclose(), return_exceptions=True
            )
            await self._journal.flush()
            for failure in ended:
                if failure is not None:
                    raise failure
        finally:
            self._journal.close()
            self._lease.release()
