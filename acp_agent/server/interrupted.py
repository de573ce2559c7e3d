"""What an editor is told of a turn that the process did not survive."""

from __future__ import annotations

INTERRUPTED_TITLE = "The agent was stopped here before it had finished."
INTERRUPTED_TEXT = "What it had said and done is kept; say how to go on."
CUT_CALL = "Cut off when the agent was stopped."
