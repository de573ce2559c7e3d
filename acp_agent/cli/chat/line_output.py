"""Lines that are written for as long as somebody reads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TextIO

from acp_agent.cli.screen import Paint, Style


def until_unread(paint: Paint, out: TextIO, unread: Callable[[OSError], None]) -> Paint:
    """A `paint` that never fails: what shows a conversation cannot know what to do then.

    Args:
        paint: writes to `out`.
        out: where the text goes; a file of the system's.
        unread: called once, when nothing can be written to `out` any more: its reader went away,
            or the disk is full. What is written afterwards, and what `out` still holds, is lost.
    """

    def painted(text: str, style: Style) -> None:
        try:
            paint(text, style)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, out.fileno())
            os.close(nowhere)
            unread(error)

    return painted
