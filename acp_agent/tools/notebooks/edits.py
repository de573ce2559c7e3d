"""Edits of a notebook: in the text of its cells, or in its JSON if only that matches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from acp_agent.tools.editing.placeholders import refuse_placeholder
from acp_agent.tools.editing.replace import Edit, EditResult, apply_edits
from acp_agent.tools.notebooks.cells import (
    Cell,
    NotebookError,
    load,
    looks_like_cells,
    notebook_cells,
    parse,
    render,
)
from acp_agent.tools.notebooks.json_edit import with_cells
from acp_agent.workspace.file_io import TextFile, with_lf

_MAX_REPORTED_CELLS = 30  # cells in an error


def edit_notebook(file: TextFile, edits: Sequence[Edit], display_path: str) -> EditResult:
    """Make all edits; the user and the model see the text of the cells.

    Raises:
        ToolError: neither the cells nor, to the letter, the JSON have what is to be replaced, or
            the result is no notebook.
    """
    if not file.text.strip():
        edited = apply_edits(file, edits, display_path)
        notebook = write_notebook("", edited.text)
        return notebook if notebook is not None else edited
    try:
        text = render(notebook_cells(load(file.text)))
    except NotebookError:
        return apply_edits(file, edits, display_path)
    old = with_lf(edits[0].old)
    if old and old not in text and old in with_lf(file.text):
        edited = apply_edits(file, edits, display_path)
        try:
            load(edited.text)
        except NotebookError as error:
            raise NotebookError(
                f"the edit breaks the notebook: {error.shown}",
                advice="`read` shows its cells, which `edit` changes as text",
            ) from error
        return edited
    cells = msgspec.structs.replace(file, text=text, newline="\n")
    return _in_cells(file.text, text, apply_edits(cells, edits, display_path))


class CellEdit(Struct, frozen=True, kw_only=True):
    """A change of one cell, as other agents' notebook tools make it.

    `cell` is an id or, as in `cell-0`, the place of a cell from 0. A cell is inserted below it, or
    at the top without it.
    """

    mode: Literal["replace", "insert", "delete"]
    cell: str | None
    source: str
    type: str | None = None


def edit_cell(file: TextFile, edit: CellEdit) -> EditResult:
    """Change one cell.

    Raises:
        ToolError: there is no such cell, the file is no notebook, or text is left out.
    """
    refuse_placeholder(edit.source, file.text)
    before = notebook_cells(load(file.text))
    index = _cell_index(edit, before)
    after = list(before)
    if edit.mode == "insert":
        after.insert(index + 1, Cell(edit.type or "code", edit.source))
    elif edit.mode == "delete":
        del after[index]
    else:
        changed = msgspec.structs.replace(before[index], source=edit.source)
        after[index] = msgspec.structs.replace(changed, type=edit.type or changed.type)
    if after == before:
        raise NotebookError("the cell has this text already; nothing would change")
    text = with_cells(file.text, after)
    view = (render(before), render(notebook_cells(load(text))))
    line = render(before[: max(index, 0)]).count("\n") + 1
    return EditResult(text=text, line=line, changes=(view,), view=view)


def _cell_index(edit: CellEdit, cells: Sequence[Cell]) -> int:
    """The index of the cell; -1 for the top of the notebook."""
    if edit.cell is None and edit.mode == "insert":
        return -1
    match = re.fullmatch(r"(?:cell-)?(\d+)", edit.cell or "")
    ids = [cell.id for cell in cells]
    if edit.cell in ids:
        return ids.index(edit.cell)
    if match and int(match[1]) < len(cells):
        return int(match[1])
    cell_names = ", ".join(
        cell.id or f"cell-{index}" for index, cell in enumerate(cells[:_MAX_REPORTED_CELLS])
    )
    raise NotebookError(f"there is no cell {edit.cell!r}", advice=f"the cells are {cell_names}")


def write_notebook(before: str, text: str) -> EditResult | None:
    """The notebook whose cells a text has; None if it is JSON already.

    Raises:
        NotebookError: it is neither.
    """
    if not looks_like_cells(text):
        try:
            load(text)
        except NotebookError as error:
            raise NotebookError(
                f"the new text is no notebook: {error.shown}",
                advice='give it as JSON, or as cells: <cell type="code">, its source, </cell>',
            ) from error
        return None
    try:
        before_view = render(notebook_cells(load(before))) if before.strip() else ""
    except NotebookError:
        before, before_view = "", ""
    return _in_cells(before, before_view, EditResult(text, 1, ()))


def _in_cells(before: str, before_view: str, edited: EditResult) -> EditResult:
    after = with_cells(before, parse(edited.text))
    text = render(notebook_cells(load(after)))
    return msgspec.structs.replace(edited, text=after, view=(before_view, text))
