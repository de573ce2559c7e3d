"""Complete mentions of resources that servers describe with templates: `@server:memo://{name}`.

Source: Model Context Protocol, Completion. Of RFC 6570, only variables without operators.
"""

from __future__ import annotations

import asyncio
import re

import mcp_types as types
from mcp import MCPError

from acp_agent.content import printable_line
from acp_agent.errors import ToolError
from acp_agent.extensions.mcp.errors import SessionLostError
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.session.mcp.servers import McpServers

_MENTION = re.compile(r"@([A-Za-z0-9_-]+):(.*)")
_VARIABLE = re.compile(r"\{(\w+)\}")
_MAX_TEMPLATES = 20  # of a server
_MAX_VALUES = 50  # of a variable
_MAX_NAME = 200  # characters
_SECONDS = 1.5  # while the user types


async def complete_mention(servers: McpServers, typed: str) -> list[tuple[str, str, bool]]:
    """Return mentions that begin with `typed`, with the template's name.

    The last value says whether the mention is incomplete: a variable follows it.
    """
    match = _MENTION.fullmatch(typed)
    if match is None:
        return []
    label, address = match.groups()
    server = next((server for server in servers.servers if server.label == label), None)
    if server is None or server.offer is None:
        return []
    templates = server.offer.templates[:_MAX_TEMPLATES]
    completed = await asyncio.gather(*(_complete(server, each, address) for each in templates))
    mentions: list[tuple[str, str, bool]] = []
    for template, addresses in zip(templates, completed, strict=True):
        name = printable_line(servers.clean(template.title or template.name), _MAX_NAME)
        for uri, incomplete in addresses:
            if uri.isprintable() and not re.search(r'[\s"]', uri) and servers.clean(uri) == uri:
                mentions.append((f"@{label}:{uri}", name, incomplete))
    return mentions


async def _complete(
    server: McpServer, template: types.ResourceTemplate, address: str
) -> list[tuple[str, bool]]:
    """Return addresses of a template that begin with `address`, up to its next variable."""
    literal, *pieces = _VARIABLE.split(template.uri_template)
    resolved: dict[str, str] = {}
    prefix = ""
    while not re.search("[{}]", literal):
        typed = address[len(prefix) :]
        if not typed.startswith(literal):
            return [(prefix + literal, bool(pieces))] if literal.startswith(typed) else []
        prefix += literal
        if not pieces:
            return [(prefix, False)] if prefix == address else []
        variable, literal, *pieces = pieces
        typed = address[len(prefix) :]
        value, separator, _ = typed.partition(literal) if literal else (typed, "", "")
        if not separator:
            values = await _values(server, template, variable, typed, resolved)
            values = values or _before(literal, typed)
            return [(f"{prefix}{value}{literal}", bool(pieces)) for value in values]
        resolved[variable] = value
        prefix += value
    return []


def _before(literal: str, typed: str) -> list[str]:
    """Return the value in `typed` if a beginning of `literal` follows it."""
    lengths = range(len(literal) - 1, 0, -1)
    return [typed[:-length] for length in lengths if typed.endswith(literal[:length])][:1]


async def _values(
    server: McpServer,
    template: types.ResourceTemplate,
    variable: str,
    typed: str,
    resolved: dict[str, str],
) -> list[str]:
    try:
        async with asyncio.timeout(_SECONDS):
            values = await server.client.complete(template, variable, typed, resolved)
    except (MCPError, SessionLostError, ToolError, TimeoutError, ValueError, RuntimeError):
        return []
    return values[:_MAX_VALUES]
