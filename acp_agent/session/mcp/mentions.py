"""Resources of MCP servers that a prompt mentions as `@server:uri`: attach, list, complete them.

Servers also describe resources with templates: `@server:memo://{name}`. Of RFC 6570, only variables
without operators are completed (Model Context Protocol, Completion).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from html import escape

import mcp_types as types
from mcp import MCPError

from acp_agent.agent.attachments import FILE_LIMIT, TOTAL_LIMIT
from acp_agent.content import ContentBlock, ImageBlock, TextBlock, printable_line
from acp_agent.errors import ToolError
from acp_agent.extensions.mcp.errors import SessionLostError
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.session.mcp.servers import McpServers
from acp_agent.tools.base import Outcome
from acp_agent.tools.mcp.results import resource_outcome
from acp_agent.tools.mcp_resource import has_resources
from acp_agent.tools.mcp_tool import call_server

_MENTION = re.compile(r'(?:(?<=\s)|^)@([A-Za-z0-9_-]+):(?:"([^"\n]+)"|([^\s"]+))')
_PUNCTUATION = ".,;:!?)]}'"  # may follow an address
_MAX_ADDRESS = 4_000  # characters of an address
_MAX_NAME = 200  # characters of a resource's name
_MAX_RESOURCES = 10  # resources in one prompt
_MAX_IMAGES = 8  # pictures in one prompt
_SECONDS = 15.0  # for each resource, because the prompt waits for it

_TYPED = re.compile(r"@([A-Za-z0-9_-]+):(.*)")
_VARIABLE = re.compile(r"\{(\w+)\}")
_MAX_TEMPLATES = 20  # of a server
_MAX_VALUES = 50  # of a variable
_COMPLETION_SECONDS = 1.5  # while the user types


async def attached_resources(
    content: Sequence[ContentBlock], servers: McpServers
) -> tuple[list[str], list[ImageBlock]]:
    """Return the resources that the user names: their texts, or why one failed, and pictures.

    Naming a resource gives permission to read it. A name that matches no server with resources is
    plain text. Changes of a resource are followed from then on.
    """
    mentions = list(dict.fromkeys(_mentions(content)))
    if not mentions:
        return [], []
    await servers.ready()
    servers_by_label = {server.label: server for server in servers.servers if has_resources(server)}
    resources = [
        (servers_by_label[label], uri) for label, uri in mentions if label in servers_by_label
    ][:_MAX_RESOURCES]
    read = await asyncio.gather(
        *(_read(server, _clean_uri(server, uri)) for server, uri in resources)
    )
    remaining = TOTAL_LIMIT
    texts: list[str] = []
    images: list[ImageBlock] = []
    for (server, uri), outcome in zip(resources, read, strict=True):
        clean = servers.clean(outcome.text)
        if outcome.failed:
            texts.append(f"[The resource {uri} of {server.label} was not attached: {clean}]")
            continue
        server.follow(_clean_uri(server, uri))
        images += outcome.images
        excerpt = clean[: min(FILE_LIMIT, remaining)]
        remaining -= len(excerpt)
        omitted = len(clean) - len(excerpt)
        note = f"\n[{omitted} more characters; read_mcp_resource has the rest]" if omitted else ""
        attributes = (
            f'server="{server.label}" uri="{escape(servers.clean(_clean_uri(server, uri)))}"'
        )
        texts.append(f"<resource {attributes}>\n{excerpt}{note}\n</resource>")
    return texts, images[:_MAX_IMAGES]


def list_mentions(servers: McpServers) -> list[tuple[str, str]]:
    """Return the possible mentions with the resources' names; omits those with secrets."""
    mentions: list[tuple[str, str]] = []
    for server in servers.servers:
        for resource in () if server.offer is None else server.offer.resources:
            uri = str(resource.uri)
            if servers.clean(uri) != uri or not uri.isprintable() or len(uri) > _MAX_ADDRESS:
                continue
            mention = f"@{server.label}:{uri}"
            if _MENTION.fullmatch(mention) is None:
                mention = f'@{server.label}:"{uri}"'
            if _MENTION.fullmatch(mention) is not None:
                mentions.append(
                    (
                        mention,
                        printable_line(servers.clean(resource.title or resource.name), _MAX_NAME),
                    )
                )
    return mentions


def _mentions(content: Sequence[ContentBlock]) -> Iterator[tuple[str, str]]:
    for block in content:
        if isinstance(block, TextBlock):
            for label, quoted, plain in _MENTION.findall(block.text):
                if len(quoted or plain) <= _MAX_ADDRESS:
                    yield label, quoted or plain


def _clean_uri(server: McpServer, uri: str) -> str:
    """Return the address without trailing punctuation, unless a listed address includes it."""
    resources = () if server.offer is None else server.offer.resources
    return uri if any(resource.uri == uri for resource in resources) else uri.rstrip(_PUNCTUATION)


async def _read(server: McpServer, uri: str) -> Outcome:
    """Return what the resource contains, or an error message."""
    try:
        result = await call_server(
            server, lambda: server.client.read_resource(uri), seconds=_SECONDS
        )
    except ToolError as error:
        return Outcome(text=str(error), failed=True)
    return resource_outcome(result.contents)


# -- completion ----------------------------------------------------------------------------------


async def complete_mention(servers: McpServers, typed: str) -> list[tuple[str, str, bool]]:
    """Return mentions that begin with `typed`, with the template's name.

    The last value says whether the mention is incomplete: a variable follows it.
    """
    match = _TYPED.fullmatch(typed)
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
        async with asyncio.timeout(_COMPLETION_SECONDS):
            values = await server.client.complete(template, variable, typed, resolved)
    except (MCPError, SessionLostError, ToolError, TimeoutError, ValueError, RuntimeError):
        return []
    return values[:_MAX_VALUES]
