"""Replace a text in a file by another."""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject
from acp_agent.events import ToolKind
from acp_agent.tools.arguments import path_argument
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams
from acp_agent.tools.changes import Change, make, prepared
from acp_agent.tools.replacement import replace_text
from acp_agent.tools.touches import Touches
from acp_agent.workspace.names import display_path


class EditParams(ToolParams):
    """What to replace by what."""

    path: str
    old: Annotated[str, Field(description="Exact text to replace.")]
    new: Annotated[str, Field(description="Text to put there.")]
    all: Annotated[bool, Field(description="Replace every occurrence.")] = False


class EditTool(Tool[EditParams]):
    """Edits a file of the session's folders."""

    name: ClassVar[str] = "edit"
    kind: ClassVar[ToolKind] = "edit"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[EditParams]] = EditParams

    def title(self, arguments: JsonObject) -> str:
        """For instance "Edit src/a.py"."""
        return f"Edit {path_argument(self, arguments) or 'a file'}"

    def touches(self, params: EditParams) -> Touches:
        """The file."""
        return Touches(writes=(str(self.workspace.files.resolve(params.path)),))

    async def prepare(self, params: EditParams) -> Prepared:
        """Find the text and make the diff; demands that the model has seen the file as it is."""
        files = self.workspace.files
        path = files.resolve(params.path)
        shown = display_path(path, files.roots[0])
        before = await files.check_unchanged(path)
        result = await asyncio.to_thread(
            replace_text, before, params.old, params.new, every=params.all, shown=shown
        )
        change = Change(
            asked=params.path,
            path=path,
            opened=files.as_opened(path),
            shown=shown,
            before=before,
            after=result.text,
            line=result.line,
        )

        async def run(_: Progress) -> Outcome:
            times = (
                f"{result.count} replacements, the first" if result.count > 1 else "1 replacement"
            )
            done = f"{shown} edited: {times} in line {result.line}."
            return await make(change, files, done)

        return prepared(change, title=f"Edit {shown}", run=run)
