"""What the user's "always" and "never" about a tool of an MCP server are about.

A pattern names the server and the tool for a person who reads it, and holds digests of which server
it is and of what the tool was said to do. A server that is another program or address, or a tool
that is described in another way, is not what the user decided about.
"""

from __future__ import annotations

import hashlib

from acp_agent.permissions.access import McpAccess

_DIGITS = 32  # of a digest, in hex


def defined_tool(access: McpAccess) -> str:
    """The pattern of a tool as it is defined now."""
    return f"{any_tool(access)} {_digest(access.definition)}"


def any_tool(access: McpAccess) -> str:
    """The pattern of a tool whatever its definition."""
    return f"{_shown(access.server)} {_shown(access.tool)} {_digest(access.identity, access.tool)}"


def is_of_tool(pattern: str, access: McpAccess) -> bool:
    """Whether a pattern is about this tool in any definition."""
    return pattern == any_tool(access) or pattern.startswith(f"{any_tool(access)} ")


def _shown(name: str) -> str:
    """A name without what would end it, short; it is there for whoever reads the file."""
    return "".join(c if c.isprintable() and c != " " else "_" for c in name)[:60]


def _digest(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
