"""Requests that continue an answer, and the text of such an answer without what it repeats."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.ids import MessageId

LONGEST_REPEAT = 20_000  # characters of the earlier answer that are compared
_LEAST_REPEAT = 10  # characters; fewer are the same by chance


class FollowUp(Struct, frozen=True, kw_only=True):
    """What a request adds: a note at its end, and the answer that the next one continues.

    `text` is the end of that answer's text if the model may repeat it.
    """

    note: str = ""
    continues: MessageId | None = None
    text: str = ""


class ContinuedText:
    """Removes from the beginning of a text what repeats the end of an earlier one.

    Models that are told to go on where they stopped often begin with the last words again, or with
    the whole answer. What is in the earlier text more than once may well come once more, so only
    what is there once counts as repeated.

    Args:
        earlier: the end of the text that is continued; empty for an answer of its own.
    """

    def __init__(self, earlier: str) -> None:
        self._earlier = earlier
        self._held = ""
        self._pieces = [earlier]
        self._size = len(earlier)

    @property
    def whole(self) -> str:
        """The end of the text, with that of the earlier one."""
        return "".join(self._pieces)[-LONGEST_REPEAT:]

    def feed(self, text: str) -> str:
        """Take in a piece of the text; return what is new of it, as far as that is certain."""
        if not self._earlier:
            self._add(text)
            return text
        self._held += text
        return "" if self._held in self._earlier else self.end()

    def end(self) -> str:
        """Return what is new of the text that was held back; nothing is held from here on."""
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
