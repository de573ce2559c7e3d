"""Resources of MCP servers that a prompt names as `@server:uri`, as text for the model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from html import escape

from acp_agent.agent.attachments import FILE_LIMIT, TOTAL_LIMIT
from acp_agent.content import ContentBlock, TextBlock, printable_line
from acp_agent.errors import ToolError
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.session.mcp.servers import McpServers
from acp_agent.tools.mcp_resource import has_resources
from acp_agent.tools.mcp_tool import call_server, resource_outcome

_MENTION = re.compile(r'(?:(?<=\s)|^)@([A-Za-z0-9_-]+):(?:"([^"\n]+)"|([^\s"]+))')
_AFTER = ".,;:!?)]}'"  # may follow an address
_LONGEST = 4_000  # characters of an address
_NAME = 200  # characters of a resource's name
_MOST = 10  # resources in one prompt
_SECONDS = 15.0  # for each resource, because the prompt waits for it


async def attached_resources(content: Sequence[ContentBlock], servers: McpServers) -> list[str]:
    """Return the text of each resource that the user names, or the reason why it failed.

    Naming a resource gives permission to read it. A name that matches no server with resources is
    plain text.

    Args:
        content: the prompt.
        servers: the session's servers.
    """
    named = list(dict.fromkeys(_mentions(content)))
    if not named:
        return []
    await servers.ready()
    known = {server.label: server for server in servers.servers if has_resources(server)}
    found = [(known[label], uri) for label, uri in named if label in known][:_MOST]
    read = await asyncio.gather(*(_read(server, _whole(server, uri)) for server, uri in found))
    remaining = TOTAL_LIMIT
    texts: list[str] = []
    for (server, uri), (text, failed) in zip(found, read, strict=True):
        clean = servers.clean(text)
        if failed:
            texts.append(f"[The resource {uri} of {server.label} was not attached: {clean}]")
            continue
        shown = clean[: min(FILE_LIMIT, remaining)]
        remaining -= len(shown)
        more = len(clean) - len(shown)
        rest = f"\n[{more} more characters; read_mcp_resource has the rest]" if more else ""
        place = f'server="{server.label}" uri="{escape(servers.clean(_whole(server, uri)))}"'
        texts.append(f"<resource {place}>\n{shown}{rest}\n</resource>")
    return texts


def mentions_of(servers: McpServers) -> list[tuple[str, str]]:
    """Return the possible mentions with the resources' names; omits those with secrets."""
    found: list[tuple[str, str]] = []
    for server in servers.servers:
        for one in () if server.offer is None else server.offer.resources:
            uri = str(one.uri)
            if servers.clean(uri) != uri or not uri.isprintable() or len(uri) > _LONGEST:
                continue
            mention = f"@{server.label}:{uri}"
            if _MENTION.fullmatch(mention) is None:
                mention = f'@{server.label}:"{uri}"'
            if _MENTION.fullmatch(mention) is not None:
                found.append((mention, printable_line(servers.clean(one.title or one.name), _NAME)))
    return found


def _mentions(content: Sequence[ContentBlock]) -> Iterator[tuple[str, str]]:
    for block in content:
        if isinstance(block, TextBlock):
            for label, quoted, plain in _MENTION.findall(block.text):
                if len(quoted or plain) <= _LONGEST:
                    yield label, quoted or plain


def _whole(server: McpServer, uri: str) -> str:
    """Return the address without trailing punctuation, unless a listed address includes it."""
    listed = () if server.offer is None else server.offer.resources
    return uri if any(one.uri == uri for one in listed) else uri.rstrip(_AFTER)


async def _read(server: McpServer, uri: str) -> tuple[str, bool]:
    """Return the resource's text or an error message, and whether reading failed."""
    try:
        result = await call_server(
            server, lambda: server.client.read_resource(uri), seconds=_SECONDS
        )
    except ToolError as error:
        return str(error), True
    return resource_outcome(result.contents).text, False
