"""Turns that spend, and what they may spend."""

from __future__ import annotations

from acp_agent.events import Usage
from tests.support.model_server import Answer, Call, answer


def budget(**keys: float) -> str:
    return "[budget]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def took(*steps: str | Call, sent: int = 1_000, answered: int = 100) -> Answer:
    """An answer that took so many tokens."""
    return answer(*steps, usage=Usage(input=sent, output=answered))
