"""Replace texts in a file, also if `old` differs from the file in form only."""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from acp_agent.errors import MissingFileError
from acp_agent.tools.base import Outcome, Prepared, Progress, ToolParams
from acp_agent.tools.editing.replace import Edit, Edited, apply_edits
from acp_agent.tools.file_changes import (
    Change,
    FileParams,
    FileTool,
    apply_change,
    count_lines,
    prepare_change,
)
from acp_agent.tools.notebooks.cells import is_notebook
from acp_agent.workspace.file_io import TextFile, text_file


class EditItem(ToolParams):
    """One of several replacements."""

    old: str
    new: str
    all: bool = False
    times: SkipJsonSchema[int | None] = None
    after_line: SkipJsonSchema[int | None] = None


class EditParams(FileParams):
    """What to replace by what.

    `more` are further replacements, each made in the result of the one before. A call may give all
    of them as a list in `edits` instead, which is what other agents' tools take.
    """

    old: Annotated[str, Field(description="Text to replace; empty to create a file.")]
    new: Annotated[str, Field(description="Text to put there.")]
    all: Annotated[bool, Field(description="Replace every occurrence.")] = False
    times: SkipJsonSchema[int | None] = None
    more: SkipJsonSchema[tuple[EditItem, ...]] = ()
    after_line: SkipJsonSchema[int | None] = None

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, data: object) -> object:
        if not isinstance(data, dict) or not isinstance(edits := data.get("edits"), list):
            return data
        rest = {name: value for name, value in data.items() if name != "edits"}
        if "old" in rest or not edits or not isinstance(edits[0], dict):
            return {**rest, "more": edits}
        return {**rest, **edits[0], "more": edits[1:]}

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All replacements, in order."""
        every: tuple[EditParams | EditItem, ...] = (self, *self.more)
        return tuple(Edit(one.old, one.new, one.all, one.after_line, one.times) for one in every)


class EditTool(FileTool[EditParams]):
    """Edits a file of the session's folders."""

    name: ClassVar[str] = "edit"
    params: ClassVar[type[EditParams]] = EditParams

    def cleaned_path(self, params: EditParams) -> str:
        """The path; that of an existing file if there is text to find in it."""
        existing = bool(params.old) or params.after_line is not None
        return self.workspace.files.cleaned(params.path, existing=existing)

    async def prepare(self, params: EditParams) -> Prepared:
        """Find the text and make the diff."""
        files = self.workspace.files
        asked = self.cleaned_path(params)
        path, shown = self.target(asked)
        try:
            before = await files.read_text(path)
        except MissingFileError as error:
            if params.old or params.after_line is not None:
                raise await files.with_suggestions(error, path) from error
            before = None

        def redo(file: TextFile) -> Edited:
            if is_notebook(path.name):
                from acp_agent.tools.notebooks.edits import edit_notebook  # noqa: PLC0415 - rare

                return edit_notebook(file, params.edits, shown)
            return apply_edits(file, params.edits, shown)

        change = Change(
            asked=asked,
            path=path,
            opened=files.editor_path(path),
            shown=shown,
            before=before,
            edited=await asyncio.to_thread(redo, before or text_file(path, "")),
            redo=redo if before else None,
        )

        def done(edited: Edited) -> str:
            if before is None:
                return f"{shown} created, {count_lines(edited.text)}."
            count = len(edited.places)
            times = f"{count} replacements, the first" if count > 1 else "1 replacement"
            notes = f" Normalised: {', '.join(edited.notes)}." if edited.notes else ""
            return f"{shown} edited: {times} in line {edited.line}.{notes}"

        async def run(_: Progress) -> Outcome:
            return await apply_change(change, files, done)

        return prepare_change(change, title=f"{'Edit' if before else 'Create'} {shown}", run=run)
