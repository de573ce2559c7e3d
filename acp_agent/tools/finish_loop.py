"""End the repetition of a prompt. Offered from the first repetition of a session on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.base import NOTHING, Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.workspace.workspace import Workspace

_ENDED = "There will be no further round."
_ADVICE = "Tell the user in a sentence or two how it ended, and why."


class FinishLoopParams(ToolParams):
    """No parameters."""


class FinishLoopTool(Tool[FinishLoopParams]):
    """Lets the model report that it is done."""

    name: ClassVar[str] = "finish_loop"
    kind: ClassVar[ToolKind] = "think"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[FinishLoopParams]] = FinishLoopParams
    touched: ClassVar[Touches | None] = NOTHING

    def __init__(self, workspace: Workspace, finish: Callable[[], bool]) -> None:
        """Args: finish: called when the model says so; whether a prompt is repeated."""
        super().__init__(workspace)
        self._finish = finish

    def title(self, arguments: JsonObject) -> str:
        """Return a constant title."""
        del arguments
        return "Finish the loop"

    async def prepare(self, params: FinishLoopParams) -> Prepared:
        """Return the call; there is nothing to check."""
        del params
        return Prepared(title=self.title({}), run=self._run)

    async def _run(self, _progress: Progress) -> Outcome:
        if not self._finish():
            raise ToolError("no prompt is being repeated", advice="answer the user instead")
        return Outcome(text=f"{_ENDED} {_ADVICE}", content=(text_part(_ENDED),))
