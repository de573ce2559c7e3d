"""Output in whole frames: what is erased and what is drawn in its place leave together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer


class FrameOutput(Vt100_Output):
    """A terminal that gets nothing while a frame is being made, so that it does not flicker.

    It is never asked where its cursor is: over ssh the answer may come late, or as typed text.
    """

    def __init__(self, out: TextIO, *, term: str, colours: ColorDepth) -> None:
        plain = Vt100_Output.from_pty(out, term=term)
        self._size_of = plain.get_size
        super().__init__(
            out,
            self._whole_size,
            term=term,
            default_color_depth=colours,
            enable_bell=False,
            enable_cpr=False,
        )
        self._held = False
        self._above: list[str] = []

    def above(self, lines: Sequence[str]) -> None:
        """Take finished lines, which go above what is drawn with the next frame."""
        self._above += lines

    def write_above(self) -> None:
        """Write the finished lines where the cursor is, which becomes the row below them."""
        self.write_raw("".join(f"{line}\r\n" for line in self._above))
        self._above.clear()

    def begin(self, renderer: Renderer, rows: int) -> None:
        """Begin a frame of `rows`: the finished lines go above it, rows too many are given up."""
        self.hold()
        last = renderer.last_rendered_screen
        if self._above or (last is not None and last.height > rows):
            renderer.erase()
            self.write_above()

    def hold(self) -> None:
        """Keep everything back until `release`."""
        self._held = True

    def release(self) -> None:
        """Let out what was kept back, in one piece."""
        self._held = False
        self.flush()

    def flush(self) -> None:
        """Write what there is, unless a frame is being made."""
        if not self._held:
            super().flush()

    def _whole_size(self) -> Size:
        """The size of the terminal; one without a size, as of a pipe of ssh, is an ordinary one."""
        size = self._size_of()
        return Size(rows=max(size.rows, 4), columns=max(size.columns, 12))
