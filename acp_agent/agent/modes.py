"""What the model is told of the permission mode, beside the user's words."""

from __future__ import annotations

from acp_agent.permissions.access import Mode

MODE_NOTES: dict[Mode, str] = {
    "ask": "[Mode: ask. The user is asked before files change or commands run.]",
    "accept-edits": "[Mode: accept-edits. Edits below the project need no question.]",
    "plan": (
        "[Mode: plan. Change nothing: look around with the reading tools, then answer with a plan "
        "and stop.]"
    ),
    "full": "[Mode: full. Nothing is asked; be careful.]",
}
