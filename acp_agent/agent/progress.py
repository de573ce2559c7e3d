"""How a running tool shows what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from acp_agent.agent.cleaning import clean_content
from acp_agent.agent.host import TurnHost
from acp_agent.content import CallContent, Location
from acp_agent.events import (
    AgentText,
    ModelAnswered,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    ToolOutput,
    ToolShown,
)
from acp_agent.ids import CallId, new_message_id
from acp_agent.tools.base import Answer, Question
from acp_agent.workspace.output import invalid_bytes, readable
from acp_agent.workspace.scrub import scrub


class CallProgress:
    """The `Progress` of one call. What it shows has no secret in it."""

    def __init__(self, host: TurnHost, call: CallId, stop: asyncio.Event | None = None) -> None:
        """Args: stop: set when the user stops the command of the call, if it runs one."""
        self._host = host
        self._call = call
        self.stop = stop or asyncio.Event()
        self._held = ""  # the end of the output, while it may be the beginning of a secret

    async def output(self, text: str) -> None:
        """Show a further piece of a command's output.

        Pieces are whole lines mostly, but a long or slow line comes in several: its end is held
        back while it may be the beginning of a secret.
        """
        secrets = self._host.secrets
        # Whole secrets go first. Else the end of one that is also its beginning would be held
        # back, and the rest of it, which is no secret any more, shown.
        text = scrub(self._held + text, secrets)
        cut = len(text) - _secret_begun(text, secrets)
        self._held = text[cut:]
        await self._send(text[:cut])

    async def flush(self) -> None:
        """Show what is still held back, when the output has ended."""
        piece, self._held = self._held, ""
        await self._send(piece)

    async def _send(self, piece: str) -> None:
        if piece:
            await self._host.emit(
                ToolOutput(call=self._call, text=readable(piece), invalid=invalid_bytes(piece))
            )

    async def show(
        self,
        *,
        title: str | None = None,
        content: tuple[CallContent, ...] | None = None,
        locations: tuple[Location, ...] | None = None,
    ) -> None:
        """Replace what the call shows."""
        await self._host.emit(
            ToolShown(
                call=self._call,
                title=title,
                content=clean_content(content, self._host.secrets),
                locations=locations,
            )
        )

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Show the whole plan as it is now; without entries there is none any more."""
        changed = PlanChanged(entries=tuple(entries)) if entries else PlanRemoved()
        await self._host.emit(changed)

    async def ask(self, question: Question) -> Answer | None:
        """Ask the user and wait. None: this editor cannot show a question."""
        return await self._host.ask_question(self._call, question)

    async def say(self, text: str) -> None:
        """Say something to the user that is not part of the model's own answer."""
        message = new_message_id()
        await self._host.emit(
            AgentText(message=message, text=text),
            ModelAnswered(message=message, model="", complete=True, discarded=True),
        )


def _secret_begun(text: str, secrets: Sequence[str]) -> int:
    """How many characters at the end of `text` may be the beginning of a secret."""
    longest = 0
    for secret in secrets:
        for length in range(min(len(secret) - 1, len(text)), longest, -1):
            if text.endswith(secret[:length]):
                longest = length
                break
    return longest
