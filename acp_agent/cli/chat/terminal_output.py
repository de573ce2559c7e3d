"""Terminal output: colours, and frames that are written in one piece."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from rich.console import Console

from acp_agent.cli.chat.rendering import ColourSystem


class FrameOutput(Vt100_Output):
    """Writes whole frames to a terminal, to prevent flicker.

    It never queries the cursor's position: over ssh the response may arrive late, or as typed text.
    """

    def __init__(self, out: TextIO, *, term: str, depth: ColorDepth) -> None:
        self._reported_size = Vt100_Output.from_pty(out, term=term).get_size
        super().__init__(
            out,
            self._usable_size,
            term=term,
            default_color_depth=depth,
            enable_bell=False,
            enable_cpr=False,
        )
        self._is_buffering = False
        self._above: list[str] = []

    def queue_lines(self, lines: Sequence[str]) -> None:
        """Queue lines to be written above the next frame."""
        self._above += lines

    def write_above(self) -> None:
        """Write the queued lines at the cursor."""
        self.write_raw("".join(f"{line}\r\n" for line in self._above))
        self._above.clear()

    def start_frame(self, renderer: Renderer, rows: int) -> None:
        """Start a frame of `rows` rows, below the queued lines."""
        self.hold()
        last = renderer.last_rendered_screen
        if self._above or (last is not None and last.height > rows):
            renderer.erase()
            self.write_above()

    def hold(self) -> None:
        """Buffer all output until `release`."""
        self._is_buffering = True

    def release(self) -> None:
        """Write the output since `hold` in one piece."""
        self._is_buffering = False
        self.flush()

    def flush(self) -> None:
        """Write the output, unless it is being held."""
        if not self._is_buffering:
            super().flush()

    def _usable_size(self) -> Size:
        """Return the size of the terminal, at least 4 rows of 12 columns."""
        size = self._reported_size()
        return Size(rows=max(size.rows, 4), columns=max(size.columns, 12))


def terminal_colours(out: TextIO) -> tuple[ColourSystem | None, bool]:
    """Return the terminal's colour system, and whether colours are disabled (no-color.org)."""
    monochrome = bool(os.environ.get("NO_COLOR"))
    system = Console(file=out, legacy_windows=False).color_system
    if system in {"standard", "256", "truecolor"}:
        return system, monochrome  # type: ignore[return-value] # as checked in the line above
    return "standard", True


def color_depth(colours: ColourSystem | None, *, monochrome: bool) -> ColorDepth:
    """Return the colour depth for prompt_toolkit."""
    if monochrome or colours is None:
        return ColorDepth.DEPTH_1_BIT
    return {
        "standard": ColorDepth.DEPTH_4_BIT,
        "256": ColorDepth.DEPTH_8_BIT,
        "truecolor": ColorDepth.DEPTH_24_BIT,
    }[colours]
