"""How a running tool shows what it does."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.agent.host import TurnHost
from acp_agent.content import CallContent, Location
from acp_agent.events import (
    AgentText,
    ModelAnswered,
    PlanChanged,
    PlanEntry,
    ToolOutput,
    ToolShown,
)
from acp_agent.ids import CallId, new_message_id
from acp_agent.tools.base import Answer, Question
from acp_agent.workspace.scrub import scrub


class CallProgress:
    """The `Progress` of one call. What it shows has no secret in it."""

    def __init__(self, host: TurnHost, call: CallId) -> None:
        self._host = host
        self._call = call
        self._held = ""  # the end of the output, while it may be the beginning of a secret

    async def output(self, text: str) -> None:
        """Show a further piece of a command's output."""
        text = self._held + text
        cut = len(text) - _secret_begun(text, self._host.secrets)
        self._held = text[cut:]
        if cut:
            await self._send(text[:cut])

    async def flush(self) -> None:
        """Show what is still held back."""
        if self._held:
            piece, self._held = self._held, ""
            await self._send(piece)

    async def _send(self, piece: str) -> None:
        clean = scrub(piece, self._host.secrets)
        await self._host.emit(ToolOutput(call=self._call, text=clean))

    async def show(
        self,
        *,
        title: str | None = None,
        content: tuple[CallContent, ...] | None = None,
        locations: tuple[Location, ...] | None = None,
    ) -> None:
        """Replace what the call shows."""
        await self._host.emit(
            ToolShown(call=self._call, title=title, content=content, locations=locations)
        )

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Show the whole plan as it is now."""
        await self._host.emit(PlanChanged(entries=tuple(entries)))

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
