"""The progress of work that belongs to no tool call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from acp_agent.content import CallContent, Location
from acp_agent.events import PlanEntry
from acp_agent.tools.base import Answer, CommandEnd, Question


class NoProgress:
    """Shows nothing, asks nobody."""

    call = ""
    only_reads = True

    def __init__(self) -> None:
        self.stop = asyncio.Event()

    async def output(self, text: str) -> None:
        """Do nothing."""

    async def moved_to_background(self, name: str, command: str) -> None:
        """Do nothing."""

    async def background_ended(self, end: CommandEnd) -> None:
        """Do nothing."""

    async def show(
        self,
        *,
        title: str | None = None,
        content: tuple[CallContent, ...] | None = None,
        locations: tuple[Location, ...] | None = None,
    ) -> None:
        """Do nothing."""

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Do nothing."""

    async def ask(self, question: Question) -> Answer | None:
        """Return None: nobody is asked."""
        del question
        return None

    async def say(self, text: str) -> None:
        """Do nothing."""
