"""Requests that continue an answer, and the removal of text that the continuation repeats."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.ids import MessageId

LONGEST_REPEAT = 20_000  # characters of the earlier answer that are compared
_LEAST_REPEAT = 10  # characters; shorter matches may be chance


class FollowUp(Struct, frozen=True, kw_only=True):
    """The additions to the next request: a note at its end, and the id of an answer to continue.

    `text` is the end of that answer's text, or empty if the model cannot repeat it.
    """

    note: str = ""
    continues: MessageId | None = None
    text: str = ""


class ContinuedText:
    """Removes the end of an earlier text from the beginning of the text that continues it.

    Models that are asked to continue an answer often repeat its last words, or all of it. A passage
    that occurs more than once in the earlier text may be meant, so only a passage that occurs there
    exactly once counts as repeated.

    Args:
        earlier: the end of the text that is continued; empty if the answer continues nothing.
    """

    def __init__(self, earlier: str) -> None:
        self._earlier = earlier
        self._held = ""
        self._pieces = [earlier]
        self._size = len(earlier)

    @property
    def whole(self) -> str:
        """Return the end of the earlier text and the new text together."""
        return "".join(self._pieces)[-LONGEST_REPEAT:]

    def feed(self, text: str) -> str:
        """Add a piece of the text; return the part that is certainly not repeated."""
        if not self._earlier:
            self._add(text)
            return text
        self._held += text
        return "" if self._held in self._earlier else self.end()

    def end(self) -> str:
        """Return the new part of the text that was held back. Later text is passed unchanged."""
        new = self._held and _without_repeat(self._held, self._earlier)
        self._earlier, self._held = "", ""
        self._add(new)
        return new

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size > 2 * LONGEST_REPEAT:
            self._pieces = [self.whole]
            self._size = LONGEST_REPEAT


def _without_repeat(text: str, earlier: str) -> str:
    for size in range(min(len(text), len(earlier)), _LEAST_REPEAT - 1, -1):
        repeated = text[:size]
        if earlier.endswith(repeated) and " " in repeated.strip():
            return text[size:] if earlier.count(repeated) == 1 else text
    return text
