"""What is shown where a provider, and not its model, put an end to an answer."""

from __future__ import annotations

from acp_agent.models.providers import Provider


def stopped(provider: Provider, reason: str, detail: str = "", *, spoke: bool) -> str:
    """One line that says so, behind what was said before; without it nobody would know why.

    Args:
        provider: whose API it is.
        reason: the API's own word for it.
        detail: what it says to explain itself, where it does.
        spoke: whether the model said something before.
    """
    line = f"{reason}. {' '.join(detail.split())}".strip()
    before = "\n\n" if spoke else ""
    return f"{before}[{provider.name} stopped the answer: {line}]"
