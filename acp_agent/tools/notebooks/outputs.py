"""Show a notebook to a model: numbered lines of its cells, with their outputs."""

from __future__ import annotations

import base64
import binascii
import re

from msgspec import Struct

from acp_agent.content import IMAGE_LIMIT, ImageBlock, JsonObject, image_block, image_type
from acp_agent.tools.notebooks.cells import load, notebook_cells, render

_MAX_OUTPUT = 1_500  # characters of one cell's output
_MAX_TOTAL_OUTPUT = 15_000  # characters of all
_MAX_PICTURES = 5
_TERMINAL_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TEXT_TYPES = ("text/markdown", "text/plain", "text/latex")
ADVICE = (
    "[A notebook. `edit` changes this text: sources, and cells by their <cell> and </cell> lines; "
    "a new cell is written without number and id. Outputs (marked =>) are not part of it.]\n"
)


class NotebookView(Struct, frozen=True):
    """The text of the cells; for a line of it, by number, the output after it; pictures."""

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
    """The text of a cell's outputs; pictures are added to the list."""
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
