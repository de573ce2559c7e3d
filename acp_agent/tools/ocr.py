"""The text in pictures, recognised on this computer, for models that accept no pictures.

The extra `ocr` brings RapidOCR, whose package has its models inside, so nothing is downloaded
(docs/decisions/recognition.md).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib
import io
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder  # not importlib.util, which imports more
from typing import Any, Protocol

from msgspec import Struct

from acp_agent.content import ImageBlock
from acp_agent.errors import ToolError
from acp_agent.workspace.threads import in_daemon_thread

RECOGNISER = "rapidocr"
INSTALL = "pip install 'acp-agent-server[ocr]'"
TEXT_LIMIT = 16_000  # characters of the pictures of one message
_RUNTIME = "onnxruntime"
_PIXELS = 40_000_000  # of one picture; 160 MB when it is unpacked
_SIDE = 2_000  # pixels of the longer side; the recogniser takes no more
_SECONDS = 60.0  # for the pictures of one message
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_ONE_THREAD = {
    "Global.log_level": "critical",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}

_one_at_a_time = threading.Lock()  # reading a picture takes half a gigabyte


class Recognised(Struct, frozen=True, kw_only=True):
    """The result for one picture: its text ("" if there is none), or why it was not read."""

    text: str = ""
    failure: str = ""


class _Result(Protocol):
    txts: Sequence[str] | None


class _Engine(Protocol):
    def __call__(self, image: object, /) -> _Result: ...


def can_recognise() -> bool:
    """Whether the extra is installed; nothing of it is imported."""
    return all(PathFinder.find_spec(name) is not None for name in (RECOGNISER, _RUNTIME))


async def recognise(
    pictures: Sequence[ImageBlock], clean: Callable[[str], str]
) -> Sequence[Recognised]:
    """The text of each picture, line by line, all in a thread of their own.

    A picture that is broken, too large, or not reached in time has a `failure` in its place.

    Args:
        pictures: in the order in which they are read.
        clean: takes secrets out of a text, before it is cut.

    Raises:
        ToolError: the recogniser cannot be used.
    """
    found: list[Recognised] = []
    until = time.monotonic() + _SECONDS
    with contextlib.suppress(TimeoutError):  # what was read until then is of use
        async with asyncio.timeout(_SECONDS):
            await in_daemon_thread(lambda: _recognise_each(pictures, found, until), name="ocr")
    late = Recognised(failure=f"it could not be read within {_SECONDS:g} seconds")
    done = [*found][: len(pictures)]  # the thread may still add to the list
    cleaned = [Recognised(text=clean(one.text), failure=one.failure) for one in done]
    return _within([*cleaned, *[late] * (len(pictures) - len(done))])


def _recognise_each(pictures: Sequence[ImageBlock], found: list[Recognised], until: float) -> None:
    """Put what is recognised into `found`, one after the other, and begin none when time is up."""
    if not _one_at_a_time.acquire(timeout=max(0.0, until - time.monotonic())):
        return
    try:
        engine = _engine()
        for picture in pictures:
            if time.monotonic() >= until:
                return
            found.append(_read(engine, picture))
    finally:
        _one_at_a_time.release()


def _engine() -> _Engine:
    try:
        package: Any = importlib.import_module(RECOGNISER)  # a second, and it has no types
        engine: _Engine = package.RapidOCR(params=_ONE_THREAD)
    except Exception as error:  # a library of the system may be missing, or a file of the package
        raise ToolError(
            f"the extra `ocr` cannot be used here ({type(error).__name__}); install it again: "
            f"{INSTALL}"
        ) from error
    return engine


def _read(engine: _Engine, picture: ImageBlock) -> Recognised:
    try:
        lines = engine(_unpacked(base64.b64decode(picture.data))).txts or ()
    except ToolError as error:
        return Recognised(failure=str(error))
    except Exception as error:  # noqa: BLE001 - a broken picture breaks its reader in any way
        return Recognised(failure=f"it is no picture that can be read ({type(error).__name__})")
    return Recognised(text="\n".join(lines).strip())


def _unpacked(data: bytes) -> object:
    """A picture's pixels, upright, no larger than the recogniser looks at.

    Raises:
        ToolError: it has too many pixels.
    """
    pillow: Any = importlib.import_module("PIL.Image")  # the extra brings it, and its types
    with pillow.open(io.BytesIO(data), formats=_FORMATS) as opened:
        if opened.width * opened.height > _PIXELS:
            size = f"{opened.width:,} × {opened.height:,}"
            raise ToolError(f"it has {size} pixels, more than {_PIXELS:,}; make it smaller")
        upright = importlib.import_module("PIL.ImageOps").exif_transpose(opened)
        image = upright.convert("RGBA" if opened.has_transparency_data else "RGB")
    image.thumbnail((_SIDE, _SIDE))
    unpacked: object = image
    return unpacked


def _within(found: Sequence[Recognised]) -> Sequence[Recognised]:
    """The same with no more text than `TEXT_LIMIT`; what is cut says so."""
    results: list[Recognised] = []
    room = TEXT_LIMIT
    for one in found:
        cut = len(one.text) - room
        text = f"{one.text[:room]}\n[… {cut:,} more characters]" if cut > 0 else one.text
        results.append(Recognised(text=text, failure=one.failure))
        room = max(0, -cut)
    return results
