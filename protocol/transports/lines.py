"""Bytes to lines, with a limit to what a line may hold."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.transports.base import LIMIT, Oversize


class LineSplitter:
    """Puts lines together from pieces of any size.

    A line of more than `limit` bytes is not kept: it is reported once it is over, and the lines
    after it come as usual.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, piece: bytes) -> Iterator[bytes | Oversize]:
        """Yield the lines that `piece` ends, without their line ends and without blank ones."""
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            self._keep(piece[start:end])
            start = end + 1
            line = self._take()
            if line is not None:
                yield line
        if start < len(piece):
            self._keep(piece[start:] if start else piece)

    def finish(self) -> bytes | Oversize | None:
        """The last line, where the stream ended without a line end."""
        return self._take()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._skipping = True
            self._parts.clear()
        if not self._skipping:
            self._parts.append(part)

    def _take(self) -> bytes | Oversize | None:
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        skipped = self._skipping
        self._parts.clear()
        self._size = 0
        self._skipping = False
        if skipped:
            return Oversize(self._limit)
        return line if line and not line.isspace() else None
