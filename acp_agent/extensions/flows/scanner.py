"""Read a chart's text character by character, with the current line number."""

from __future__ import annotations

from collections.abc import Callable

from acp_agent.errors import ConfigError


class Scanner:
    """A position in a text.

    Args:
        line: the number of its first line in the file.
    """

    def __init__(self, text: str, line: int) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._position = 0
        self._first_line = line

    @property
    def line(self) -> int:
        """The number of the current line."""
        return self._first_line + self._text.count("\n", 0, self._position)

    @property
    def next(self) -> str:
        """The next character; "" at the end."""
        return self._text[self._position : self._position + 1]

    @property
    def line_remainder(self) -> str:
        """The rest of the current line."""
        end = self._text.find("\n", self._position)
        return self._text[self._position : len(self._text) if end < 0 else end]

    def peek(self, *texts: str) -> str:
        """Return the first of these texts that comes next; "" if none does."""
        return next((text for text in texts if self._text.startswith(text, self._position)), "")

    def take(self, *texts: str) -> str:
        """Return the first of these texts that comes next, and skip it; "" if none does."""
        text = self.peek(*texts)
        self._position += len(text)
        return text

    def take_while(self, accepts: Callable[[str], bool]) -> str:
        """Return the characters up to the first unwanted one, and skip them."""
        start = self._position
        while self._position < len(self._text) and accepts(self._text[self._position]):
            self._position += 1
        return self._text[start : self._position]

    def take_until(self, *ends: str, within_line: bool = True) -> str | None:
        """Return the text before the nearest of `ends`, and skip both; None if there is none."""
        limit = len(self._text)
        if within_line:
            limit = self._position + len(self.line_remainder)
        positions = ((self._text.find(end, self._position, limit), -len(end)) for end in ends)
        hits = [position for position in positions if position[0] >= 0]
        if not hits:
            return None
        at, length = min(hits)
        text = self._text[self._position : at]
        self._position = at - length
        return text

    def take_lines_until(self, end: str) -> str | None:
        """Return the lines before one that begins with `end`, and skip both; None if none does."""
        at = self._position
        while (at := self._text.find("\n", at)) >= 0:
            at += 1
            line = self._text[at:].partition("\n")[0]
            if line.strip().startswith(end):
                text = self._text[self._position : at]
                self._position = at + line.index(end) + len(end)
                return text
        return None

    def skip_blanks(self) -> None:
        """Skip blanks within the line."""
        self.take_while(lambda character: character in " \t")

    def skip_line(self) -> None:
        """Skip the rest of the line."""
        self._position += len(self.line_remainder)

    def make_error(self, why: str) -> ConfigError:
        """Return an error for the current line."""
        return ConfigError(f"line {self.line}: {why}")
