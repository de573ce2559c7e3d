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
    shown_arguments,
)
from acp_agent.workspace.workspace import Workspace

# Tools that a session adds itself; they run in a replay.
_ADDED = frozenset({"finish_loop", "rewind", "session_search", "skill", "task"})


class AbsentTool(SchemaTool):
    """A substitute for a tool whose code the replay lacks; accepts any arguments.

    Args:
        workspace: the workspace of the session.
        call: a recorded call of the tool.
    """

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
        return self._call.called.title

    def touches(self, params: SchemaArguments) -> Touches:
        """Return everything, because the tool's effects are unknown."""
        del params
        return EVERYTHING

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Show the arguments; ask the user if the record has a question."""
        judged = self._call.asked is not None or self._call.decided is not None
        server, _, name = self._call.called.title.partition(": ")
        asked = McpAccess(server=server, tool=name, identity="record", definition="record")
        return Prepared(
            title=self.title({}),
            run=_nothing,
            access=asked if judged else NoAccess(),
            content=shown_arguments(params.values),
        )


async def _nothing(_: Progress) -> Outcome:
    return Outcome(text="")


def absent_tools(calls: Iterable[Call], known: AnyTool) -> list[AnyTool]:
    """Return a substitute for each tool that ran in a record and that a replay lacks.

    Args:
        calls: the recorded calls of unknown tools.
        known: a tool of the session.
    """
    found: dict[str, AnyTool] = {}
    for call in calls:
        name = call.called.name
        if name not in found and name not in _ADDED and (call.started or call.asked):
            about = {"name": name, "kind": call.called.kind, "effect": "writes"}
            made: type[AbsentTool] = type("AbsentTool", (AbsentTool,), about)
            found[name] = made(known.workspace, call)
    return list(found.values())
