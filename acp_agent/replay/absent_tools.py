"""Substitutes for tools that a replay lacks, such as those of MCP servers."""

from __future__ import annotations

from collections.abc import Iterable

from acp_agent.content import JsonObject
from acp_agent.permissions.access import McpAccess, NoAccess
from acp_agent.replay.script import Call
from acp_agent.tools.base import (
    EVERYTHING,
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
_SESSION_TOOLS = frozenset({"finish_loop", "rewind", "session_search", "skill", "task"})


class AbsentTool(SchemaTool):
    """A substitute for a tool whose code the replay lacks; accepts any arguments."""

    def __init__(self, workspace: Workspace, call: Call) -> None:
        super().__init__(workspace)
        self._call = call

    def description(self) -> str:
        """Return a description."""
        return "Only its recorded calls are known."

    def parameters(self) -> JsonObject:
        """Return a schema without parameters."""
        return {"type": "object", "properties": {}}

    def mistakes(self, arguments: JsonObject) -> list[str]:
        """Return no mistakes."""
        del arguments
        return []

    def title(self, arguments: JsonObject) -> str:
        """Return the recorded title."""
        del arguments
        return self._call.event.title

    def touches(self, params: SchemaArguments) -> Touches:
        """Return everything, because the tool's effects are unknown."""
        del params
        return EVERYTHING

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Show the arguments; ask the user if the record has a question."""
        needs_permission = self._call.question is not None or self._call.decision is not None
        server, _, name = self._call.event.title.partition(": ")
        access = McpAccess(server=server, tool=name, identity="record", definition="record")
        return Prepared(
            title=self.title({}),
            run=_run_nothing,
            access=access if needs_permission else NoAccess(),
            content=arguments_content(params.values),
        )


async def _run_nothing(_: Progress) -> Outcome:
    return Outcome(text="")


def absent_tools(calls: Iterable[Call], template: AnyTool) -> list[AnyTool]:
    """Return a substitute for each tool that ran in a record and that a replay lacks.

    Args:
        calls: the recorded calls of unknown tools.
        template: a tool of the session.
    """
    tools: dict[str, AnyTool] = {}
    for call in calls:
        name = call.event.name
        if name not in tools and name not in _SESSION_TOOLS and (call.started or call.question):
            attributes = {"name": name, "kind": call.event.kind, "effect": "writes"}
            tool_class: type[AbsentTool] = type("AbsentTool", (AbsentTool,), attributes)
            tools[name] = tool_class(template.workspace, call)
    return list(tools.values())
