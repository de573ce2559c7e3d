"""What was spent so far, and what is being spent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from acp_agent.events import Usage
from acp_agent.ids import SessionId


class Spending:
    """Tokens sent and answered, US dollars, and how many requests have no known price."""

    __slots__ = ("cost", "tokens", "unpriced")

    def __init__(self, tokens: int = 0, cost: float = 0.0, unpriced: int = 0) -> None:
        self.tokens = tokens
        self.cost = cost
        self.unpriced = unpriced

    def __bool__(self) -> bool:
        """Whether anything was sent or answered."""
        return self.tokens > 0

    def add(self, usage: Usage, price: float | None) -> None:
        """Count a request; `price` is in US dollars, None where it is not known."""
        self.tokens += usage.input + usage.output
        self.add_price(price)

    def add_price(self, price: float | None) -> None:
        """Count the price alone of a request whose tokens are counted."""
        if price is None:
            self.unpriced += 1
        else:
            self.cost += price


class Answering:
    """An answer that is under way, of which nobody knows yet how long it becomes.

    It counts as `most` tokens, each of which costs `price`, and as more once more have come of it.
    """

    def __init__(self, asked: Spending, most: int, price: float) -> None:
        self.takes = Spending(asked.tokens + most, asked.cost + most * price)
        self._most = most
        self._price = price
        self._came = 0

    def came(self, tokens: int) -> None:
        """Some of it has come."""
        self._came += tokens
        more = self._came - self._most
        if more > 0:
            self._most = self._came
            self.takes.tokens += more
            self.takes.cost += more * self._price


class UnderWay:
    """The requests that are being made, of all sessions of a process, with what they may take.

    Attributes:
        ended: how many have ended so far.
    """

    def __init__(self) -> None:
        self.ended = 0
        self._requests: dict[Answering, SessionId] = {}
        self._change = asyncio.Event()  # set, and another put in its place, when a request ends

    @contextmanager
    def made(self, session: SessionId, answering: Answering) -> Iterator[None]:
        """A request is made for as long as this lasts; it takes what its answer says."""
        self._requests[answering] = session
        try:
            yield
        finally:
            del self._requests[answering]
            self.ended += 1
            self._change.set()
            self._change = asyncio.Event()

    def most(self, session: SessionId | None = None) -> Spending:
        """What all of them may take together, or those of one session."""
        total = Spending()
        for answering, whose in self._requests.items():
            if session in {None, whose}:
                total.tokens += answering.takes.tokens
                total.cost += answering.takes.cost
        return total

    async def change(self) -> None:
        """Wait until one has ended."""
        await self._change.wait()
