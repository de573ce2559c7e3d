"""The tools of one turn: the session's own, those of MCP servers, those needed just now."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.session.children.delegation import Delegation
    from acp_agent.session.chosen import Chosen
    from acp_agent.session.turn_host import SessionHost
    from acp_agent.tools.base import AnyTool
    from acp_agent.tools.toolset import Toolset


class TurnTools:
    """What a turn's model may call.

    Args:
        host: what the turn works with.
        chosen: says which of the tools it may have; None: all.
    """

    def __init__(self, host: SessionHost, chosen: Chosen | None = None) -> None:
        self._host = host
        self._searching = Changed(lambda tools: tools.with_tools([self._search()]))
        self._rewinding = Changed(lambda tools: tools.with_tools([self._rewind()]))
        self._delegating = Changed(lambda tools: tools.with_tools(self._delegation.tools()))
        self._chosen = None if chosen is None else Changed(chosen.of)

    def now(self) -> Toolset:
        """The tools as they are at the moment.

        The search of the session is among them once the model is not sent all of it any more: right
        then the provider's cache is lost in any case.
        """
        session = self._host.owner
        tools = self._host.equipment.toolset
        if session.extensions.mcp is not None:
            tools = session.extensions.mcp.toolset(tools, self._host.equipment.workspace)
        if session.extensions.definitions.found:
            tools = self._delegating.of(tools)
        if session.context.is_shortened:
            tools = self._searching.of(tools)
        if session.services.config.checkpoints.rewind_tool:
            tools = self._rewinding.of(tools)
        return tools if self._chosen is None else self._chosen.of(tools)

    @property
    def _delegation(self) -> Delegation:
        from acp_agent.session.children.delegation import Delegation  # noqa: PLC0415 - where there are any

        return Delegation(self._host)

    def _search(self) -> AnyTool:
        from acp_agent.tools.session_search import SessionSearchTool  # noqa: PLC0415 - rarely needed

        return SessionSearchTool(self._host.workspace, self._host.owner.dated_history)

    def _rewind(self) -> AnyTool:
        from acp_agent.tools.rewind import RewindTool  # noqa: PLC0415 - where the user wants it

        return RewindTool(
            self._host.workspace,
            self._host.owner.workbench.rewinder.by_model,
            lambda: len(self._host.open_calls) <= 1,
        )


class Changed:
    """Sets of tools with a change, which stay the same while the sets do.

    Args:
        change: makes the changed set.
    """

    def __init__(self, change: Callable[[Toolset], Toolset]) -> None:
        self._change = change
        self._made: tuple[Toolset, Toolset] | None = None  # before and after

    def of(self, tools: Toolset) -> Toolset:
        """`tools` with the change."""
        if self._made is None or self._made[0] is not tools:
            self._made = (tools, self._change(tools))
        return self._made[1]
