"""Edits of a notebook: in the text of its cells, or in its JSON if only that matches."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from acp_agent.tools.editing.replace import Edit, Edited, apply_edits
from acp_agent.tools.notebooks.cells import (
    NotebookError,
    cells_of,
    load,
    looks_like_cells,
    parse,
    render,
)
from acp_agent.tools.notebooks.json_edit import with_cells
from acp_agent.workspace.file_io import TextFile, with_lf


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
