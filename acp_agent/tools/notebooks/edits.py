"""Edits of a notebook: in the text of its cells, or in its JSON if only that matches."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.tools.editing.placeholders import refuse_placeholder
from acp_agent.tools.editing.replace import Edit, EditResult, apply_edits
from acp_agent.tools.notebooks.cells import (
    Cell,
    NotebookError,
    cell_source,
    load,
    looks_like_cells,
    notebook_cells,
    parse,
    render,
)
from acp_agent.workspace.file_io import TextFile, with_lf

if TYPE_CHECKING:
    from tree_sitter import Node


_MAX_REPORTED_CELLS = 30  # cells in an error


def edit_notebook(file: TextFile, edits: Sequence[Edit], display_path: str) -> EditResult:
    """Make all edits; the user and the model see the text of the cells.

    Raises:
        ToolError: the text to replace is neither in the cells nor in the JSON, or the result is no
            notebook.
    """
    if not file.text.strip():
        edited = apply_edits(file, edits, display_path)
        notebook = write_notebook("", edited.text)
        return notebook if notebook is not None else edited
    try:
        text = render(notebook_cells(load(file.text)))
    except NotebookError:
        edited = apply_edits(file, edits, display_path)
        if _is_json(file.text) and not _is_json(edited.text):  # of an older format
            raise NotebookError(
                "after the edit this notebook would no longer be valid JSON",
                advice="its cells are in a format that can only be edited as JSON",
            ) from None
        return edited
    old = with_lf(edits[0].old)
    if old and old not in text and old in with_lf(file.text):
        edited = apply_edits(file, edits, display_path)
        try:
            after = _Document(edited.text).without_old_outputs(load(file.text)["cells"])
        except NotebookError as error:
            raise NotebookError(
                f"the edit breaks the notebook: {error.shown}",
                advice="`read` shows its cells, which `edit` changes as text",
            ) from error
        return msgspec.structs.replace(edited, text=after)
    cells = msgspec.structs.replace(file, text=text, newline="\n")
    return _in_cells(file.text, text, apply_edits(cells, edits, display_path))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class CellEdit(Struct, frozen=True, kw_only=True):
    """A change of one cell, as other agents' notebook tools make it.

    `cell` is an id, or the index of a cell as in `cell-0`. A new cell is inserted below it, or at
    the top if it is missing.
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
    """Return the index of the cell; -1 for the top of the notebook."""
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
    """Return the notebook whose cells a text has; None if it is JSON already.

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


_NO_OUTPUTS: Final[Mapping[str, str]] = {"outputs": "[]", "execution_count": "null"}
_EMPTY_NOTEBOOK = '{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n'


def with_cells(text: str, cells: Sequence[Cell]) -> str:
    """Return a notebook's JSON with these cells.

    A cell keeps its metadata, and its outputs unless its source or type changes. A cell is
    identified by its id or number; one without both is new.

    Args:
        text: the file's text; "" for a new notebook.

    Raises:
        NotebookError: the text is no notebook.
    """
    text = text if text.strip() else _EMPTY_NOTEBOOK
    return _Document(text).with_cells(cells)


# Python literals that are not JSON; strings are skipped.
_NOT_A_NUMBER = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|NaN|Infinity', re.DOTALL)


class _Document:
    def __init__(self, text: str) -> None:
        self._notebook = load(text)
        self._data = text.encode("utf-8")
        self._nodes = _cell_nodes(self._data)
        unit = re.search(r"\{\r?\n([ \t]+)\"", text)
        self._indent_unit = unit[1] if unit else None
        self._is_compact = b'": ' not in self._data
        self._ascii = text.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", text) is not None
        version = (self._notebook.get("nbformat"), self._notebook.get("nbformat_minor"))
        self._has_ids = (
            version >= (4, 5) if all(isinstance(number, int) for number in version) else False
        )
        self._ids = {cell.id for cell in notebook_cells(self._notebook) if cell.id}

    def with_cells(self, cells: Sequence[Cell]) -> str:
        before = notebook_cells(self._notebook)
        origins = _origins(before, cells)
        objects = [
            self._new_cell(cell, None)
            if origin is None
            else self._changed_cell(cell, origin, before[origin])
            for cell, origin in zip(cells, origins, strict=True)
        ]
        after = self._replace_cells(objects, in_place=origins == list(range(len(before))))
        text = after.decode("utf-8")
        actual = [(cell.type, cell.source) for cell in notebook_cells(load(text))]
        if actual != [(cell.type, cell.source) for cell in cells]:
            raise NotebookError("the cells of this notebook cannot be edited one by one")
        return text

    def without_old_outputs(self, before: Sequence[JsonObject]) -> str:
        """Return the document without outputs of the sources that the cells had before."""
        cells, nodes = self._notebook["cells"], self._nodes[1]
        if len(cells) != len(before):
            return self._data.decode("utf-8")
        objects = [
            self._with_values(node, _NO_OUTPUTS)
            if cell.get("outputs") == old.get("outputs") and cell_source(cell) != cell_source(old)
            else self._data[node.start_byte : node.end_byte]
            for node, cell, old in zip(nodes, cells, before, strict=True)
        ]
        return self._replace_cells(objects, in_place=True).decode("utf-8")

    def _replace_cells(self, objects: list[bytes], *, in_place: bool) -> bytes:
        """Return the document with these objects in the list of cells."""
        array, nodes = self._nodes
        if in_place:
            pieces, offset = [], 0
            for node, piece in zip(nodes, objects, strict=True):
                pieces += [self._data[offset : node.start_byte], piece]
                offset = node.end_byte
            return b"".join([*pieces, self._data[offset:]])
        if nodes:
            lead = self._data[array.start_byte + 1 : nodes[0].start_byte]
            tail = self._data[nodes[-1].end_byte : array.end_byte - 1]
        else:
            lead = f"\n{self._margin()}".encode() if self._indent_unit else b""
            tail = f"\n{self._indent_unit}".encode() if self._indent_unit else b""
        gap = b"" if self._is_compact else b" "
        between = b"," + lead if lead.strip(b" ") or not nodes else b"," + gap
        body = lead + between.join(objects) + tail if objects else b""
        array_text = b"[" + body + b"]"
        return self._data[: array.start_byte] + array_text + self._data[array.end_byte :]

    def _changed_cell(self, cell: Cell, origin: int, before: Cell) -> bytes:
        """Return the JSON of a cell that the file has."""
        node = self._nodes[1][origin]
        raw = self._data[node.start_byte : node.end_byte]
        if cell.type != before.type:
            return self._new_cell(cell, self._notebook["cells"][origin])
        if cell.source == before.source:
            return raw
        values = {"source": self._source(cell.source, node)}
        if cell.type == "code":
            values |= _NO_OUTPUTS
        return self._with_values(node, values)

    def _with_values(self, node: Node, values: Mapping[str, str]) -> bytes:
        """Return the JSON of a cell in which some keys have other values, given as JSON."""
        edits = sorted(
            (value.start_byte, value.end_byte, values[key].encode("utf-8"))
            for key, value in _members(node)
            if key in values
        )
        pieces, offset = [], node.start_byte
        for start, end, new in edits:
            pieces += [self._data[offset:start], new]
            offset = end
        return b"".join([*pieces, self._data[offset : node.end_byte]])

    def _source(self, source: str, node: Node) -> str:
        old = next(value for key, value in _members(node) if key == "source")
        if old.type == "string":
            return self._dumps(source)
        line_start = self._data.rfind(b"\n", 0, old.start_byte) + 1
        margin = re.match(rb"[ \t]*", self._data[line_start:])
        is_own_line = (
            self._indent_unit is not None and b"{" not in self._data[line_start : old.start_byte]
        )
        indent = margin[0].decode() if margin and is_own_line else None
        return self._dumps(source.splitlines(keepends=True), indent)

    def _new_cell(self, cell: Cell, old: JsonObject | None) -> bytes:
        """Return the JSON of a new cell, or of one whose type changes."""
        fields: JsonObject = {"cell_type": cell.type}
        if cell.type == "code":
            fields["execution_count"] = None
        if old is not None and "id" in old:
            fields["id"] = old["id"]
        elif self._has_ids:
            fields["id"] = self._new_id(cell.id)
        fields["metadata"] = old.get("metadata", {}) if old is not None else {}
        if old is not None and "attachments" in old and cell.type != "code":
            fields["attachments"] = old["attachments"]
        if cell.type == "code":
            fields["outputs"] = []
        fields["source"] = cell.source.splitlines(keepends=True)
        return self._dumps(fields, self._margin() if self._indent_unit else None).encode("utf-8")

    def _margin(self) -> str:
        """Return the indentation of the cells."""
        nodes = self._nodes[1]
        if nodes:
            line_start = self._data.rfind(b"\n", 0, nodes[0].start_byte) + 1
            before = self._data[line_start : nodes[0].start_byte]
            if not before.strip():
                return before.decode()
        return (self._indent_unit or "") * 2

    def _new_id(self, preferred_id: str | None) -> str:
        name = preferred_id if preferred_id and re.fullmatch(r"[\w-]{1,64}", preferred_id) else ""
        while not name or name in self._ids:
            name = uuid.uuid4().hex[:8]
        self._ids.add(name)
        return name

    def _dumps(self, value: Any, margin: str | None = None) -> str:
        """JSON as the file writes it; its further lines begin with `margin`."""
        if margin is None:
            separators = (",", ":") if self._is_compact else (", ", ": ")
            return json.dumps(value, ensure_ascii=self._ascii, separators=separators)
        text = json.dumps(value, ensure_ascii=self._ascii, indent=self._indent_unit)
        newline = "\r\n" if b"\r\n" in self._data else "\n"
        return text.replace("\n", f"{newline}{margin}")


def _origins(before: Sequence[Cell], cells: Sequence[Cell]) -> list[int | None]:
    """Return the index in the file of each cell."""
    by_id = {cell.id: index for index, cell in enumerate(before) if cell.id}
    used: set[int] = set()
    origins: list[int | None] = []
    for cell in cells:
        index = by_id.get(cell.id) if cell.id else None
        # Several cells may have the same id, or none.
        number = cell.number or 0
        if 0 < number <= len(before) and cell.id in {None, before[number - 1].id}:
            index = number - 1
        origins.append(index if index is not None and index not in used else None)
        if index is not None:
            used.add(index)
    return origins


def _as_digits(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b"1" * len(match[0])


def _cell_nodes(data: bytes) -> tuple[Node, list[Node]]:
    """Return the list of cells in the document's tree, and the cells."""
    import tree_sitter_json  # noqa: PLC0415 - few sessions edit notebooks
    from tree_sitter import Language, Parser  # noqa: PLC0415 - likewise

    has_words = b"NaN" in data or b"Infinity" in data
    plain = _NOT_A_NUMBER.sub(_as_digits, data) if has_words else data
    root = Parser(Language(tree_sitter_json.language())).parse(plain).root_node
    document = next((node for node in root.named_children if node.type == "object"), None)
    arrays = [value for key, value in _members(document) if key == "cells"] if document else []
    if root.has_error or len(arrays) != 1:
        raise NotebookError("the cells of this notebook cannot be edited one by one")
    return arrays[0], [node for node in arrays[0].named_children if node.type == "object"]


def _members(node: Node) -> list[tuple[str, Node]]:
    members = []
    for pair in node.named_children:
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if key is not None and key.text is not None and value is not None:
            members.append((str(json.loads(key.text)), value))
    return members
