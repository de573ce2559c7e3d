"""What was spent so far."""

from __future__ import annotations

from acp_agent.events import Usage


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
