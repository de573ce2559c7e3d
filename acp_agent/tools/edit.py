"""Replace texts in a file, even if the form of `old` differs from the file."""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar, Literal

from msgspec import structs
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from acp_agent.errors import MissingFileError, ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.editing.replace import END_OF_FILE, Edit, EditResult, apply_edits
from acp_agent.tools.file_changes import (
    Change,
    FileParams,
    FileTool,
    apply_change,
    apply_changes,
    count_lines,
    prepare_change,
    prepare_changes,
)
from acp_agent.tools.notebooks.cells import is_notebook
from acp_agent.tools.quoting import first_line
from acp_agent.workspace.file_io import TextFile, text_file

_MAX_REPEATED = 80  # characters


class EditItem(ToolParams):
    """One of several replacements."""

    old: str
    new: str
    all: bool = False
    times: SkipJsonSchema[int | None] = None
    after_line: SkipJsonSchema[int | None] = None
    near_line: SkipJsonSchema[int | None] = None


class EditParams(FileParams):
    """One or more replacements.

    `more` are further replacements, each applied to the result of the previous one. A call may have
    all of them as a list in `edits` instead, as tools of other agents do. With `cell_mode`, as in
    their tools for notebooks, a cell is changed instead. `near_line` selects one of several
    occurrences.
    """

    old: Annotated[str, Field(description="Text to replace; empty to create a file.")]
    new: Annotated[str, Field(description="Text to put there.")]
    all: Annotated[bool, Field(description="Replace every occurrence.")] = False
    times: SkipJsonSchema[int | None] = None
    more: SkipJsonSchema[tuple[EditItem, ...]] = ()
    after_line: SkipJsonSchema[int | None] = None
    near_line: SkipJsonSchema[int | None] = None
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
        inserts = self.after_line not in {None, END_OF_FILE}
        return bool(self.old) or inserts or self.cell_mode is not None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All replacements, in order."""
        items: tuple[EditParams | EditItem, ...] = (self, *self.more)
        return tuple(
            Edit(item.old, item.new, item.all, item.after_line, item.times, item.near_line)
            for item in items
        )


class EditTool(FileTool[EditParams]):
    """Edits a file of the session's folders."""

    name: ClassVar[str] = "edit"
    params: ClassVar[type[EditParams]] = EditParams

    def cleaned_path(self, params: EditParams) -> str:
        """Return the cleaned path; that of an existing file if the edit searches for text."""
        existing = params.needs_file
        return self.workspace.files.clean_path(params.path, existing=existing)

    async def prepare(self, params: EditParams) -> Prepared:
        """Find the text and make the diff."""
        change = await self.change(params)

        def describe(result: EditResult) -> str:
            return describe_edit(structs.replace(change, result=result))

        async def run(_: Progress) -> Outcome:
            return await apply_change(change, self.workspace.files, describe)

        action = "Edit" if change.before else "Create"
        return prepare_change(change, title=f"{action} {change.display_path}", run=run)

    async def change(self, params: EditParams) -> Change:
        """Return the change that a call asks for.

        Raises:
            ToolError: it cannot be made.
            WorkspaceError: the file cannot be read.
        """
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

        return Change(
            requested_path=requested_path,
            path=path,
            editor_path=files.editor_path(path),
            display_path=display_path,
            before=before,
            result=await asyncio.to_thread(redo, before or text_file(path, "")),
            redo=redo if before else None,
        )


class EditFilesParams(BaseModel):
    """Edits of several different files."""

    model_config = ConfigDict(frozen=True)

    files: tuple[EditParams, ...]


class EditFilesTool(Tool[EditFilesParams]):
    """Edits all files that a call names, or none."""

    name: ClassVar[str] = "edit"
    kind: ClassVar[ToolKind] = "edit"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[EditFilesParams]] = EditFilesParams

    def touches(self, params: EditFilesParams) -> Touches:
        """Return all files."""
        touches = [EditTool(self.workspace).touches(file) for file in params.files]
        return Touches(writes=tuple(path for each in touches for path in each.writes))

    async def prepare(self, params: EditFilesParams) -> Prepared:
        """Find all texts and make the diffs."""
        tool = EditTool(self.workspace)
        changes: list[Change] = []
        for file in params.files:
            try:
                changes.append(await tool.change(file))
            except ToolError as error:
                raise ToolError(
                    f"{error.shown}; no file was changed", advice=error.advice
                ) from error
        if len({change.path for change in changes}) < len(changes):
            raise ToolError("two paths name one file", advice="give its edits in one call")

        async def run(_: Progress) -> Outcome:
            return await apply_changes(changes, self.workspace.files, describe_edit)

        title = f"Edit {changes[0].display_path} and {len(changes) - 1} more"
        return prepare_changes(changes, title=title, run=run)


def describe_edit(change: Change) -> str:
    """Return the result of an edit for the model."""
    result, path = change.result, change.display_path
    if change.before is None:
        return f"{path} created, {count_lines(result.text)}."
    count = len(result.changes)
    count_text = f"{count} replacements, the first" if count > 1 else "1 replacement"
    notes = f" Normalised: {', '.join(result.notes)}." if result.notes else ""
    if result.repeated:
        notes += (
            f" The file has {first_line(result.repeated, _MAX_REPEATED)!r} twice now, in `new` and "
            "next to it: if that is wrong, remove one."
        )
    return f"{path} edited: {count_text} in line {result.line}.{notes}"
