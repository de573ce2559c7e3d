"""Whether a call may change files of the session's folders."""

from __future__ import annotations

from acp_agent.permissions.access import Access, CommandAccess, McpAccess, WriteAccess


def may_write(access: Access) -> bool:
    """True where it writes, and where nobody knows; what an MCP server says is no proof."""
    match access:
        case WriteAccess() | McpAccess():
            return True
        case CommandAccess():
            return not access.only_reads
        case _:
            return False
