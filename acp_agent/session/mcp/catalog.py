"""Tools and prompts of all MCP servers of a session: named, validated and bounded."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import mcp_types as types
import msgspec

from acp_agent.content import printable_line
from acp_agent.errors import ToolError
from acp_agent.extensions.mcp.names import command_names, tool_names
from acp_agent.extensions.mcp.schemas import UnusableSchemaError
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.session.commands.command import Command
from acp_agent.tools.base import AnyTool
from acp_agent.tools.mcp_resource import ListMcpResourcesTool, ReadMcpResourceTool, has_resources
from acp_agent.tools.mcp_tool import McpTool, call_server, mcp_tool, prompt_text
from acp_agent.tools.quoting import first_line
from acp_agent.tools.toolset import Toolset
from acp_agent.workspace.workspace import Workspace

OFFERED = 30  # tools of all servers together; of more, names are offered, and a search
_TOOLS = 1_000  # of all servers together
_BYTES = 4_000_000  # of all their descriptions and schemas together
_PROMPTS = 200
_REASONS = 3  # that a notice names


class McpCatalog:
    """The tools and prompts as they are when this is made; makes no request.

    `left_out` are notices: which server's tools are not there, and why.

    Args:
        servers: all servers of the session; those that are not connected offer nothing.
        call_seconds: how long a call may take.
    """

    def __init__(self, servers: tuple[McpServer, ...], *, call_seconds: float) -> None:
        self._servers = tuple(server for server in servers if server.offer is not None)
        self._seconds = call_seconds
        self.left_out: list[tuple[str, str]] = []
        self._tools = self._make_tools()
        self.prompts = self._make_prompts()
        self._made: tuple[Toolset, Toolset] | None = None

    def toolset(self, core: Toolset, workspace: Workspace) -> Toolset:
        """The session's own tools, then these; the same object for the same `core`."""
        if self._made is None or self._made[0] is not core:
            tools = [tool(workspace) for tool in self._tools]
            more = [*tools, *_search_tools(workspace, tools), *self._resource_tools(workspace)]
            self._made = (core, core.with_tools(more) if more else core)
        return self._made[1]

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
        found = []
        problems: dict[str, list[str]] = {}
        for server in self._servers:
            assert server.offer is not None
            # Of two tools with one name the first is meant: the server could not tell them apart.
            offers = server.config.options.offers
            own = {one.name: one for one in reversed(server.offer.tools) if offers(one.name)}
            found += [(server, own[name]) for name in sorted(own)]
            self.left_out += [
                (f"The MCP server {server.config.name!r} has more {name} than are taken in.", "")
                for name in server.offer.cut
            ]
            for unusable in server.offer.unusable:
                why = f"{printable_line(unusable)[:60]}: it is not described as a tool is"
                problems.setdefault(server.config.name, []).append(why)
        names = tool_names([(server.label, remote.name) for server, remote in found])
        made: list[type[McpTool]] = []
        size = 0
        deferred = len(found) > OFFERED
        for (server, remote), name in zip(found, names, strict=True):
            why = ""
            try:
                if len(made) < _TOOLS:
                    seconds = self._limit(server)
                    tool = mcp_tool(remote, name, server=server, seconds=seconds, deferred=deferred)
                    size += len(tool.server_description()) + len(
                        msgspec.json.encode(tool.schema.for_model)
                    )
                    if size <= _BYTES:
                        made.append(tool)
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
            shown = list(dict.fromkeys(reasons))[:_REASONS]
            self.left_out.append((title, "; ".join(shown)))
        return made

    def _make_prompts(self) -> list[ServerPrompt]:
        found = []
        for server in self._servers:
            assert server.offer is not None
            own = {prompt.name: prompt for prompt in reversed(server.offer.prompts)}
            found += [(server, own[name]) for name in sorted(own)]
        found = found[:_PROMPTS]
        names = command_names([(server.label, prompt.name) for server, prompt in found])
        return [
            ServerPrompt(name, prompt, server, seconds=self._limit(server))
            for (server, prompt), name in zip(found, names, strict=True)
        ]


def _search_tools(workspace: Workspace, tools: Sequence[McpTool]) -> list[AnyTool]:
    """What finds and calls tools that the model is not sent; empty where it is sent all."""
    if not any(tool.deferred for tool in tools):
        return []
    from acp_agent.tools.mcp_search.search import CallMcpTool, SearchMcpTools  # noqa: PLC0415 - where there are many

    return [SearchMcpTools(workspace, tools), CallMcpTool(workspace)]


LONGEST = 50_000  # characters of a prompt that the model is sent
_DESCRIPTION = 300  # characters
_HINT = 200


class ServerPrompt:
    """A prompt of a server, under the name of its command.

    Args:
        name: the command's name.
        prompt: the prompt as the server describes it.
        server: whose it is.
        seconds: how long fetching it may take.
    """

    def __init__(
        self, name: str, prompt: types.Prompt, server: McpServer, *, seconds: float
    ) -> None:
        self._prompt = prompt
        self._server = server
        self._seconds = seconds
        about = prompt.description or prompt.title or f"A prompt of {server.config.name}"
        self.command = Command(
            name=name, description=first_line(about, _DESCRIPTION), hint=self._hint()
        )

    async def fetch(self, rest: str) -> str:
        """The prompt's text, with what stands behind the command as its arguments.

        Raises:
            ToolError: an argument is missing, or the server failed.
        """
        given = self._given(rest)
        result = await call_server(
            self._server,
            lambda: self._server.client.get_prompt(self._prompt.name, given),
            seconds=self._seconds,
        )
        text = prompt_text(result)
        return text if len(text) <= LONGEST else text[:LONGEST] + "\n[the rest is left out]"

    def _given(self, rest: str) -> dict[str, str]:
        """Words go to the arguments in their order; the last one gets all that is left.

        Quotes keep words together where there are several arguments. The last one is taken as it
        is written, since it is mostly prose, with apostrophes in it.
        """
        names = [argument.name for argument in self._prompt.arguments or ()]
        given: dict[str, str] = {}
        rest = rest.strip()
        for name in names[:-1]:
            word, rest = _first_word(rest)
            if word:
                given[name] = word
        if names and rest:
            given[names[-1]] = _unquoted(rest) if len(names) > 1 else rest
        missing = [
            argument.name
            for argument in self._prompt.arguments or ()
            if argument.required and argument.name not in given
        ]
        if missing:
            raise ToolError(
                f"/{self.command.name} needs {', '.join(missing)}: write "
                f"/{self.command.name} {self.command.hint or ''}".rstrip()
            )
        return given

    def _hint(self) -> str | None:
        names = [
            argument.name if argument.required else f"[{argument.name}]"
            for argument in self._prompt.arguments or ()
        ]
        return first_line(" ".join(names), _HINT) if names else None


def _first_word(text: str) -> tuple[str, str]:
    """The first word, whole where it is quoted, and what follows it."""
    if text[:1] in {'"', "'"}:
        end = text.find(text[0], 1)
        if end > 0:
            return text[1:end], text[end + 1 :].lstrip()
    word, _, rest = text.partition(" ")
    return word, rest.lstrip()


def _unquoted(text: str) -> str:
    """`text` without the quotes around it, where it is one quoted word."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[0] if len(words) == 1 else text
