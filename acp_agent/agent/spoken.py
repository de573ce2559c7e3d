"""What the agent says by itself."""

from __future__ import annotations

from acp_agent.events import AgentText, AnyEvent, ModelAnswered
from acp_agent.ids import new_message_id


def spoken(text: str) -> tuple[AnyEvent, ...]:
    """What the agent says by itself, without the model, and without the model ever seeing it."""
    message = new_message_id()
    return (
        AgentText(message=message, text=text),
        ModelAnswered(message=message, model="", discarded=True),
    )


def aside(text: str) -> tuple[AnyEvent, ...]:
    """A remark of the agent's: a paragraph of its own, also where a client joins what is said."""
    return spoken(f"\n\n*{text}*\n\n")
