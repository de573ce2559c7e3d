"""Replace texts in a file, also if `old` differs from the file in form only."""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from acp_agent.errors import MissingFileError, ToolError
from acp_agent.tools.base import Outcome, Prepared, Progress, ToolParams
from acp_agent.tools.editing.replace import Edit, EditResult, apply_edits
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
    of them as a list in `edits` instead, which is what other agents' tools take. With `cell_mode`,
    as in their tools for notebooks, a cell is changed instead.
    """

    old: Annotated[str, Field(description="Text to replace; empty to create a file.")]
    new: Annotated[str, Field(description="Text to put there.")]
    all: Annotated[bool, Field(description="Replace every occurrence.")] = False
    times: SkipJsonSchema[int | None] = None
    more: SkipJsonSchema[tuple[EditItem, ...]] = ()
    after_line: SkipJsonSchema[int | None] = None
    cell_mode: SkipJsonSchema[Literal["replace", "insert", "delete"] | None] = None
    cell: SkipJsonSchema[str | None] = None
    cell_type: SkipJsonSchema[Literal["code", "markdown", "raw"] | None] = None

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, data: object) -> object:
        if not isinstance(data, dict) or not isinstance(edits := data.get("edits"), list):
            return data
        remaining = {name: value for name, value in data.items() if name != "edits"}
        items = [edit for edit in edits if isinstance(edit, dict)]
        paths = [edit["path"] for edit in items if "path" in edit]
        if paths and {*paths, remaining.get("path", paths[0])} == {paths[0]}:  # one for all
            edits = [{key: edit[key] for key in edit if key != "path"} for edit in items]
            remaining["path"] = paths[0]
        if "old" in remaining or not edits or not isinstance(edits[0], dict):
            return {**remaining, "more": edits}
        return {**remaining, **edits[0], "more": edits[1:]}

    @property
    def needs_file(self) -> bool:
        """Whether the edit changes an existing file."""
        return bool(self.old) or self.after_line is not None or self.cell_mode is not None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All replacements, in order."""
        items: tuple[EditParams | EditItem, ...] = (self, *self.more)
        return tuple(
            Edit(item.old, item.new, item.all, item.after_line, item.times) for item in items
        )


class EditTool(FileTool[EditParams]):
    """Edits a file of the session's folders."""

    name: ClassVar[str] = "edit"
    params: ClassVar[type[EditParams]] = EditParams

    def cleaned_path(self, params: EditParams) -> str:
        """The path; that of an existing file if there is text to find in it."""
        existing = params.needs_file
        return self.workspace.files.clean_path(params.path, existing=existing)

    async def prepare(self, params: EditParams) -> Prepared:
        """Find the text and make the diff."""
        files = self.workspace.files
        requested_path = self.cleaned_path(params)
        path, display_path = self.target(requested_path)
        try:
            before = await files.read_text(path)
        except MissingFileError as error:
            if params.needs_file:
                raise await files.with_suggestions(error, path) from error
            before = None

        def redo(file: TextFile) -> EditResult:
            if is_notebook(path.name):
                from acp_agent.tools.notebooks import edits  # noqa: PLC0415 - rare

                if params.cell_mode is None:
                    return edits.edit_notebook(file, params.edits, display_path)
                cell = edits.CellEdit(
                    mode=params.cell_mode,
                    cell=params.cell,
                    source=params.new,
                    type=params.cell_type,
                )
                return edits.edit_cell(file, cell)
            if params.cell_mode is not None:
                raise ToolError(f"{display_path} is not a notebook", advice="give `old` and `new`")
            return apply_edits(file, params.edits, display_path)

        change = Change(
            requested_path=requested_path,
            path=path,
            editor_path=files.editor_path(path),
            display_path=display_path,
            before=before,
            result=await asyncio.to_thread(redo, before or text_file(path, "")),
            redo=redo if before else None,
        )

        def describe(result: EditResult) -> str:
            if before is None:
                return f"{display_path} created, {count_lines(result.text)}."
            count = len(result.changes)
            count_text = f"{count} replacements, the first" if count > 1 else "1 replacement"
            notes = f" Normalised: {', '.join(result.notes)}." if result.notes else ""
            return f"{display_path} edited: {count_text} in line {result.line}.{notes}"

        async def run(_: Progress) -> Outcome:
            return await apply_change(change, files, describe)

        return prepare_change(
            change, title=f"{'Edit' if before else 'Create'} {display_path}", run=run
        )
