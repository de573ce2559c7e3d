"""Track code and quotes in Markdown text, because they do not contain calls of the model.

https://spec.commonmark.org/0.31.2/#fenced-code-blocks and #block-quotes. A position in a line is in
a code span if an odd number of backticks precedes it on that line. This is right for the text that
models write in practice.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
_HEAD = 200  # characters of a line that are stored, enough for a fence


class CodeSpans:
    """The state at the end of a text that arrives in pieces."""

    def __init__(self) -> None:
        self._head = ""  # the beginning of the current line
        self._ticks = 0  # the number of backticks on the line
        self._fence = ""  # the fence of the open code block

    @property
    def inside(self) -> bool:
        """Return whether the next character is in code or in a quote."""
        return bool(self._fence) or self._ticks % 2 == 1 or self._head.lstrip().startswith(">")

    @property
    def line_start(self) -> bool:
        """Return whether only white space precedes the next character on its line."""
        return not self._head.strip()

    def advance(self, text: str) -> None:
        """Advance over a piece of the text."""
        if "`" not in text and "~" not in text:
            if "\n" not in text:
                if len(self._head) < _HEAD:
                    self._head = (self._head + text)[:_HEAD]
                return
            first, *_ = text.split("\n", 1)
            last = text.rfind("\n")
            self._add(first)
            if last >= 0:
                self._end_line()
                self._add(text[last + 1 :])
            return
        first, *lines = text.split("\n")
        self._add(first)
        for line in lines:
            self._end_line()
            self._add(line)

    def _add(self, piece: str) -> None:
        if len(self._head) < _HEAD:
            self._head = (self._head + piece)[:_HEAD]
        self._ticks += piece.count("`")

    def _end_line(self) -> None:
        fence = _FENCE.match(self._head) if "`" in self._head or "~" in self._head else None
        self._head = ""
        self._ticks = 0
        if fence is None:
            return
        marks, info = fence[1], fence[2]
        if not self._fence:
            if marks[0] == "~" or "`" not in info:
                self._fence = marks
        elif marks.startswith(self._fence) and not info.strip():
            self._fence = ""
