"""Tools and prompts of all MCP servers of a session, with unique names and limits."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import mcp_types as types
import msgspec

from acp_agent.content import printable_line
from acp_agent.errors import ToolError
from acp_agent.events import ServerTool
from acp_agent.extensions.mcp.names import command_names, tool_names
from acp_agent.extensions.mcp.schemas import UnusableSchemaError
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.session.commands.command import Command
from acp_agent.tools.base import AnyTool, SchemaTool
from acp_agent.tools.calls.parameter_schemas import parameters_schema
from acp_agent.tools.mcp.results import prompt_text
from acp_agent.tools.mcp_resource import ListMcpResourcesTool, ReadMcpResourceTool, has_resources
from acp_agent.tools.mcp_tool import McpTool, call_server, mcp_tool
from acp_agent.tools.quoting import first_line
from acp_agent.tools.toolset import Toolset
from acp_agent.workspace.workspace import Workspace

# Tools of all servers; if there are more, the model gets names and a search tool.
MAX_DIRECT_TOOLS = 30
_MAX_TOOLS = 1_000  # of all servers
_MAX_BYTES = 4_000_000  # of all descriptions and schemas
_MAX_PROMPTS = 200
_MAX_REASONS = 3  # in a notice
MAX_PROMPT = 50_000  # characters of a prompt sent to the model
_MAX_DESCRIPTION = 300  # characters
_MAX_HINT = 200


class McpCatalog:
    """The tools and prompts at the time of construction; makes no requests.

    `notices` has notices about tools that are left out, and `offered` describes the tools of the
    last toolset. `sent_direct` are the tools that the model
    was sent with their schemas, and `sent_search` whether it was sent those that search and call.

    Args:
        servers: all servers of the session; those that are not connected have no tools.
        previous: the catalog that this one replaces. What the model was sent of it stays: tools
            with their schemas, or the tools that search and call.
    """

    def __init__(
        self,
        servers: tuple[McpServer, ...],
        *,
        call_seconds: float,
        previous: McpCatalog | None = None,
    ) -> None:
        self._servers = tuple(server for server in servers if server.offer is not None)
        self._seconds = call_seconds
        self.sent_direct: frozenset[str] = frozenset() if previous is None else previous.sent_direct
        self.sent_search: bool = previous is not None and previous.sent_search
        self.notices: list[tuple[str, str]] = []
        self._tools = self._make_tools()
        self.prompts = self._make_prompts()
        self._cached: tuple[Toolset, Toolset] | None = None
        self.offered: tuple[ServerTool, ...] = ()

    def toolset(self, core: Toolset, workspace: Workspace) -> Toolset:
        """Return the session's own tools and these; the same object for the same `core`."""
        if self._cached is None or self._cached[0] is not core:
            tools = [tool(workspace) for tool in self._tools]
            deferred = [tool for tool in tools if tool.deferred]
            self.sent_search = self.sent_search or bool(deferred)
            self.sent_direct |= {tool.name for tool in tools if not tool.deferred}
            search = _search_tools(workspace, deferred) if self.sent_search else []
            added = [*tools, *search, *self._resource_tools(workspace)]
            self._cached = (core, core.with_tools(added) if added else core)
            self.offered = tuple(_describe(tool) for tool in added)
        return self._cached[1]

    def _resource_tools(
        self, workspace: Workspace
    ) -> list[ListMcpResourcesTool | ReadMcpResourceTool]:
        if not any(has_resources(server) for server in self._servers):
            return []
        return [
            ListMcpResourcesTool(workspace, self._with_resources),
            ReadMcpResourceTool(workspace, self._with_resources, seconds=self._seconds),
        ]

    def _with_resources(self) -> list[McpServer]:
        return [server for server in self._servers if has_resources(server)]

    def _limit(self, server: McpServer) -> float:
        return server.config.options.call_timeout or self._seconds

    def _make_tools(self) -> list[type[McpTool]]:
        offered = []
        problems: dict[str, list[str]] = {}
        for server in self._servers:
            assert server.offer is not None
            # If two tools have the same name, use the first: the server cannot distinguish them.
            offers = server.config.options.offers
            by_name = {
                remote.name: remote
                for remote in reversed(server.offer.tools)
                if offers(remote.name)
            }
            offered += [(server, by_name[name]) for name in sorted(by_name)]
            self.notices += [
                (f"The MCP server {server.config.name!r} has more {name} than are taken in.", "")
                for name in server.offer.cut
            ]
            self.notices += [
                (f"The MCP server {server.config.name!r} cannot list its {failure}", "")
                for failure in server.offer.failures
            ]
            for unusable in server.offer.unusable:
                why = f"{printable_line(unusable)[:60]}: it is not described as a tool is"
                problems.setdefault(server.config.name, []).append(why)
        names = tool_names([(server.label, remote.name) for server, remote in offered])
        classes: list[type[McpTool]] = []
        size = 0
        is_deferring = self.sent_search or len(offered) > MAX_DIRECT_TOOLS
        for (server, remote), name in zip(offered, names, strict=True):
            why = ""
            try:
                if len(classes) < _MAX_TOOLS:
                    tool = mcp_tool(
                        remote,
                        name,
                        server=server,
                        seconds=self._limit(server),
                        deferred=is_deferring and name not in self.sent_direct,
                    )
                    size += len(tool.server_description()) + len(
                        msgspec.json.encode(tool.schema.for_model)
                    )
                    if size <= _MAX_BYTES:
                        classes.append(tool)
                        continue
                why = "too many tools, or too much text in them"
            except UnusableSchemaError as error:
                why = f"{printable_line(remote.name)[:60]}: {error}"
            problems.setdefault(server.config.name, []).append(why)
        for server_name, reasons in problems.items():
            title = (
                f"{len(reasons)} tools of the MCP server {server_name!r} are left out."
                if len(reasons) > 1
                else f"A tool of the MCP server {server_name!r} is left out."
            )
            first_reasons = list(dict.fromkeys(reasons))[:_MAX_REASONS]
            self.notices.append((title, "; ".join(first_reasons)))
        return classes

    def _make_prompts(self) -> list[ServerPrompt]:
        offered = []
        for server in self._servers:
            assert server.offer is not None
            by_name = {prompt.name: prompt for prompt in reversed(server.offer.prompts)}
            offered += [(server, by_name[name]) for name in sorted(by_name)]
        offered = offered[:_MAX_PROMPTS]
        names = command_names([(server.label, prompt.name) for server, prompt in offered])
        return [
            ServerPrompt(name, prompt, server, seconds=self._limit(server))
            for (server, prompt), name in zip(offered, names, strict=True)
        ]


