"""Show the progress of a running tool: its output, content, plan and questions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from acp_agent.agent.resources import Journal, User
from acp_agent.agent.scrub_events import scrub_content
from acp_agent.content import CallContent, Location
from acp_agent.events import (
    BackgroundCommandChanged,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    ToolOutput,
    ToolShown,
    agent_message,
)
from acp_agent.ids import CallId
from acp_agent.tools.base import Answer, CommandEnd, Progress, Question
from acp_agent.workspace.command_output import invalid_bytes, replace_invalid
from acp_agent.workspace.scrub import incomplete_tail, scrub


class CallProgress(Progress):
    """Shows one call, without secrets."""

    call: CallId

    def __init__(
        self,
        journal: Journal,
        user: User,
        call: CallId,
        stop: asyncio.Event | None = None,
        *,
        only_reads: bool = False,
    ) -> None:
        super().__init__(call, stop, only_reads=only_reads)
        self._journal = journal
        self._user = user
        self._background: BackgroundCommandChanged | None = None  # set when the command moves
        self._held_back = ""  # the end of the output, if it may be the beginning of a secret

    async def output(self, text: str) -> None:
        """Show another piece of a command's output.

        Most pieces are whole lines, but a long or slow line arrives in several pieces. The end of a
        piece is held back if it may be the beginning of a secret.
        """
        secrets = self._journal.secrets
        text = self._held_back + text
        cut = len(text) - incomplete_tail(text, secrets)
        self._held_back = text[cut:]
        await self._send(scrub(text[:cut], secrets))

    async def flush(self) -> None:
        """Show the output that is held back; no-op for a background command."""
        if self._background is None:
            await self._flush()

    async def moved_to_background(self, name: str, command: str) -> None:
        """Report that the command continues in the background; `output` may still be called."""
        self._background = BackgroundCommandChanged(
            call=self.call,
            name=name,
            status="running",
            command=scrub(command, self._journal.secrets),
        )
        await self._journal.emit(self._background)

    async def background_ended(self, end: CommandEnd) -> None:
        """Report that the background command has ended."""
        assert self._background is not None
        await self._flush()
        await self._journal.emit(
            msgspec.structs.replace(
                self._background,
                status="lost" if end.lost else "ended",
                exit_code=end.exit_code,
                signal=end.signal,
                timed_out=end.timed_out,
                stopped=end.stopped,
                heard=end.reported,
            )
        )

    async def _flush(self) -> None:
        piece, self._held_back = self._held_back, ""
        await self._send(scrub(piece, self._journal.secrets))

    async def _send(self, piece: str) -> None:
        if piece:
            await self._journal.emit(
                ToolOutput(
                    call=self.call, text=replace_invalid(piece), invalid=invalid_bytes(piece)
                )
            )

    async def show(
        self,
        *,
        title: str | None = None,
        content: tuple[CallContent, ...] | None = None,
        locations: tuple[Location, ...] | None = None,
    ) -> None:
        """Replace the title, content or locations that the call shows."""
        await self._journal.emit(
            ToolShown(
                call=self.call,
                title=title,
                content=scrub_content(content, self._journal.secrets),
                locations=locations,
            )
        )

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Replace the plan; an empty list removes it."""
        changed = PlanChanged(entries=tuple(entries)) if entries else PlanRemoved()
        await self._journal.emit(changed)

    async def ask(self, question: Question) -> Answer | None:
        """Ask the user and wait. Return None if the editor cannot show the question."""
        return await self._user.ask_question(self.call, question)

    async def say(self, text: str) -> None:
        """Send the user a message that is not part of the model's answer."""
        await self._journal.emit(*agent_message(text))
