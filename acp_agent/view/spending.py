"""What requests to models took."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.events import Usage


class Request(Struct, kw_only=True):
    """A request to a model; `asked` is None for those beside the conversation."""

    model: str
    asked: int | None = None
    answered: int | None = None
    usage: Usage = Usage()
    cost: float | None = None
    complete: bool = False
    discarded: bool = False


class Spend(Struct, kw_only=True):
    """What requests took; those that are `unpriced` are not in the `cost` (US dollars)."""

    usage: Usage = Usage()
    cost: float = 0.0
    requests: int = 0
    unpriced: int = 0

    def add(self, other: Spend) -> None:
        """Count the other in."""
        self.usage += other.usage
        self.cost += other.cost
        self.requests += other.requests
        self.unpriced += other.unpriced
