"""Stands in for RapidOCR: the text in a picture is what `stand_in_recogniser.picture` put there."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.support.recogniser.PIL.Image import Image

made: list[Mapping[str, object]] = []  # what each recogniser was made with
threads: list[str] = []  # by which pictures were read
go_on = threading.Event()  # what the picture HANG waits for


class Result(NamedTuple):
    txts: tuple[str, ...] | None


class RapidOCR:
    def __init__(self, params: Mapping[str, object]) -> None:
        made.append(params)

    def __call__(self, image: Image) -> Result:
        threads.append(threading.current_thread().name)
        if image.text == "HANG":
            go_on.wait(20)
        return Result(tuple(image.text.split("\n")) if image.text else None)
