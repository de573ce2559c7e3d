"""A text that begins like a call, held while it comes, until it is known what it is."""

from __future__ import annotations

from acp_agent.models.dialects.form import MORE, SURE, Form, More, Verdict, any_of
from acp_agent.models.dialects.tools import Tools

_TAIL = 40  # characters; no end of a call is longer
_BLANK = 500  # characters of a block; behind these, white space alone says no more of it
_GROWTH = 1.5  # how much longer a block must be before it is looked at again in vain


class HeldBlock:
    """One such text.

    Args:
        readers: the forms whose call it may be; the first that says so has it.
        tools: what can be called.
    """

    def __init__(self, readers: tuple[Form, ...], tools: Tools) -> None:
        self._readers = readers
        self._tools = tools
        self._pieces: list[str] = []
        self._size = 0
        self._tail = ""
        self._sure = self._due = False
        self._ends = any_of(())  # once it is sure
        self._again = 0  # the size at which it is looked at again

    @property
    def text(self) -> str:
        """All of it that has come."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return "".join(self._pieces)

    def grow(self, text: str) -> Verdict:
        """Take more of it, and say what it is.

        Once it is a call for certain it is looked at when its end may have come, and each time
        that it has not, not before the block is a good deal longer.
        """
        self._pieces.append(text)
        self._size += len(text)
        sure = self._sure
        if sure:
            window = self._tail + text
            self._tail = window[-_TAIL:]
            self._due = self._due or self._ends.search(window) is not None
            if not self._due or self._size < self._again:
                return SURE
        elif self._size > _BLANK and text.isspace():
            return MORE
        self._due = False
        verdict = self._judge(final=False)
        if isinstance(verdict, More):
            self._again = int(self._size * _GROWTH) + _TAIL if sure else 0
            self._tail = self.text[-_TAIL:]
        return verdict

    def end(self, text: str) -> tuple[Verdict, bool]:
        """Take the rest, and say what it is; and whether its end is missing."""
        self._pieces.append(text)
        verdict = self._judge(final=False)
        endless = isinstance(verdict, More)
        return (self._judge(final=True) if endless else verdict), endless

    def _judge(self, *, final: bool) -> Verdict:
        for form in self._readers:
            verdict = form.read(self.text, self._tools, final=final)
            if isinstance(verdict, More) and verdict.sure and not self._sure:
                self._readers, self._sure = (form,), True
                self._ends = any_of(form.ends)
            if verdict is not None:
                return verdict
        return None
