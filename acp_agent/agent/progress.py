"""How a running tool shows what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from acp_agent.agent.cleaning import clean_content
from acp_agent.agent.resources import Journal, User
from acp_agent.content import CallContent, Location
from acp_agent.events import (
    AgentText,
    BackgroundCommandChanged,
    ModelAnswered,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    ToolOutput,
    ToolShown,
)
from acp_agent.ids import CallId, new_message_id
from acp_agent.tools.base import Answer, CommandEnd, Question
from acp_agent.workspace.command_output import invalid_bytes, replace_invalid
from acp_agent.workspace.scrub import incomplete_tail, scrub


class CallProgress:
    """The `Progress` of one call. What it shows has no secret in it."""

    def __init__(
        self,
        journal: Journal,
        user: User,
        call: CallId,
        stop: asyncio.Event | None = None,
        *,
        only_reads: bool = False,
    ) -> None:
        """Starts with nothing shown.

        Args:
            journal: where it is recorded.
            user: who answers questions.
            call: the call's id.
            stop: set when the user stops the command of the call, if it runs one.
            only_reads: whether the command runs unasked since it only reads.
        """
        self._journal = journal
        self._user = user
        self._call = call
        self.only_reads = only_reads
        self.stop = stop or asyncio.Event()
        self._goes_on: BackgroundCommandChanged | None = None  # what was said when it went on
        self._held = ""  # the end of the output, while it may be the beginning of a secret

    @property
    def call(self) -> CallId:
        """The call's id."""
        return self._call

    async def output(self, text: str) -> None:
        """Show a further piece of a command's output.

        Pieces are whole lines mostly, but a long or slow line comes in several: its end is held
        back while it may be the beginning of a secret.
        """
        secrets = self._journal.secrets
        text = self._held + text
        cut = len(text) - incomplete_tail(text, secrets)
        self._held = text[cut:]
        await self._send(scrub(text[:cut], secrets))

    async def flush(self) -> None:
        """Show what is still held back, when the output has ended; not where it goes on."""
        if self._goes_on is None:
            await self._flush()

    async def moved_to_background(self, name: str, command: str) -> None:
        """Say that the call's command goes on behind it; `output` may be called until its end."""
        self._goes_on = BackgroundCommandChanged(
            call=self._call,
            name=name,
            status="running",
            command=scrub(command, self._journal.secrets),
        )
        await self._journal.emit(self._goes_on)

    async def background_ended(self, end: CommandEnd) -> None:
        """Say that the command which went on behind the call has ended."""
        assert self._goes_on is not None
        await self._flush()
        await self._journal.emit(
            msgspec.structs.replace(
                self._goes_on,
                status="lost" if end.lost else "ended",
                exit_code=end.exit_code,
                signal=end.signal,
                timed_out=end.timed_out,
                stopped=end.stopped,
                heard=end.reported,
            )
        )

    async def _flush(self) -> None:
        piece, self._held = self._held, ""
        await self._send(scrub(piece, self._journal.secrets))

    async def _send(self, piece: str) -> None:
        if piece:
            await self._journal.emit(
                ToolOutput(
                    call=self._call, text=replace_invalid(piece), invalid=invalid_bytes(piece)
                )
            )

    async def show(
        self,
        *,
        title: str | None = None,
        content: tuple[CallContent, ...] | None = None,
        locations: tuple[Location, ...] | None = None,
    ) -> None:
        """Replace what the call shows."""
        await self._journal.emit(
            ToolShown(
                call=self._call,
                title=title,
                content=clean_content(content, self._journal.secrets),
                locations=locations,
            )
        )

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Show the whole plan as it is now; without entries there is none any more."""
        changed = PlanChanged(entries=tuple(entries)) if entries else PlanRemoved()
        await self._journal.emit(changed)

    async def ask(self, question: Question) -> Answer | None:
        """Ask the user and wait. None: this editor cannot show a question."""
        return await self._user.ask_question(self._call, question)

    async def say(self, text: str) -> None:
        """Say something to the user that is not part of the model's own answer."""
        message = new_message_id()
        await self._journal.emit(
            AgentText(message=message, text=text),
            ModelAnswered(message=message, model="", complete=True, discarded=True),
        )
