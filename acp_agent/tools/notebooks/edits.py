"""Edits of a notebook: in the text of its cells, or in its JSON if only that matches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from acp_agent.tools.editing.placeholders import refuse_placeholder
from acp_agent.tools.editing.replace import Edit, Edited, apply_edits
from acp_agent.tools.notebooks.cells import (
    Cell,
    NotebookError,
    cells_of,
    load,
    looks_like_cells,
    parse,
    render,
)
from acp_agent.tools.notebooks.json_edit import with_cells
from acp_agent.workspace.file_io import TextFile, with_lf

_NAMED = 30  # cells in an error


def edit_notebook(file: TextFile, edits: Sequence[Edit], shown: str) -> Edited:
    """Make all edits; the user and the model see the text of the cells.

    Raises:
        ToolError: neither the cells nor, to the letter, the JSON have what is to be replaced, or
            the result is no notebook.
    """
    if not file.text.strip():
        edited = apply_edits(file, edits, shown)
        notebook = write_notebook("", edited.text)
        return notebook if notebook is not None else edited
    try:
        text = render(cells_of(load(file.text)))
    except NotebookError:
        return apply_edits(file, edits, shown)
    old = with_lf(edits[0].old)
    if old and old not in text and old in with_lf(file.text):
        edited = apply_edits(file, edits, shown)
        try:
            load(edited.text)
        except NotebookError as error:
            raise NotebookError(
                f"the edit breaks the notebook: {error.shown}",
                advice="`read` shows its cells, which `edit` changes as text",
            ) from error
        return edited
    cells = msgspec.structs.replace(file, text=text, newline="\n")
    return _in_cells(file.text, text, apply_edits(cells, edits, shown))


class CellEdit(Struct, frozen=True, kw_only=True):
    """A change of one cell, as other agents' notebook tools make it.

    `cell` is an id or, as in `cell-0`, the place of a cell from 0. A cell is inserted below it, or
    at the top without it.
    """

    mode: Literal["replace", "insert", "delete"]
    cell: str | None
    source: str
    type: str | None = None


def edit_cell(file: TextFile, edit: CellEdit) -> Edited:
    """Change one cell.

    Raises:
        ToolError: there is no such cell, the file is no notebook, or text is left out.
    """
    refuse_placeholder(edit.source, file.text)
    before = cells_of(load(file.text))
    at = _place_of(edit, before)
    after = list(before)
    if edit.mode == "insert":
        after.insert(at + 1, Cell(edit.type or "code", edit.source))
    elif edit.mode == "delete":
        del after[at]
    else:
        changed = msgspec.structs.replace(before[at], source=edit.source)
        after[at] = msgspec.structs.replace(changed, type=edit.type or changed.type)
    if after == before:
        raise NotebookError("the cell has this text already; nothing would change")
    text = with_cells(file.text, after)
    view = (render(before), render(cells_of(load(text))))
    line = render(before[: max(at, 0)]).count("\n") + 1
    return Edited(text=text, line=line, places=(view,), view=view)


def _place_of(edit: CellEdit, cells: Sequence[Cell]) -> int:
    """The index of the cell; -1 for the top of the notebook."""
    if edit.cell is None and edit.mode == "insert":
        return -1
    numbered = re.fullmatch(r"(?:cell-)?(\d+)", edit.cell or "")
    ids = [cell.id for cell in cells]
    if edit.cell in ids:
        return ids.index(edit.cell)
    if numbered and int(numbered[1]) < len(cells):
        return int(numbered[1])
    known = ", ".join(cell.id or f"cell-{at}" for at, cell in enumerate(cells[:_NAMED]))
    raise NotebookError(f"there is no cell {edit.cell!r}", advice=f"the cells are {known}")


def write_notebook(before: str, text: str) -> Edited | None:
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
        shown = render(cells_of(load(before))) if before.strip() else ""
    except NotebookError:
        before, shown = "", ""
    return _in_cells(before, shown, Edited(text, 1, ()))


def _in_cells(before: str, shown: str, edited: Edited) -> Edited:
    after = with_cells(before, parse(edited.text))
    text = render(cells_of(load(after)))
    return msgspec.structs.replace(edited, text=after, view=(shown, text))
