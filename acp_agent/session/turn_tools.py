"""The tools of one turn: the session's own, those of MCP servers, those needed just now."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.agent.open_calls import OpenCalls
    from acp_agent.session.session import Session
    from acp_agent.session.tools_setup import Equipment
    from acp_agent.tools.base import AnyTool
    from acp_agent.tools.toolset import Toolset


class TurnTools:
    """What a turn's model may call.

    Args:
        session: the session.
        equipment: its tools, and the workspace that they work in.
        open_calls: the calls that the turn has not finished yet.
    """

    def __init__(self, session: Session, equipment: Equipment, open_calls: OpenCalls) -> None:
        self._session = session
        self._equipment = equipment
        self._open_calls = open_calls
        self._searching = _WithOneMore(self._search)
        self._rewinding = _WithOneMore(self._rewind)

    def now(self) -> Toolset:
        """The tools as they are at the moment.

        The search of the session is among them once the model is not sent all of it any more: right
        then the provider's cache is lost in any case.
        """
        session = self._session
        tools = self._equipment.toolset
        if session.extensions.mcp is not None:
            tools = session.extensions.mcp.toolset(tools, self._equipment.workspace)
        if session.context.is_shortened:
            tools = self._searching.beside(tools)
        if session.services.config.checkpoints.rewind_tool:
            tools = self._rewinding.beside(tools)
        return tools

    def _search(self) -> AnyTool:
        from acp_agent.tools.session_search import SessionSearchTool  # noqa: PLC0415 - rarely needed

        return SessionSearchTool(self._equipment.workspace, self._session.dated_history)

    def _rewind(self) -> AnyTool:
        from acp_agent.tools.rewind import RewindTool  # noqa: PLC0415 - where the user wants it

        return RewindTool(
            self._equipment.workspace,
            self._session.rewinder.by_model,
            lambda: len(self._open_calls) <= 1,
        )


class _WithOneMore:
    """Sets of tools with one more, which stay the same while the sets do.

    Args:
        make: makes the tool.
    """

    def __init__(self, make: Callable[[], AnyTool]) -> None:
        self._make = make
        self._made: tuple[Toolset, Toolset] | None = None  # without it, and with it

    def beside(self, tools: Toolset) -> Toolset:
        """`tools` with the tool."""
        if self._made is None or self._made[0] is not tools:
            self._made = (tools, tools.with_more([self._make()]))
        return self._made[1]
