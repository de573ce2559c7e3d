"""The text form of a notebook's cells, in which they are edited.

Each cell is a line such as `<cell 2 id="a1b2" type="code">`, its source, and `</cell>`. A new
cell has neither number nor id. Format: nbformat 4, which is the only one since 2015.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from msgspec import Struct

from acp_agent.content import IMAGE_LIMIT, ImageBlock, JsonObject, image_block, image_type
from acp_agent.errors import ToolError

TYPES = ("code", "markdown", "raw")
_HEADER = re.compile(r'<cell(?P<number> \d+)?(?P<attributes>(?: (?:id|type)="[^"]*")*) ?>')
_ATTRIBUTE = re.compile(r'(id|type)="([^"]*)"')
_END = "</cell>"


class Cell(Struct, frozen=True):
    """A parsed cell; `number` counts from 1 and, like `id`, is missing in a new one."""

    type: str
    source: str
    id: str | None = None
    number: int | None = None


class NotebookError(ToolError):
    """A file is not an editable notebook, or a text has no cells."""


def is_notebook(path: str) -> bool:
    """Return whether the name of a file is that of a notebook."""
    return path.lower().endswith(".ipynb")


def load(text: str) -> JsonObject:
    """Return a parsed notebook. Raises NotebookError if it is no notebook of format 4."""
    try:
        notebook: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"this notebook is not valid JSON ({error})") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(map(_is_cell, cells)):
        raise NotebookError("this is not a notebook of format 4")
    return dict(notebook)


def _is_cell(cell: object) -> bool:
    if not isinstance(cell, dict) or cell.get("cell_type") not in TYPES:
        return False
    source = cell.get("source")
    return isinstance(source, str) or (
        isinstance(source, list) and all(isinstance(line, str) for line in source)
    )


def cell_source(cell: JsonObject) -> str:
    """Return a cell's source, which the file has as a string or a list of lines."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def notebook_cells(notebook: JsonObject) -> list[Cell]:
    """Return the cells of a loaded notebook."""
    return [
        Cell(cell["cell_type"], cell_source(cell), _cell_id(cell), number)
        for number, cell in enumerate(notebook["cells"], 1)
    ]


def _cell_id(cell: JsonObject) -> str | None:
    cell_id = cell.get("id")
    return cell_id if isinstance(cell_id, str) and re.fullmatch(r"[\w-]{1,64}", cell_id) else None


def render(cells: list[Cell]) -> str:
    """Return the text of cells.

    Raises:
        NotebookError: a cell has a line that looks like the beginning or the end of one.
    """
    pieces = []
    for cell in cells:
        if any(_is_mark(line) for line in cell.source.split("\n")):
            raise NotebookError("a cell has a line that looks like the mark of a cell")
        number = f" {cell.number}" if cell.number else ""
        name = f' id="{cell.id}"' if cell.id else ""
        source = f"{cell.source}\n" if cell.source else ""
        pieces.append(f'<cell{number}{name} type="{cell.type}">\n{source}{_END}\n')
    return "".join(pieces)


def _is_mark(line: str) -> bool:
    return line.strip() == _END or _HEADER.fullmatch(line.strip()) is not None


def looks_like_cells(text: str) -> bool:
    """Return whether a text begins with the mark of a cell."""
    lines = text.lstrip("\n").split("\n", 1)
    return _HEADER.fullmatch(lines[0].strip()) is not None