def _search_tools(workspace: Workspace, tools: Sequence[McpTool]) -> list[AnyTool]:
    """Return the tools that find and call deferred ones."""
    from acp_agent.tools.mcp.search import CallMcpTool, SearchMcpTools  # noqa: PLC0415 - only for many tools

    return [SearchMcpTools(workspace, tools), CallMcpTool(workspace)]


class ServerPrompt:
    """A prompt of a server, available as a command.

    Args:
        seconds: the time limit of fetching it.
    """

    def __init__(
        self, name: str, prompt: types.Prompt, server: McpServer, *, seconds: float
    ) -> None:
        self._prompt = prompt
        self._server = server
        self._seconds = seconds
        description = prompt.description or prompt.title or f"A prompt of {server.config.name}"
        self.command = Command(
            name=name, description=first_line(description, _MAX_DESCRIPTION), hint=self._hint()
        )

    async def fetch(self, words: str) -> str:
        """Fetch the prompt's text, with the text after the command as arguments.

        Raises:
            ToolError: an argument is missing, or the server failed.
        """
        arguments = self._parse_arguments(words)
        result = await call_server(
            self._server,
            lambda: self._server.client.get_prompt(self._prompt.name, arguments),
            seconds=self._seconds,
        )
        text = prompt_text(result)
        return text if len(text) <= MAX_PROMPT else text[:MAX_PROMPT] + "\n[the rest is left out]"

    def _parse_arguments(self, text: str) -> dict[str, str]:
        """Assign words to the arguments in order; the last argument gets the remaining text.

        With several arguments, quotes keep words together. A single argument is used verbatim,
        since it is usually prose with apostrophes.
        """
        names = [argument.name for argument in self._prompt.arguments or ()]
        values: dict[str, str] = {}
        text = text.strip()
        for name in names[:-1]:
            word, text = _first_word(text)
            if word:
                values[name] = word
        if names and text:
            values[names[-1]] = _unquoted(text) if len(names) > 1 else text
        missing = [
            argument.name
            for argument in self._prompt.arguments or ()
            if argument.required and argument.name not in values
        ]
        if missing:
            raise ToolError(
                f"/{self.command.name} needs {', '.join(missing)}: write "
                f"/{self.command.name} {self.command.hint or ''}".rstrip()
            )
        return values

    def _hint(self) -> str | None:
        names = [
            argument.name if argument.required else f"[{argument.name}]"
            for argument in self._prompt.arguments or ()
        ]
        return first_line(" ".join(names), _MAX_HINT) if names else None


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word, without quotes if it is quoted, and the rest."""
    if text[:1] in {'"', "'"}:
        end = text.find(text[0], 1)
        if end > 0:
            return text[1:end], text[end + 1 :].lstrip()
    word, _, tail = text.partition(" ")
    return word, tail.lstrip()


def _unquoted(text: str) -> str:
    """Return `text` without quotes if it is one quoted word."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[0] if len(words) == 1 else text


def _describe(tool: AnyTool) -> ServerTool:
    """Return the description of a tool for the journal."""
    remote = tool if isinstance(tool, McpTool) else None
    parameters = (
        tool.parameters() if isinstance(tool, SchemaTool) else parameters_schema(tool.params)
    )
    return ServerTool(
        name=tool.name,
        title=tool.title({}),
        description=tool.description(),
        parameters=parameters,
        kind=tool.kind,
        reads=tool.effect == "reads",
        deferred=tool.deferred,
        server="" if remote is None else remote.server.config.name,
        tool="" if remote is None else remote.remote.name,
    )
