"""The resources of MCP servers: two tools that are offered while a server has resources."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.extensions.mcp.config import identity
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.permissions.access import McpAccess
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, text_argument
from acp_agent.tools.mcp.results import resource_outcome, save_below
from acp_agent.tools.mcp_tool import call_server
from acp_agent.tools.quoting import code_block, first_line, shorten
from acp_agent.workspace.workspace import Workspace

_MAX_RESOURCES = 200  # resources of one server
_MAX_TEXT = 300  # characters of a name, an address or a description
_MAX_SHOWN_LENGTH = 2_000  # characters
READ_RESOURCE = "resources/read"  # what the gate is asked about: reading is one permission a server

Servers = Callable[[], Sequence[McpServer]]


class ListResourcesParams(ToolParams):
    """The list_mcp_resources tool's parameters."""

    server: Annotated[str | None, Field(description="Only this server's.")] = None


class ListMcpResourcesTool(Tool[ListResourcesParams]):
    """Lists the resources that the servers have declared, without a request."""

    name: ClassVar[str] = "list_mcp_resources"
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[ListResourcesParams]] = ListResourcesParams

    def __init__(self, workspace: Workspace, servers: Servers) -> None:
        """Args: servers: returns the connected servers."""
        super().__init__(workspace)
        self._servers = servers

    def description(self) -> str:
        """Return the description for the model."""
        return "Lists the resources of the connected MCP servers, and templates of their addresses."

    def title(self, arguments: JsonObject) -> str:
        """Return whose resources are listed."""
        server = text_argument(arguments, "server")
        return f"List resources of {server}" if server else "List resources of MCP servers"

    async def prepare(self, params: ListResourcesParams) -> Prepared:
        """Return the call; there is nothing to check."""
        servers = self._servers()
        if params.server is not None:
            servers = [find_server(params.server, servers)]

        async def run(_progress: Progress) -> Outcome:
            text = "\n\n".join(
                _list_resources(server) for server in servers if has_resources(server)
            )
            content = text_part(code_block(shorten(text or "none", _MAX_SHOWN_LENGTH), ""))
            return Outcome(text=text or "[there are none]", content=(content,))

        return Prepared(title=self.title(params.model_dump()), run=run)


class ReadResourceParams(ToolParams):
    """The read_mcp_resource tool's parameters."""

    server: Annotated[str, Field(min_length=1)]
    uri: Annotated[str, Field(min_length=1, max_length=4_000)]


class ReadMcpResourceTool(Tool[ReadResourceParams]):
    """Reads a resource of a server."""

    name: ClassVar[str] = "read_mcp_resource"
    kind: ClassVar[ToolKind] = "read"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[ReadResourceParams]] = ReadResourceParams

    def __init__(self, workspace: Workspace, servers: Servers, *, seconds: float) -> None:
        """Make the tool.

        Args:
            servers: returns the connected servers.
            seconds: how long reading may take.
        """
        super().__init__(workspace)
        self._servers = servers
        self._seconds = seconds

    def description(self) -> str:
        """Return the description for the model."""
        return "Reads a resource of an MCP server by its address (list_mcp_resources has them)."

    def title(self, arguments: JsonObject) -> str:
        """Return the server and the address."""
        server, uri = text_argument(arguments, "server"), text_argument(arguments, "uri")
        return f"{server}: read {uri}" if server and uri else "Read a resource"

    async def prepare(self, params: ReadResourceParams) -> Prepared:
        """Prepare the display of the whole URI, which is what is sent."""
        server = find_server(params.server, self._servers())
        return Prepared(
            title=self.title(params.model_dump()),
            run=functools.partial(self._run, server, params.uri),
            access=McpAccess(
                server=server.config.name,
                tool=READ_RESOURCE,
                identity=identity(server.config),
                definition=READ_RESOURCE,
                read_only=True,
            ),
            content=(text_part(code_block(first_line(params.uri, 4_000), "")),),
        )

    async def _run(self, server: McpServer, uri: str, _progress: Progress) -> Outcome:
        result = await call_server(
            server, lambda: server.client.read_resource(uri), seconds=self._seconds
        )
        save = save_below(self.workspace.outputs)
        return await asyncio.to_thread(resource_outcome, result.contents, save)


def has_resources(server: McpServer) -> bool:
    """Return whether a server has resources or resource templates."""
    offer = server.offer
    return offer is not None and bool(offer.resources or offer.templates)


def find_server(name: str, servers: Sequence[McpServer]) -> McpServer:
    """Return the server with this label or unique name. Raises ToolError if there is none."""
    for server in servers:
        if server.label == name:
            return server
    matches = [server for server in servers if server.config.name == name]
    if len(matches) == 1:
        return matches[0]
    labels = ", ".join(server.label for server in servers) or "none"
    raise ToolError(
        f"there is no connected MCP server {name!r}", advice=f"the servers are {labels}"
    )


def _list_resources(server: McpServer) -> str:
    offer = server.offer
    assert offer is not None
    lines = [f"# {server.label}"]
    for resource in offer.resources[:_MAX_RESOURCES]:
        description = resource.title or resource.description or ""
        lines.append(_line(resource.uri, resource.name, description))
    for template in offer.templates[:_MAX_RESOURCES]:
        description = template.title or template.description or ""
        lines.append("template " + _line(template.uri_template, template.name, description))
    omitted = max(0, len(offer.resources) - _MAX_RESOURCES) + max(
        0, len(offer.templates) - _MAX_RESOURCES
    )
    if omitted:
        lines.append(f"[{omitted} more are left out]")
    return "\n".join(lines)


def _line(uri: str, name: str, description: str) -> str:
    text = f"{first_line(uri, 1_000)} ({first_line(name, _MAX_TEXT)})"
    return f"{text}: {first_line(description, _MAX_TEXT)}" if description else text
