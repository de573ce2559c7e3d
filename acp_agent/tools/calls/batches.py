"""A call that combines several: files that are read or searched, or edited together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from acp_agent.content import CallContent, ImageBlock
from acp_agent.errors import AcpAgentError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import RESULT_LIMIT, AnyTool, Outcome, Prepared, Progress, Tool, Touches
from acp_agent.tools.edit import EditFilesParams, EditFilesTool, EditTool


class BatchParams(BaseModel):
    """The parameters of several calls of one tool."""

    model_config = ConfigDict(frozen=True)

    calls: tuple[Any, ...]  # each an instance of the tool's parameters


class Batch(Tool[BatchParams]):
    """Several calls of a reading tool, run in order until the result is full."""

    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[BatchParams]] = BatchParams

    def __init__(self, tool: AnyTool) -> None:
        super().__init__(tool.workspace)
        self.tool = tool

    def touches(self, params: BatchParams) -> Touches:
        """Return everything that its calls read."""
        touches = [self.tool.touches(call) for call in params.calls]
        return Touches(reads=tuple(path for each in touches for path in each.reads))

    async def prepare(self, params: BatchParams) -> Prepared:
        """Prepare each call; an invalid one does not prevent the others from running."""
        prepared: list[tuple[str, Prepared | AcpAgentError]] = []
        for call in params.calls:
            label = str(call.path)
            try:
                prepared.append((label, await self.tool.prepare(call)))
            except AcpAgentError as error:
                prepared.append((label, error))
        ready = [item for _, item in prepared if isinstance(item, Prepared)]
        if not ready:
            raise next(item for _, item in prepared if isinstance(item, AcpAgentError))
        reads = [item.access for item in ready if isinstance(item.access, ReadAccess)]

        async def run(progress: Progress) -> Outcome:
            return await _run_all(prepared, progress)

        return Prepared(
            title=batch_title([item.title for item in ready], len(prepared)),
            run=run,
            access=ReadAccess(
                paths=tuple(path for access in reads for path in access.paths),
                requested_names=tuple(name for access in reads for name in access.requested_names),
            ),
            locations=tuple(location for item in ready for location in item.locations),
        )


class _ReadBatch(Batch):
    name: ClassVar[str] = "read"
    kind: ClassVar[ToolKind] = "read"


class _ListBatch(Batch):
    name: ClassVar[str] = "list"
    kind: ClassVar[ToolKind] = "read"


class _GrepBatch(Batch):
    name: ClassVar[str] = "grep"
    kind: ClassVar[ToolKind] = "search"


_BATCHES: dict[str, type[Batch]] = {"read": _ReadBatch, "list": _ListBatch, "grep": _GrepBatch}


def batch(tool: AnyTool, calls: Sequence[BaseModel]) -> tuple[AnyTool, BaseModel]:
    """Return one call for several of `read`, `list`, `grep` or `edit`."""
    if isinstance(tool, EditTool):
        return EditFilesTool(tool.workspace), EditFilesParams.model_construct(files=tuple(calls))
    return _BATCHES[tool.name](tool), BatchParams(calls=tuple(calls))


def batch_title(titles: Sequence[str], count: int) -> str:
    """Return a title for several calls, such as "Read a.py and 2 more"."""
    return f"{titles[0]} and {count - 1} more" if count > 1 else titles[0]


async def _run_all(
    prepared: Sequence[tuple[str, Prepared | AcpAgentError]], progress: Progress
) -> Outcome:
    texts: list[str] = []
    content: list[CallContent] = []
    images: list[ImageBlock] = []
    size = failures = 0
    for number, (label, item) in enumerate(prepared):
        if size > RESULT_LIMIT:
            left = ", ".join(name for name, _ in prepared[number:])
            texts.append(f"[the result is full; make another call for: {left}]")
            break
        try:
            if isinstance(item, AcpAgentError):
                raise item
            outcome = await item.run(progress)
        except AcpAgentError as error:
            failures += 1
            texts.append(f"{label}:\nError: {error}")
        else:
            texts.append(f"{label}:\n{outcome.text}")
            content += outcome.content or ()
            images += outcome.images
        size += len(texts[-1].encode("utf-8", "replace"))
    return Outcome(
        text="\n".join(text.removesuffix("\n") + "\n" for text in texts),
        failed=failures == len(texts),
        content=tuple(content),
        images=tuple(images),
    )
