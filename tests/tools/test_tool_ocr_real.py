"""The real recogniser on real pictures, offline. `make test-local` installs what it needs."""

from __future__ import annotations

import base64
import importlib
import io
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from acp_agent.content import ImageBlock
from acp_agent.tools.ocr import can_recognise, recognise
from acp_agent.tools.pdf import read_pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_recognise(), reason="needs the extra `ocr`: run `make test-local`"),
]

PICTURE = (Path(__file__).parent / "pictures" / "english_and_chinese.png").read_bytes()
LINES = ["TypeError:'NoneType'objectisnotiterable", "文件未找到：请检查路径设置", "Line42inmain.py"]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for something")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def block(data: bytes) -> ImageBlock:
    return ImageBlock(data=base64.b64encode(data).decode(), mime_type="image/png")


def changed(kind: str, mode: str, *, ground: int | None = None) -> ImageBlock:
    """The picture in another format; its white made transparent with `ground`."""
    image: Any = importlib.import_module("PIL.Image").open(io.BytesIO(PICTURE))
    if ground is not None:
        grey = image.convert("L")
        image = grey.point(lambda _: ground).convert("RGBA")
        image.putalpha(grey.point(lambda value: 255 - value))
    out = io.BytesIO()
    image.convert(mode).save(out, kind)
    return block(out.getvalue())


async def lines(picture: ImageBlock) -> list[str]:
    """What is recognised, without its blanks: how wide one must be is a matter of taste."""
    (results,) = await recognise([picture], lambda text: text)
    assert not results.failure
    return results.text.replace(" ", "").replace(":请", "：请").split("\n")


async def test_english_and_chinese_are_read_without_a_network() -> None:
    assert await lines(block(PICTURE)) == LINES


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param(("GIF", "P", None), id="with a palette"),
        pytest.param(("WEBP", "RGBA", 0), id="black on nothing"),
        pytest.param(("WEBP", "RGBA", 255), id="white on nothing"),
        pytest.param(("JPEG", "L", None), id="grey"),
    ],
)
async def test_any_kind_of_picture_is_read(picture: tuple[str, str, int | None]) -> None:
    kind, mode, ground = picture
    assert await lines(changed(kind, mode, ground=ground)) == LINES


async def test_a_scanned_page_is_drawn_and_read() -> None:
    pytest.importorskip("pypdfium2")
    scan = io.BytesIO()
    image: Any = importlib.import_module("PIL.Image").open(io.BytesIO(PICTURE))
    image.convert("L").save(scan, "PDF")
    (page,) = (await read_pages(scan.getvalue(), 1, 1, max_chars=1_000)).pages
    assert page.text == ""
    assert page.picture is not None
    assert await lines(page.picture) == LINES


async def test_a_broken_or_an_empty_picture_does_no_harm_to_the_others() -> None:
    empty = io.BytesIO()
    importlib.import_module("PIL.Image").new("RGB", (1, 1), "white").save(empty, "PNG")
    broken, none, good = await recognise(
        [block(PICTURE[:2_000]), block(empty.getvalue()), block(PICTURE)], lambda text: text
    )
    assert "no picture that can be read" in broken.failure
    assert (none.text, none.failure) == ("", "")
    assert "TypeError" in good.text


async def test_a_large_picture_is_read_in_reasonable_time() -> None:
    large = io.BytesIO()
    image: Any = importlib.import_module("PIL.Image").open(io.BytesIO(PICTURE))
    image.convert("RGB").resize((7_000, 5_000)).save(large, "PNG")
    began = time.monotonic()
    (results,) = await recognise([block(large.getvalue())], lambda text: text)
    assert not results.failure
    assert time.monotonic() - began < 30
