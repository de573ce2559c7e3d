"""One conversation: its state, a fold of its journal, and the turn that may be running in it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from acp_agent.agent.context import Context
from acp_agent.agent.host import Asking, Limits
from acp_agent.agent.modes import MODE_NOTES
from acp_agent.content import ContentBlock, ImageBlock, ResourceLinkBlock, TextBlock
from acp_agent.errors import (
    AcpAgentError,
    InvalidInputError,
    SessionError,
    SessionNotFoundError,
    StoreError,
)
from acp_agent.events import (
    AnyEvent,
    DirectoriesChanged,
    NoticeShown,
    SystemPromptWritten,
    TitleChanged,
    Usage,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import CallId, SessionId, new_message_id
from acp_agent.models.base import Driver, ModelInfo, ThoughtLevel
from acp_agent.permissions.access import Mode
from acp_agent.permissions.contract import Ask, Choice, Gate
from acp_agent.session.commands import FoundCommand, find_command
from acp_agent.session.editor import Editor
from acp_agent.session.interruption import interruption
from acp_agent.session.journal import Journal
from acp_agent.session.services import Services
from acp_agent.session.settings import Settings
from acp_agent.session.store import Lease, UnknownEvent
from acp_agent.session.turn import Turn

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.session.tools_setup import Equipment
    from acp_agent.tools.base import Answer, Question
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.contract import Workspace


# What a prompt needs is imported this long after the session was opened: not while the editor
# still starts up, and before most people have written their first prompt.
WARM_UP_SECONDS = 2.0


class Session:
    """An open conversation. It is the host of its turns."""

    def __init__(
        self,
        session: SessionId,
        *,
        cwd: Path,
        directories: Sequence[Path],
        model: ModelInfo | None,
        services: Services,
        editor: Editor,
        lease: Lease,
    ) -> None:
        self.session = session
        self.cwd = cwd
        self.directories = tuple(directories)
        self.services = services
        self.editor = editor
        self.context = Context()
        self.title: str | None = None
        self.limits = _limits(services)
        self.settings = Settings(services, model)
        self._cost: float | None = None
        self._lease = lease
        self._journal = Journal(session, services.store, self._show)
        self._equipment: Equipment | None = None
        self._equipping = asyncio.Lock()
        self._speaking = asyncio.Lock()
        self._turn: Turn | None = None
        self._told: dict[str, str] = {}
        self._closed = False
        self._ahead = False
        self._just_read: Sequence[AnyEvent] | None = None

    # -- what the session is: a fold of its journal ------------------------------------------

    def take(self, events: Sequence[AnyEvent]) -> None:
        """Bring the state up to events that are, or will be, in the journal."""
        self.context.feed(events)
        self.settings.take(events)
        for event in events:
            match event:
                case TitleChanged():
                    self.title = event.title
                case UsageReported():
                    self._cost = event.cost if event.cost is not None else self._cost
                case _:
                    pass

    def restore(self, events: Sequence[AnyEvent]) -> None:
        """Take the whole journal in, as it was read when the session was opened."""
        self.take(events)
        self._just_read = events

    async def history(self) -> Sequence[AnyEvent]:
        """Every event so far."""
        if self._just_read is not None:
            events, self._just_read = self._just_read, None
            return events
        stored = await self.services.store.read_all(self.session)
        return [item.event for item in stored if not isinstance(item.event, UnknownEvent)]

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the journal, then show them (`TurnHost.emit`)."""
        if not events:
            return
        self._just_read = None
        self.take(events)
        try:
            await self._journal.write(events)
        except StoreError:
            self._ahead = True
            raise

    async def settled(self) -> None:
        """Wait until everything that was emitted is in the journal and shown."""
        await self._journal.flush()

    async def _recover(self) -> None:
        """After a failed write the state is ahead of the journal: go back to what it holds."""
        if not self._ahead:
            return
        known = await self.history()
        self.context = Context()
        self.take(known)
        self._ahead = False
        cut = interruption(known)
        if cut is not None:
            await self.emit(cut)

    async def replay(self, action: Callable[[], Awaitable[None]]) -> None:
        """Run `action`, which shows the journal, with no live event in between."""
        await self._journal.alone(action)

    async def _show(self, events: Sequence[AnyEvent]) -> None:
        await self.editor.show(self.session, events)

    @property
    def cost(self) -> float | None:
        """What the session cost so far, in US dollars; None where no price is known."""
        return self._cost

    # -- settings --------------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """The permission mode as it is now."""
        return self.settings.mode

    @property
    def model(self) -> ModelInfo:
        """The chosen model."""
        return self.settings.model

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """How much the model is to reason."""
        return self.settings.thought_level

    async def set_option(self, option: str, value: str) -> None:
        """Set an option of the session.

        Raises:
            InvalidInputError: there is no such option, or it has no such value.
        """
        await self.emit(await self.settings.change(option, value))

    async def move(self, cwd: Path, directories: Sequence[Path]) -> None:
        """The editor opened the session with other folders."""
        if (cwd, tuple(directories)) == (self.cwd, self.directories):
            return
        self.cwd, self.directories = cwd, tuple(directories)
        self._equipment = None
        await self.emit(
            DirectoriesChanged(cwd=str(cwd), directories=tuple(str(path) for path in directories))
        )

    # -- turns -----------------------------------------------------------------------------

    @property
    def turn(self) -> Turn | None:
        """The turn that runs."""
        return self._turn

    async def prompt(
        self, content: tuple[ContentBlock, ...], *, cancelled: Callable[[], bool]
    ) -> Turn:
        """Say something to the agent.

        While a turn runs, it steers that turn: the words reach the model with its next request.

        Args:
            content: what the user says.
            cancelled: whether it was cancelled before a turn could begin.

        Returns:
            The turn that the words are part of; its result is the prompt's.

        Raises:
            InvalidInputError: the model cannot take a block of the content.
            AuthRequiredError: no model can be used.
            StoreError: the journal could not be written.
        """
        async with self._speaking:
            return await self._say(content, cancelled)

    async def _say(self, content: tuple[ContentBlock, ...], cancelled: Callable[[], bool]) -> Turn:
        if self._closed:
            raise SessionNotFoundError(self.session)
        model = await self.settings.choose_model()
        if all(isinstance(block, TextBlock) and not block.text.strip() for block in content):
            raise InvalidInputError("prompt: it is empty; say something", field="prompt")
        if not model.vision and any(isinstance(block, ImageBlock) for block in content):
            raise InvalidInputError(
                f"prompt: the model {model.ref} cannot see images; choose one that can",
                field="prompt",
            )
        await self._recover()
        command = find_command(content)
        message = UserMessage(
            message=new_message_id(),
            content=content,
            attached=await self._attached(content, command),
            local=command is not None and command.answer is not None,
        )
        while (turn := self._turn) is not None:
            if turn.takes_words and not message.local:
                await self.emit(msgspec.structs.replace(message, steering=True))
                return turn
            await turn.wait()
        turn = Turn(self, message, command)
        self._turn = turn
        turn.start(on_end=self._turn_ended)
        if cancelled():
            turn.cancel()
        return turn

    async def _attached(
        self, content: tuple[ContentBlock, ...], command: FoundCommand | None
    ) -> str:
        """What the model is told beside the user's words: the mode, the day, linked files."""
        if command is not None and command.answer is not None:
            return ""
        notes = [] if command is None or command.ask is None else [command.ask]
        today = f"[Today is {datetime.now().astimezone():%A, %Y-%m-%d}.]"
        for key, note in (("day", today), ("mode", MODE_NOTES[self.mode])):
            if self._told.get(key) != note:
                self._told[key] = note
                notes.append(note)
        if any(isinstance(block, ResourceLinkBlock) for block in content):
            await self.equip()
            from acp_agent.agent.attachments import linked_files  # noqa: PLC0415 - for links only

            notes.extend(map(self._scrubbed, await linked_files(content, self.workspace)))
        return "\n\n".join(notes)

    def _turn_ended(self) -> None:
        self._turn = None

    def cancel(self) -> None:
        """Stop the turn that runs. Silent when idle."""
        if self._turn is not None:
            self._turn.cancel()

    # -- what a turn needs (`TurnHost`) ------------------------------------------------------

    @property
    def equipment(self) -> Equipment:
        """The workspace and the tools, once `equip` has run."""
        if self._equipment is None:
            raise SessionError("the session's tools are not set up yet")
        return self._equipment

    @property
    def workspace(self) -> Workspace:
        """What the tools may touch."""
        return self.equipment.workspace

    @property
    def toolset(self) -> Toolset:
        """The session's tools."""
        return self.equipment.toolset

    @property
    def gate(self) -> Gate:
        """What decides about side effects."""
        return self.services.gate()

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must not be shown, sent or stored."""
        return self.services.secrets.values()

    def _scrubbed(self, text: str) -> str:
        """Text of a file as the model and the journal may have it."""
        from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - for prompts only

        return scrub(text, self.secrets)

    async def equip(self) -> None:
        """Set up the workspace and the tools; the first time this imports them, in a thread."""
        async with self._equipping:
            if self._equipment is not None:
                return
            self._equipment = await asyncio.to_thread(self._build_equipment)

    def _build_equipment(self) -> Equipment:
        from acp_agent.session.tools_setup import equip  # noqa: PLC0415 - brings pydantic

        return equip(
            cwd=self.cwd,
            directories=self.directories,
            outputs=self.services.outputs / self.session,
            buffers=self.editor.buffers(self.session),
            terminals=self.editor.terminals(self.session),
            environ=self.services.environ,
            config=self.services.config,
            secrets=self.services.secrets.values,
        )

    async def driver(self, model: ModelInfo) -> Driver:
        """The way to a model's provider."""
        return await asyncio.to_thread(self.services.models.driver, model)

    async def write_system_prompt(self) -> None:
        """Write the system prompt to the journal, unless it is there already."""
        if self.context.system_prompt is not None:
            return
        from acp_agent.agent.prompts import system_prompt  # noqa: PLC0415 - for prompts only
        from acp_agent.workspace.instructions import read_instructions  # noqa: PLC0415 - likewise

        instructions = await asyncio.to_thread(
            read_instructions, self.cwd, self.services.user_instructions
        )
        text = system_prompt(
            cwd=self.cwd,
            directories=self.directories,
            instructions=self._scrubbed(instructions),
        )
        await self.emit(SystemPromptWritten(text=text))

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add a request's cost to the session's."""
        cost = self.services.models.cost(model, usage)
        return self._cost if cost is None else (self._cost or 0.0) + cost

    async def ask_permission(self, asking: Asking, ask: Ask) -> Choice | None:
        """Let the user decide about a call."""
        return await self.editor.ask_permission(self.session, asking, ask)

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user something."""
        return await self.editor.ask_question(self.session, call, question)

    async def opened(self, mcp_servers: Sequence[str]) -> None:
        """What is due once the editor knows the session: what it should be told, a warm start."""
        if mcp_servers:
            notice = NoticeShown(
                severity="warning",
                title=f"MCP servers were not connected: {', '.join(mcp_servers)}.",
                description="This version of acp-agent does not use MCP servers yet.",
            )
            # Not journaled: it is about this opening, not part of the conversation.
            await self._show([notice])
        await asyncio.sleep(WARM_UP_SECONDS)
        with contextlib.suppress(AcpAgentError):
            await self.equip()
            await self.driver(self.model)

    # -- its end -----------------------------------------------------------------------------

    async def close(self) -> None:
        """Stop the turn, end every process, write what is left, let others have the session."""
        if self._closed:
            return
        self._closed = True
        self.cancel()
        if self._turn is not None:
            await self._turn.wait()
        if self._equipment is not None:
            await self._equipment.workspace.processes.aclose()
        await self._journal.flush()
        self._lease.release()


def _limits(services: Services) -> Limits:
    limits = services.config.limits
    return Limits(
        model_requests=limits.model_requests,
        retries=limits.retries,
        first_byte=limits.first_byte_seconds,
        stall=limits.stall_seconds,
    )
