"""The text in pictures, recognised on this computer, for models that accept no pictures.

The extra `ocr` brings RapidOCR, whose package has its models inside, so nothing is downloaded
(docs/decisions/text-recognition.md).
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

OCR_PACKAGE = "rapidocr"
INSTALL = "pip install 'acp-agent-server[ocr]'"
TEXT_LIMIT = 16_000  # characters of the pictures of one message
_RUNTIME_PACKAGE = "onnxruntime"
_MAX_PIXELS = 40_000_000  # pixels of one picture; 160 MB when decoded
_MAX_SIDE = 2_000  # pixels of the longer side; the recogniser takes no more
_MAX_SECONDS = 60.0  # for the pictures of one message
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_ONE_THREAD = {
    "Global.log_level": "critical",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}

_engine_lock = threading.Lock()  # reading a picture takes half a gigabyte


class RecognisedText(Struct, frozen=True, kw_only=True):
    """The result for one picture: its text ("" if there is none), or why it was not read."""

    text: str = ""
    failure: str = ""


class _Result(Protocol):
    txts: Sequence[str] | None


class _Engine(Protocol):
    def __call__(self, image: object, /) -> _Result: ...


def can_recognise() -> bool:
    """Return whether the extra is installed, without importing it."""
    return all(PathFinder.find_spec(name) is not None for name in (OCR_PACKAGE, _RUNTIME_PACKAGE))


async def recognise(
    pictures: Sequence[ImageBlock], clean: Callable[[str], str]
) -> Sequence[RecognisedText]:
    """Return the text of each picture, line by line, all in a thread of their own.

    For a picture that is broken, too large or not read in time, the result has a `failure`.

    Args:
        pictures: in the order in which they are read.
        clean: removes secrets from a text, before it is shortened.

    Raises:
        ToolError: the recogniser cannot be used.
    """
    results: list[RecognisedText] = []
    deadline = time.monotonic() + _MAX_SECONDS
    with contextlib.suppress(TimeoutError):  # the texts so far are still useful
        async with asyncio.timeout(_MAX_SECONDS):
            await in_daemon_thread(lambda: _recognise_each(pictures, results, deadline), name="ocr")
    timeout_result = RecognisedText(failure=f"it could not be read within {_MAX_SECONDS:g} seconds")
    completed = [*results][: len(pictures)]  # the thread may still add to the list
    cleaned = [
        RecognisedText(text=clean(result.text), failure=result.failure) for result in completed
    ]
    return _limit_text([*cleaned, *[timeout_result] * (len(pictures) - len(completed))])


def _recognise_each(
    pictures: Sequence[ImageBlock], results: list[RecognisedText], deadline: float
) -> None:
    """Put what is recognised into `found`, one after the other, and begin none when time is up."""
    if not _engine_lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
        return
    try:
        engine = _engine()
        for picture in pictures:
            if time.monotonic() >= deadline:
                return
            results.append(_recognise_picture(engine, picture))
    finally:
        _engine_lock.release()


def _engine() -> _Engine:
    try:
        package: Any = importlib.import_module(OCR_PACKAGE)  # a second, and it has no types
        engine: _Engine = package.RapidOCR(params=_ONE_THREAD)
    except Exception as error:  # a library of the system may be missing, or a file of the package
        raise ToolError(
            f"the extra `ocr` cannot be used here ({type(error).__name__}); install it again: "
            f"{INSTALL}"
        ) from error
    return engine


def _recognise_picture(engine: _Engine, picture: ImageBlock) -> RecognisedText:
    try:
        lines = engine(_decode_image(base64.b64decode(picture.data))).txts or ()
    except ToolError as error:
        return RecognisedText(failure=str(error))
    except Exception as error:  # noqa: BLE001 - a broken picture breaks its reader in any way
        return RecognisedText(failure=f"it is no picture that can be read ({type(error).__name__})")
    return RecognisedText(text="\n".join(lines).strip())


def _decode_image(data: bytes) -> object:
    """Return a picture's pixels, upright, no larger than the recogniser looks at.

    Raises:
        ToolError: it has too many pixels.
    """
    pillow: Any = importlib.import_module("PIL.Image")  # the extra brings it, and its types
    with pillow.open(io.BytesIO(data), formats=_FORMATS) as stored:
        if stored.width * stored.height > _MAX_PIXELS:
            size = f"{stored.width:,} × {stored.height:,}"
            raise ToolError(f"it has {size} pixels, more than {_MAX_PIXELS:,}; make it smaller")
        upright = importlib.import_module("PIL.ImageOps").exif_transpose(stored)
        image = upright.convert("RGBA" if stored.has_transparency_data else "RGB")
    image.thumbnail((_MAX_SIDE, _MAX_SIDE))
    pixels: object = image
    return pixels


def _limit_text(results: Sequence[RecognisedText]) -> Sequence[RecognisedText]:
    """Return the texts shortened to `TEXT_LIMIT` in total; shortened texts say so."""
    limited: list[RecognisedText] = []
    remaining = TEXT_LIMIT
    for result in results:
        cut = len(result.text) - remaining
        text = f"{result.text[:remaining]}\n[… {cut:,} more characters]" if cut > 0 else result.text
        limited.append(RecognisedText(text=text, failure=result.failure))
        remaining = max(0, -cut)
    return limited
