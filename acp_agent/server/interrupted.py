"""What an editor is told of a turn that the process did not survive."""

from __future__ import annotations

from acp_agent.config.message_catalog import Words

INTERRUPTED_TITLE = "The agent was stopped here before it had finished."
INTERRUPTED_TEXT = "What it had said and done is kept; say how to go on."
CUT_CALL = "Cut off when the agent was stopped."


def moved_note(words: Words) -> str:
    """Return why a prompt ends at a client whose session another client opened."""
    return words("Another client opened this session; its work goes on there.")


def interrupted_note(words: Words) -> tuple[str, str]:
    """A title, and what it means, in the user's language."""
    return words(INTERRUPTED_TITLE), words(INTERRUPTED_TEXT)
