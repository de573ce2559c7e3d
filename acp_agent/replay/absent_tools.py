"""Stand-ins for tools that a record called and a replay does not have, such as those of servers."""

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

# These are added to a session's own tools, and run in a replay.
_ADDED = frozenset({"finish_loop", "rewind", "session_search", "skill", "task"})


class AbsentTool(SchemaTool):
    """A tool of which the record alone knows; takes any arguments.

    Args:
        workspace: that of the session.
        call: a recorded call of it.
    """

    def __init__(self, workspace: Workspace, call: Call) -> None:
        super().__init__(workspace)
        self._call = call

    def description(self) -> str:
        """Say what it is."""
        return "Only its recorded calls are known."

    def parameters(self) -> JsonObject:
        """Return a schema without parameters."""
        return {"type": "object", "properties": {}}

    def mistakes(self, arguments: JsonObject) -> list[str]:
        """Return none."""
        del arguments
        return []

    def title(self, arguments: JsonObject) -> str:
        """Return the recorded title."""
        del arguments
        return self._call.called.title

    def touches(self, params: SchemaArguments) -> Touches:
        """Return everything: nobody knows."""
        del params
        return EVERYTHING

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Show the arguments; ask the user if they were asked then."""
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
    """Return a stand-in for each tool that ran in a record and that a replay lacks.

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
