"""The order of the calls of one answer: which has to wait for which."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from acp_agent.agent.answer import ProposedCall
from acp_agent.tools.base import EVERYTHING, Touches, conflict


class Place:
    """A call's place in the order.

    Attributes:
        call: the call.
        before: the places before it.
        touches: what it reads and writes, once `declared`.
        declared: set when that is known.
        judged: set when nobody has to be asked about it any more.
        ended: set when it has ended, or never will begin.
    """

    def __init__(self, call: ProposedCall, before: Sequence[Place]) -> None:
        self.call = call
        self.before = tuple(before)
        self.touches = EVERYTHING
        self.declared = asyncio.Event()
        self.judged = asyncio.Event()
        self.ended = asyncio.Event()

    def declare(self, touches: Touches) -> None:
        """Say what the call touches."""
        self.touches = touches
        self.declared.set()

    def leave(self) -> None:
        """Nobody has to wait for the call any more."""
        self.declared.set()
        self.judged.set()
        self.ended.set()

    async def behind_what_may_do_all(self) -> None:
        """Wait until it is known what the calls before do, and until those ended that may do all.

        Where a path leads may change by these.
        """
        for earlier in self.before:
            await earlier.declared.wait()
            if earlier.touches.exclusive:
                await earlier.ended.wait()

    async def unhindered(self) -> None:
        """Wait for the calls before this one that touch what it touches."""
        for earlier in self.before:
            if conflict(earlier.touches, self.touches):
                await earlier.ended.wait()

    async def next_to_ask(self) -> None:
        """Wait until nobody has to be asked about a call before this one any more."""
        for earlier in self.before:
            await earlier.judged.wait()
