"""What was spent so far."""

from __future__ import annotations

from acp_agent.events import ModelAnswered


class Spending:
    """Tokens sent and answered, US dollars, and how many requests have no known price."""

    __slots__ = ("cost", "tokens", "unpriced")

    def __init__(self, tokens: int = 0, cost: float = 0.0, unpriced: int = 0) -> None:
        self.tokens = tokens
        self.cost = cost
        self.unpriced = unpriced

    def add(self, answer: ModelAnswered) -> None:
        """Count an answer."""
        self.tokens += answer.usage.input + answer.usage.output
        if answer.cost is None:
            self.unpriced += 1
        else:
            self.cost += answer.cost