def parse(text: str) -> list[Cell]:
    """Return the cells of a text.

    Raises:
        NotebookError: a cell is not closed, has an unknown type, or text is between two cells.
    """
    cells: list[Cell] = []
    open_header: re.Match[str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        header = _HEADER.fullmatch(line.strip())
        if header is not None and open_header is None:
            open_header, lines = header, []
        elif line.strip() == _END and open_header is not None:
            cells.append(_cell(open_header, "\n".join(lines)))
            open_header = None
        elif header is not None or line.strip() == _END:
            raise _cell_error(f"line {number} has {line.strip()!r} where no cell may begin or end")
        elif open_header is not None:
            lines.append(line)
        elif line.strip():
            raise _cell_error(f"line {number} is outside of the cells")
    if open_header is not None:
        raise _cell_error("the last cell has no end")
    return cells


def _cell_error(reason: str) -> NotebookError:
    return NotebookError(
        f"the edit breaks the notebook's cells: {reason}",
        advice=f'a cell is a line <cell type="code">, its source, and a line {_END}',
    )


def _cell(header: re.Match[str], source: str) -> Cell:
    attributes = dict(_ATTRIBUTE.findall(header["attributes"]))
    kind = attributes.get("type", "code")
    if kind not in TYPES:
        raise _cell_error(f"there is no type {kind!r}, only {', '.join(TYPES)}")
    number = int(header["number"]) if header["number"] else None
    return Cell(kind, source, attributes.get("id"), number)


_MAX_OUTPUT = 1_500  # characters of one cell's output
_MAX_TOTAL_OUTPUT = 15_000  # characters of all outputs
_MAX_PICTURES = 5
_TERMINAL_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TEXT_TYPES = ("text/markdown", "text/plain", "text/latex")
ADVICE = (
    "[A notebook. `edit` changes this text: sources, and cells by their <cell> and </cell> lines; "
    "a new cell is written without number and id. Outputs (marked =>) are not part of it.]\n"
)


class NotebookView(Struct, frozen=True):
    """The text of the cells, outputs by the number of the line before them, and pictures."""

    text: str
    outputs: dict[int, str]
    pictures: tuple[ImageBlock, ...]


def render_notebook(text: str) -> NotebookView:
    """Return the shown text of a notebook.

    Raises:
        NotebookError: it is no notebook whose cells can be shown.
    """
    notebook = load(text)
    cells = notebook_cells(notebook)
    rendered = render(cells)
    outputs: dict[int, str] = {}
    pictures: list[ImageBlock] = []
    line, remaining = 0, _MAX_TOTAL_OUTPUT
    for cell, raw in zip(cells, notebook["cells"], strict=True):
        line += render([cell]).count("\n")
        output = _outputs(raw, pictures)[: max(0, min(remaining, _MAX_OUTPUT) - 1)]
        if output:
            remaining -= len(output)
            outputs[line] = "".join(f"=> {row}\n" for row in output.split("\n"))
    return NotebookView(rendered, outputs, tuple(pictures))


def _outputs(cell: JsonObject, pictures: list[ImageBlock]) -> str:
    """Return the text of a cell's outputs; pictures are added to the list."""
    outputs = cell.get("outputs")
    pieces = []
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        data = output.get("data")
        if isinstance(data, dict):
            pieces.append(_shown_data(data, pictures))
        elif output.get("output_type") == "error":
            trace = output.get("traceback")
            lines = trace if isinstance(trace, list) else [output.get("evalue")]
            pieces.append("\n".join(str(line) for line in lines))
        else:
            pieces.append(_text(output.get("text")))
    text = _TERMINAL_ESCAPE.sub(
        "", "\n".join(piece.strip("\n") for piece in pieces if piece.strip())
    )
    if len(text) <= _MAX_OUTPUT:
        return text
    half = _MAX_OUTPUT // 2 - 40
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} more characters …]\n{text[-half:]}"


def _shown_data(data: JsonObject, pictures: list[ImageBlock]) -> str:
    for kind, value in data.items():
        if kind.startswith("image/") and kind != "image/svg+xml":
            picture = _picture(_text(value)) if len(pictures) < _MAX_PICTURES else None
            if picture is not None:
                pictures.append(picture)
                return f"[picture {len(pictures)}]"
            return f"[{kind}]"
    text = next((_text(data[kind]) for kind in _TEXT_TYPES if kind in data), "")
    return text or f"[{', '.join(data)}]"


def _picture(text: str) -> ImageBlock | None:
    try:
        data = base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None
    media_type = image_type(data)
    return None if media_type is None or len(data) > IMAGE_LIMIT else image_block(data, media_type)


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(str(line) for line in value)
    return value if isinstance(value, str) else ""
