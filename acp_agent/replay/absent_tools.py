"""Substitutes for tools whose code a replay lacks: those of MCP servers, and unknown ones."""

from __future__ import annotations

from collections.abc import Iterable

from acp_agent.content import JsonObject
from acp_agent.events import ServerTool
from acp_agent.extensions.mcp.schemas import ToolSchema, UnusableSchemaError
from acp_agent.permissions.access import Access, McpAccess, NoAccess
from acp_agent.replay.script import Call
from acp_agent.tools.base import (
    EVERYTHING,
    NOTHING_IF_GRANTED,
    AnyTool,
    Outcome,
    Prepared,
    Progress,
    SchemaArguments,
    SchemaTool,
    Touches,
    arguments_content,
)
from acp_agent.workspace.workspace import Workspace

# Tools that a session adds itself; they run in a replay.
_SESSION_TOOLS = frozenset({"finish_loop", "memory", "rewind", "session_search", "skill", "task"})


class AbsentTool(SchemaTool):
    """A substitute for a tool; without a schema it accepts any arguments."""

    def __init__(self, workspace: Workspace, described: ServerTool, *, is_asked: bool) -> None:
        super().__init__(workspace)
        self._described = described
        self._is_asked = is_asked
        try:
            self.schema = ToolSchema(described.parameters)
        except UnusableSchemaError:
            self.schema = ToolSchema({"type": "object"})

    def description(self) -> str:
        """Return the recorded description."""
        return self._described.description

    def parameters(self) -> JsonObject:
        """Return the recorded schema."""
        return self._described.parameters

    def title(self, arguments: JsonObject) -> str:
        """Return the recorded title."""
        del arguments
        return self._described.title

    def touches(self, params: SchemaArguments) -> Touches:
        """Return everything, unless the server says that the tool only reads."""
        del params
        return NOTHING_IF_GRANTED if self.effect == "reads" else EVERYTHING

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Show the arguments; ask the user about calls of servers."""
        described = self._described
        access: Access = NoAccess()
        if self._is_asked:
            access = McpAccess(
                server=described.server,
                tool=described.tool,
                identity="record",
                definition="record",
                read_only=self.effect == "reads",
            )
        return Prepared(
            title=described.title,
            run=_run_nothing,
            access=access,
            content=arguments_content(params.values),
        )


async def _run_nothing(_: Progress) -> Outcome:
    return Outcome(text="")


def server_tool(workspace: Workspace, described: ServerTool) -> AnyTool:
    """Return a substitute for a tool that MCP servers offered."""
    return _substitute(workspace, described, is_asked=bool(described.server))


def absent_tools(calls: Iterable[Call], workspace: Workspace) -> list[AnyTool]:
    """Return a substitute for each other tool that ran in a record and that a replay lacks."""
    tools: dict[str, AnyTool] = {}
    for call in calls:
        name = call.event.name
        if name not in tools and name not in _SESSION_TOOLS and (call.started or call.question):
            server, _, tool = call.event.title.partition(": ")
            described = ServerTool(
                name=name,
                title=call.event.title,
                description="Only its recorded calls are known.",
                parameters={"type": "object", "properties": {}},
                kind=call.event.kind,
                server=server,
                tool=tool,
            )
            is_asked = call.question is not None or call.decision is not None
            tools[name] = _substitute(workspace, described, is_asked=is_asked)
    return list(tools.values())


def _substitute(workspace: Workspace, described: ServerTool, *, is_asked: bool) -> AnyTool:
    attributes = {
        "name": described.name,
        "kind": described.kind,
        "effect": "reads" if described.reads else "writes",
        "deferred": described.deferred,
    }
    tool_class: type[AbsentTool] = type("AbsentTool", (AbsentTool,), attributes)
    return tool_class(workspace, described, is_asked=is_asked)
