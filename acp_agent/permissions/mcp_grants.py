"""What the user's "always" and "never" about a tool of an MCP server are about.

A pattern is `server tool which [definition]`. The names are there for a person who reads the file;
what counts are the digests behind them: of which server and tool it is, whatever the server is
called, and of what the tool was said to do. A server that is another program or address, or a tool
that is described in another way, is not what the user decided about.
"""

from __future__ import annotations

import hashlib

from acp_agent.permissions.access import McpAccess

_DIGITS = 32  # of a digest, in hex


def tool_as_it_is(access: McpAccess) -> str:
    """The pattern of a tool as it is defined now."""
    return f"{tool_at_all(access)} {_digest(access.definition)}"


def tool_at_all(access: McpAccess) -> str:
    """The pattern of a tool whatever its definition."""
    return f"{_shown(access.server)} {_shown(access.tool)} {_which(access)}"


def is_about(pattern: str, access: McpAccess) -> bool:
    """Whether a pattern is about this tool, in whichever definition."""
    return pattern.split(" ")[2:3] == [_which(access)]


def covers(pattern: str, access: McpAccess) -> bool:
    """Whether a pattern is about this tool, and about its definition where it names one."""
    return pattern.split(" ")[2:] in (
        [_which(access)],
        [_which(access), _digest(access.definition)],
    )


def _which(access: McpAccess) -> str:
    return _digest(access.identity, access.tool)


def _shown(name: str) -> str:
    """A name without what would end it, short."""
    return "".join(c if c.isprintable() and c != " " else "_" for c in name)[:60]


def _digest(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
