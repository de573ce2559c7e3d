"""What a call is called before anyone has looked at it."""

from __future__ import annotations

import msgspec

from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.toolset import Toolset


def label(toolset: Toolset, name: str, arguments: str) -> tuple[str, ToolKind]:
    """A title and a kind for a call whose tool may not exist and whose arguments may be wrong."""
    try:
        tool = toolset.get(name)
    except ToolError:
        return name or "Unnamed tool", "other"
    try:
        decoded: object = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        decoded = None
    return tool.title(decoded if isinstance(decoded, dict) else {}), tool.kind
