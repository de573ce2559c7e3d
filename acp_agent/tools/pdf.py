"""The pages of a PDF: their text, or a picture of pages without text if they can be rendered."""

from __future__ import annotations

import importlib
import importlib.util
import io
import logging
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from acp_agent.content import ImageBlock, image_block
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.worker_process import run_in_process

if TYPE_CHECKING:
    from pypdf import PdfReader

PDF_LIMIT = 50_000_000  # bytes of a file
MAX_PAGES = 20  # in one result
_MAX_PICTURES = 4  # pages without text that are rendered by one call
_MAX_SIDE = 1_400  # pixels of the longer side of a rendered page
_MAX_SECONDS = 60.0
_RENDERER = "pypdfium2"  # the extra `pdf` brings it


class Page(Struct, frozen=True, kw_only=True):
    """A page, counted from 1; `picture` is None if it has text or cannot be rendered."""

    number: int
    text: str
    picture: ImageBlock | None = None


class Pages(Struct, frozen=True, kw_only=True):
    """Some pages of a document of `total`.

    `can_draw_pages` says whether pages without text can be rendered.
    """

    pages: Sequence[Page]
    total: int
    can_draw_pages: bool


async def read_pages(
    data: bytes, first: int, count: int, *, max_chars: int, confine: Confine = unconfined
) -> Pages:
    """Return pages of a PDF with at most `max_chars` characters in total, but at least one page.

    Raises:
        ToolError: it cannot be read, or takes too long.
    """
    arguments = {
        "data": data,
        "first": first,
        "count": count,
        "max_chars": max_chars,
        "draw": can_draw(),
    }
    try:
        return await run_in_process(
            "acp_agent.tools.pdf:extract_pages",
            arguments,
            Pages,
            seconds=_MAX_SECONDS,
            confine=confine,
        )
    except TimeoutError:
        raise ToolError(f"it could not be read within {_MAX_SECONDS:g} seconds") from None
    except WorkspaceError as error:
        raise ToolError(str(error)) from None


def can_draw() -> bool:
    """Return whether pages can be rendered here."""
    return importlib.util.find_spec(_RENDERER) is not None


def extract_pages(data: bytes, first: int, count: int, max_chars: int, *, draw: bool) -> Pages:
    """Read the pages; takes a long time for some files, so call it where it can be ended."""
    from pypdf import PdfReader  # noqa: PLC0415 - a tenth of a second that only PDFs need

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it logs every irregularity of a file
    try:
        total, texts = _extract_texts(PdfReader(io.BytesIO(data)), first, count, max_chars)
    except ToolError:
        raise
    except Exception as error:  # broken files cause exceptions of any kind
        raise ToolError(f"it is no PDF that can be read ({type(error).__name__})") from error
    blank = [number for number, text in texts if not text][:_MAX_PICTURES]
    drawings = _draw_pages(data, blank) if blank and draw else {}
    return Pages(
        pages=[
            Page(number=number, text=text, picture=drawings.get(number)) for number, text in texts
        ],
        total=total,
        can_draw_pages=draw,
    )


def _extract_texts(
    reader: PdfReader, first: int, count: int, max_chars: int
) -> tuple[int, list[tuple[int, str]]]:
    """Return the number of pages, and the texts of some."""
    if reader.is_encrypted and not reader.decrypt(""):
        raise ToolError("it needs a password")
    total = len(reader.pages)
    texts: list[tuple[int, str]] = []
    for number in range(first, min(total, first + count - 1) + 1):
        text = reader.pages[number - 1].extract_text().strip()
        max_chars -= len(text)
        if max_chars < 0 and texts:
            break
        texts.append((number, text))
    return total, texts


def _draw_pages(data: bytes, numbers: Sequence[int]) -> dict[int, ImageBlock]:
    renderer: Any = importlib.import_module(_RENDERER)  # it has no types
    try:
        document = renderer.PdfDocument(data)
    except renderer.PdfiumError:
        return {}
    try:
        return {number: _picture(document[number - 1]) for number in numbers}
    finally:
        document.close()


def _picture(page: Any) -> ImageBlock:
    width, height = page.get_size()
    scale = _MAX_SIDE / max(width, height, 1)
    bitmap = page.render(scale=scale, rev_byteorder=True)
    rows = bytes(bitmap.buffer)
    row_bytes = bitmap.width * bitmap.n_channels
    pixels = b"".join(
        b"\0" + rows[offset : offset + row_bytes]
        for offset in range(0, bitmap.stride * bitmap.height, bitmap.stride)
    )
    color_type = {1: 0, 3: 2, 4: 6}[bitmap.n_channels]
    return image_block(_png(bitmap.width, bitmap.height, color_type, pixels), "image/png")


def _png(width: int, height: int, color_type: int, pixels: bytes) -> bytes:
    """Return a picture of eight bits a channel; `kind` is the colour type (PNG, section 11.2.1)."""
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(pixels, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
