"""Bytes to lines, with a limit to what a line may hold."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.transports.base import LIMIT, BoundedText, Oversize


class LineSplitter:
    """Puts lines together from pieces of any size.

    A line of more than `limit` bytes is not kept: it is reported once it is over, and the lines
    after it come as usual.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._line = BoundedText(limit)

    def feed(self, piece: bytes) -> Iterator[bytes | Oversize]:
        """Yield the lines that `piece` ends, without their line ends and without blank ones."""
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            self._line.add(piece[start:end])
            start = end + 1
            line = self.finish()
            if line is not None:
                yield line
        if start < len(piece):
            self._line.add(piece[start:] if start else piece)

    def finish(self) -> bytes | Oversize | None:
        """The last line, where the stream ended without a line end."""
        line = self._line.take()
        return None if isinstance(line, bytes) and (not line or line.isspace()) else line
