"""What a child session does, as a short list at the call that it works for."""

from __future__ import annotations

from acp_agent.content import text_part
from acp_agent.events import ToolCalled, ToolEnded
from acp_agent.ids import CallId
from acp_agent.tools.base import Progress

SHOWN = 20  # calls; of more, the last ones

_MARKS = {True: "✗", False: "✓", None: "…"}


class ChildActivity:
    """Keeps the list of the calls that a child made.

    Args:
        progress: of the call where it is shown.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._titles: dict[CallId, str] = {}
        self._failed: dict[CallId, bool] = {}

    async def called(self, event: ToolCalled) -> None:
        """The child called a tool."""
        self._titles[event.call] = event.title
        await self._show()

    async def ended(self, event: ToolEnded) -> None:
        """A call of the child's ended."""
        self._failed[event.call] = event.failed
        await self._show()

    @property
    def text(self) -> str:
        """The list in Markdown; empty before the first call."""
        calls = list(self._titles.items())
        left_out = len(calls) - SHOWN
        lines = [] if left_out <= 0 else [f"- … ({left_out} more before)"]
        lines += [f"- {_MARKS[self._failed.get(call)]} {title}" for call, title in calls[-SHOWN:]]
        return "\n".join(lines)

    async def _show(self) -> None:
        await self._progress.show(content=(text_part(self.text),))
