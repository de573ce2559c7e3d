"""Whether a call may change files of the session's folders."""

from __future__ import annotations

from pathlib import Path

from acp_agent.permissions.access import Access, CommandAccess, McpAccess, WriteAccess
from acp_agent.permissions.classify import classify
from acp_agent.permissions.paths import Place


def may_write(access: Access) -> bool:
    """True where it writes, and where nobody knows; what an MCP server says is no proof."""
    match access:
        case WriteAccess() | McpAccess():
            return True
        case CommandAccess():
            place = Place(
                cwd=access.cwd, roots=access.roots or (access.cwd,), home=str(Path.home())
            )
            return classify(access.command, place).tier != "read_only"
        case _:
            return False
