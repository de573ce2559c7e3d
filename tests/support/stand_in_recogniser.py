"""The packages of the extra `ocr`, stood in for by small ones that read pictures made here."""

from __future__ import annotations

import base64
import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Protocol

import pytest

from acp_agent.content import ImageBlock

FOLDER = Path(__file__).parent / "recogniser"
NAMES = ("rapidocr", "onnxruntime", "PIL", "PIL.Image", "PIL.ImageOps")


def picture(text: str, width: int = 100, height: int = 50) -> ImageBlock:
    """A picture in which the stand-in finds `text`; no other program can open it."""
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    data = base64.b64encode(header + text.encode()).decode()
    return ImageBlock(data=data, mime_type="image/png")


# It begins as a picture does, so that a prompt may have it.
BROKEN = ImageBlock(
    data=base64.b64encode(b"\x89PNG\r\n\x1a\nand no more").decode(), mime_type="image/png"
)


class StandIn(Protocol):
    """The stand-in's module `rapidocr`."""

    made: list[Mapping[str, object]]
    threads: list[str]
    go_on: Event


@contextmanager
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Have the stand-in found where the extra would be; gives its module `rapidocr`."""
    with monkeypatch.context() as patch:
        for name in NAMES:
            patch.delitem(sys.modules, name, raising=False)
        patch.syspath_prepend(FOLDER)
        module: StandIn = importlib.import_module("rapidocr")
        try:
            yield module
        finally:
            module.go_on.set()
            for name in NAMES:
                sys.modules.pop(name, None)
