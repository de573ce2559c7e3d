"""Return to an earlier point of the conversation, with a message from the model to itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, ClassVar

from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams
from acp_agent.workspace.workspace import Workspace

# Rewinds to after the user's message with this number (None: the last); returns a report.
GoBack = Callable[[int | None, str, bool], Awaitable[str]]

_MAX_MESSAGE = 10_000


class RewindParams(ToolParams):
    """The point to return to, and the message to keep."""

    message: Annotated[str, Field(max_length=_MAX_MESSAGE, description="What to remember.")]
    point: Annotated[int | None, Field(ge=1, description="Which of the user's messages.")] = None
    files: Annotated[bool, Field(description="Whether the files go back, too.")] = False


class RewindTool(Tool[RewindParams]):
    """Rewinds the session; disabled by default.

    Args:
        is_only_call: returns whether no other call runs or waits.
    """

    name: ClassVar = "rewind"
    kind: ClassVar = "other"
    effect: ClassVar = "writes"
    params: ClassVar = RewindParams

    def __init__(
        self, workspace: Workspace, go_back: GoBack, is_only_call: Callable[[], bool]
    ) -> None:
        super().__init__(workspace)
        self._go_back = go_back
        self._is_only_call = is_only_call

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Go back to message 2"."""
        point = arguments.get("point")
        target = f"message {point}" if isinstance(point, int) else "the last message"
        files = ", with the files" if arguments.get("files") is True else ""
        return f"Go back to {target}{files}"

    async def prepare(self, params: RewindParams) -> Prepared:
        """Check that there is something to remember, and no other call."""
        if not params.message.strip():
            raise ToolError("there is nothing to remember", advice="say it in `message`")
        if not self._is_only_call():
            raise ToolError(
                "other calls run at the same time", advice="call rewind alone, without other calls"
            )

        async def run(_: Progress) -> Outcome:
            message = await self._go_back(params.point, params.message.strip(), params.files)
            return Outcome(text=message, content=(text_part(message), text_part(params.message)))

        return Prepared(title=self.title(params.model_dump(exclude_none=True)), run=run)
