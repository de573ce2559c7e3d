"""Extract calls and reasoning from the text of an answer while it streams."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp_agent.models.base import (
    CallCut,
    CallDelta,
    CallDone,
    CallStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
)
from acp_agent.models.dialects.code_spans import CodeSpans
from acp_agent.models.dialects.form import (
    MORE,
    NO_END,
    SURE,
    UNREADABLE,
    Block,
    Form,
    More,
    Tools,
    Verdict,
    WrittenCall,
    any_of,
    beginnings,
    begins,
)

_TAIL = 40  # characters; no end of a call is longer
_BLANK = 500  # characters of a block, after which white space alone is not read
_GROWTH = 1.5  # the factor by which a block must grow before it is read again


class HeldBlock:
    """A text that may be a call, beginning with the opener.

    Args:
        readers: the forms that are tried; the first one that recognises a call is used.
        tools: the tools that can be called.
    """

    def __init__(self, readers: tuple[Form, ...], tools: Tools) -> None:
        self._readers = readers
        self._tools = tools
        self._pieces: list[str] = []
        self._size = 0
        self._tail = ""
        self._sure = self._due = False
        self._ends = any_of(())  # set once the text is certainly a call
        self._again = 0  # the size at which the block is read again

    @property
    def text(self) -> str:
        """Return the whole text so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return "".join(self._pieces)

    def grow(self, text: str) -> Verdict:
        """Add text and return the verdict.

        A certain call is read again when its end may have arrived, or when the block has grown by a
        certain factor.
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
        """Add the last text; return the verdict, and whether the end of the call is missing."""
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


# The scanner of an answer.
#
# Text is passed on as soon as it cannot be part of a tag. Text that begins like a call is held back
# until its end, and then becomes a call or is passed on as text. The division of the stream into
# pieces affects only the division of the text that is passed on.

_THINK, _THOUGHT = "<think>", "</think>"
_PATIENCE = 16  # unfinished blocks, after which the rest of the answer is treated as text


class Scanner:
    """Extracts calls and reasoning from one answer."""

    def __init__(self, forms: Sequence[Form], tools: Tools) -> None:
        self.calls = 0  # the number of readable calls
        self._tools = tools
        self._by_opener = {
            opener: tuple(form for form in forms if opener in form.openers)
            for form in forms
            for opener in form.openers
        }
        self._bare = tuple(form for form in forms if form.bare)
        self._strays = {stray: form.control for form in forms for stray in form.strays}
        every = {*self._by_opener, *self._strays, _THINK, _THOUGHT}
        marks = sorted(every, key=lambda mark: (-len(mark), mark))
        self._marks = tuple(marks)
        self._begun = beginnings(self._marks)
        self._mark = any_of(self._marks)
        self._firsts = re.compile("[" + re.escape("".join({mark[0] for mark in marks})) + "]")
        self._longest = len(marks[0])
        self._code = CodeSpans()
        self._held = ""  # text that may be the beginning of a mark
        self._blank: list[str] = []  # white space at the beginning of the text
        self._fresh = True  # there is no text yet, or none since the last block
        self._trim = False  # remove white space before the next text, as after reasoning
        self._index = 0
        self._thinking = False
        self._thought = any_of((_THOUGHT,))  # the marks that end the reasoning
        self._reasoned = False
        self._told: list[StreamEvent] = []
        self._said: list[str] = []
        self._block: HeldBlock | None = None  # text that may be a call
        self._endless = 0  # the number of blocks without an end

    def feed(self, text: str) -> list[StreamEvent]:
        """Add a piece of the text; return the events that are certain now."""
        plain = not (self._held or self._fresh or self._block or self._thinking)
        if plain and self._firsts.search(text) is None:  # a fast path for most text
            self._code.take(text)
            return [TextDelta(text)] if text else []
        while text:
            text = self._grow(self._block, text) if self._block else self._scan(self._held + text)
        return self._give()

    def end(self, *, cut: bool = False) -> list[StreamEvent]:
        """Return the last events; `cut` is true if the answer reached its token limit."""
        rest, self._held = self._held, ""
        while rest or self._block:
            if self._block:
                verdict, endless = self._block.end(rest)
                assert not isinstance(verdict, More)
                self._endless += endless
                if cut and endless and verdict is None and self._mark.match(self._block.text):
                    break  # drop a possible call that was cut off, like a certain one
                rest = self._leave(self._block.text, verdict, cut=cut)
            else:
                rest = self._scan(rest, final=True, cut=cut)
        self._blank, self._block = [], None
        return self._give()

    def _give(self) -> list[StreamEvent]:
        self._flush()
        told, self._told = self._told, []
        return told

    def _flush(self) -> None:
        if self._said:
            text = "".join(self._said)
            self._said.clear()
            self._told.append(ThoughtDelta(text) if self._thinking else TextDelta(text))

    def _scan(self, text: str, *, final: bool = False, cut: bool = False) -> str:
        """Read text outside blocks; return the rest from where a block may begin."""
        self._held = ""
        at = 0
        while at < len(text):
            if self._thinking:
                at = self._think(text, at, final=final)
                continue
            if self._fresh and self._bare:
                at = self._skip_blank(text, at)
                if at == len(text):
                    return ""
                marked = begins(text, at, self._marks, final=final)
                if isinstance(marked, More):
                    self._held = text[at:]
                    return ""
                if marked is None and not self._code.inside and self._endless <= _PATIENCE:
                    readers = tuple(form for form in self._bare if text[at] in form.bare)
                    if readers:
                        self._block = HeldBlock(readers, self._tools)
                        return text[at:]
            found = self._mark.search(text, at)
            if found is None:
                hold = self._partial(text, at)
                if final and (not cut or len(text) - hold < 2):
                    hold = len(text)
                self._say(text[at:hold])
                self._held = "" if final else text[hold:]
                return ""
            self._say(text[at : found.start()])
            at = found.end()
            mark = found[0]
            if mark == _THINK and self._code.line_start and not self._code.inside:
                self._begin_thought((_THOUGHT,))
            elif mark == _THOUGHT and not self._reasoned and not self._code.inside:
                # Some chat templates open the reasoning, so the answer only closes it.
                self._reasoned = self._fresh = self._trim = True
                self._blank = []
            else:
                readers = self._may_open(mark)
                if readers:
                    self._block = HeldBlock(readers, self._tools)
                    return text[found.start() :]
                # The rest of an unreadable call is not shown.
                after_call = self._fresh and self._index > 0
                if not self._strays.get(mark, False) and not (mark in self._strays and after_call):
                    self._say(mark)
        return ""

    def _may_open(self, mark: str) -> tuple[Form, ...]:
        if self._endless > _PATIENCE:
            return ()
        return tuple(
            form
            for form in self._by_opener.get(mark, ())
            if (form.control or not self._code.inside)
            and (not form.line_start or self._code.line_start)
        )

    def _begin_thought(self, ends: tuple[str, ...]) -> None:
        self._flush()
        self._thinking = self._reasoned = True
        self._thought = any_of(ends)

    def _think(self, text: str, at: int, *, final: bool) -> int:
        found = self._thought.search(text, at)
        if found is None:
            hold = len(text) if final else self._partial(text, at)
            if hold > at:
                self._said.append(text[at:hold])
            self._held = text[hold:]
            return len(text)
        if found.start() > at:
            self._said.append(text[at : found.start()])
        self._flush()
        self._thinking = False
        self._fresh = self._trim = True
        # The opener of another block ends the reasoning too.
        return found.start() if found[0] in self._by_opener else found.end()

    def _partial(self, text: str, start: int) -> int:
        """Return where a possible incomplete mark at the end of a text begins."""
        at = max(start, len(text) - self._longest + 1)
        while found := self._firsts.search(text, at):
            at = found.start()
            if text[at:] in self._begun:
                return at
            at += 1
        return len(text)

    def _skip_blank(self, text: str, at: int) -> int:
        rest = text[at:]
        blank = rest[: len(rest) - len(rest.lstrip())]
        if blank:
            self._blank.append(blank)
        return at + len(blank)

    def _say(self, text: str) -> None:
        """Add text of the answer. Leading white space is held back until other text follows."""
        if not text:
            return
        self._code.take(text)
        if self._fresh or self._blank:
            if not text.strip():
                self._blank.append(text)
                return
            text = text.lstrip() if self._trim else "".join((*self._blank, text))
            self._blank, self._fresh, self._trim = [], False, False
        self._said.append(text)

    def _grow(self, block: HeldBlock, text: str) -> str:
        """Add text to a block; return the text after its end."""
        verdict = block.grow(text)
        return "" if isinstance(verdict, More) else self._leave(block.text, verdict, cut=False)

    def _leave(self, whole: str, verdict: Block | None, *, cut: bool) -> str:
        self._block = None
        if verdict is None:
            # The opener is text; the text after it is read separately.
            mark = self._mark.match(whole)
            end = mark.end() if mark else 1
            self._say(whole[:end])
            return whole[end:]
        self._blank = []
        for part in verdict.parts:
            if isinstance(part, WrittenCall):
                self._call(part, cut=cut)
            else:
                self._say(part)
        self._code = CodeSpans()
        self._fresh, self._trim = True, False
        if verdict.thought:
            self._begin_thought(verdict.thought)
        return whole[verdict.end :]

    def _call(self, call: WrittenCall, *, cut: bool) -> None:
        self._flush()
        if call.problem == NO_END and cut:
            name = "" if call.name == UNREADABLE else call.name
            self._told.append(CallCut(index=self._index, name=name, size=len(call.arguments)))
            return
        self._blank = []
        index, self._index = self._index, self._index + 1
        self.calls += 1
        # With a problem in front, the arguments are not valid JSON. The call cannot run, and its
        # error shows the model the reason.
        arguments = f"{call.problem}\n{call.arguments}" if call.problem else call.arguments
        self._told.append(CallStarted(index=index, name=call.name))
        self._told.append(CallDelta(index=index, text=arguments))
        self._told.append(CallDone(index=index, name=call.name, arguments=arguments))
