"""Split Markdown that arrives in pieces into blocks that no longer change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

MAX_BLOCK_LENGTH = 12_000  # characters of a block; longer ones are cut
_MAX_LINES = 150  # lines of a block, likewise
_MAX_OPEN_LINES = 60  # lines of the open block that are shown

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})([^`]*)$")
_LIST = re.compile(r"^ {0,3}(?:[-*+]|\d{1,9}[.)])\s")
_HEADING = re.compile(r"^#{1,6}\s")


class Block(Struct, frozen=True):
    """A block of Markdown. `joined` means that it continues the code of the previous block."""

    text: str
    joined: bool = False


class Blocks:
    """Splits a text into blocks. Pass pieces to `feed`, and call `close` at the end.

    A block ends at a blank line, after a heading and at the end of a fence. A list ends before a
    line that is not part of it. The time is linear in the length of the text.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []  # of the open block
        self._size = 0
        self._partial_line: list[str] = []  # pieces of an incomplete line
        self._partial_size = 0
        self._fence = ""  # the line that opened the fence
        self._blank = False  # whether the open block ends with a blank line
        self._is_list = False
        self._joined = False  # whether the open block continues one that was cut

    def feed(self, piece: str) -> Iterator[Block]:
        """Yield the blocks that end in this piece."""
        *lines, tail = piece.split("\n")
        for line in lines:
            yield from self._line(self._take_partial_line() + line)
        if tail:
            self._partial_line.append(tail)
            self._partial_size += len(tail)
            if self._partial_size > MAX_BLOCK_LENGTH:  # a line that is too long to wait for its end
                yield from self._line(self._take_partial_line())

    def close(self) -> Iterator[Block]:
        """Yield the last block."""
        if self._partial_line:
            yield from self._line(self._take_partial_line())
        if any(line.strip() for line in self._lines):
            yield self._finish()
        self._reset()

    @property
    def open(self) -> str:
        """Return the open block, or the end of a long one."""
        lines = [*self._lines, "".join(self._partial_line)[-MAX_BLOCK_LENGTH:]]
        if len(lines) > _MAX_OPEN_LINES:
            lines = [*([self._fence] if self._fence else []), *lines[-_MAX_OPEN_LINES:]]
        return "\n".join(lines)

    def _take_partial_line(self) -> str:
        line = "".join(self._partial_line)
        self._partial_line.clear()
        self._partial_size = 0
        return line

    def _line(self, line: str) -> Iterator[Block]:
        if self._fence:
            self._add(line)
            if self._closes(line):
                self._fence = ""
                if not self._is_list:
                    yield self._finish()
            elif self._too_long():
                yield self._cut_code()
            return
        if not line.strip():
            if self._lines:
                self._add(line)
                self._blank = True
            return
        if self._blank and not (self._is_list and (_LIST.match(line) or line[:1].isspace())):
            yield self._finish()
        opening = _FENCE.match(line)
        if opening and self._lines and not self._is_list:
            yield self._finish()  # a fence ends a paragraph
        if not self._lines:
            self._is_list = _LIST.match(line) is not None
        self._add(line)
        self._blank = False
        if opening:
            self._fence = line
        elif (len(self._lines) == 1 and _HEADING.match(line)) or self._too_long():
            yield self._finish()

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _too_long(self) -> bool:
        return self._size > MAX_BLOCK_LENGTH or len(self._lines) > _MAX_LINES

    def _closes(self, line: str) -> bool:
        match = _FENCE.match(self._fence)
        assert match is not None
        mark = match.group(2)
        end = line.strip()
        return len(end) >= len(mark) and set(end) == {mark[0]}

    def _cut_code(self) -> Block:
        """Return the code so far as a block, and continue it in a block with the same fence."""
        opening = self._fence
        match = _FENCE.match(opening)
        assert match is not None
        self._add(f"{match.group(1)}{match.group(2)}")
        block = self._finish()
        self._fence, self._joined = opening, True
        self._add(opening)
        return block

    def _finish(self) -> Block:
        block = Block("\n".join(self._lines).rstrip(), self._joined)
        self._reset()
        return block

    def _reset(self) -> None:
        self._lines = []
        self._size = 0
        self._fence = ""
        self._blank = self._is_list = self._joined = False
