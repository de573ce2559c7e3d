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
    CallReader,
    More,
    Tools,
    Verdict,
    WrittenCall,
    marks_pattern,
    proper_prefixes,
)

_TAIL = 40  # characters; no end of a call is longer
_BLANK = 500  # characters of a block, after which white space alone is not read
_GROWTH = 1.5  # the factor by which a block must grow before it is read again


class HeldBlock:
    """A text that may be a call, beginning with the opener.

    Args:
        readers: the forms that are tried; the first one that recognises a call is used.
    """

    def __init__(self, readers: tuple[CallReader, ...], tools: Tools) -> None:
        self._readers = readers
        self._tools = tools
        self._pieces: list[str] = []
        self._size = 0
        self._tail = ""
        self._sure = self._due = False
        self._ends = marks_pattern(())  # set once the text is certainly a call
        self._next_size = 0  # the size at which the block is read again

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
            if not self._due or self._size < self._next_size:
                return SURE
        elif self._size > _BLANK and text.isspace():
            return MORE
        self._due = False
        verdict = self._judge(final=False)
        if isinstance(verdict, More):
            self._next_size = int(self._size * _GROWTH) + _TAIL if sure else 0
            self._tail = self.text[-_TAIL:]
        return verdict

    def end(self, text: str) -> tuple[Verdict, bool]:
        """Add the last text; return the verdict, and whether the end of the call is missing."""
        self._pieces.append(text)
        verdict = self._judge(final=False)
        is_unended = isinstance(verdict, More)
        return (self._judge(final=True) if is_unended else verdict), is_unended

    def _judge(self, *, final: bool) -> Verdict:
        for form in self._readers:
            verdict = form.read(self.text, self._tools, final=final)
            if isinstance(verdict, More) and verdict.sure and not self._sure:
                self._readers, self._sure = (form,), True
                self._ends = marks_pattern(form.ends)
            if verdict is not None:
                return verdict
        return None


# The scanner of an answer.
#
# Text is passed on as soon as it cannot be part of a tag. Text that begins like a call is held back
# until its end, and then becomes a call or is passed on as text. The division of the stream into
# pieces affects only the division of the text that is passed on.

_THINK, _THOUGHT = "<think>", "</think>"
_MAX_UNENDED_BLOCKS = 16  # unfinished blocks, after which the rest of the answer is treated as text


class Scanner:
    """Extracts calls and reasoning from one answer."""

    def __init__(self, forms: Sequence[CallReader], tools: Tools) -> None:
        self.calls = 0  # the number of readable calls
        self._tools = tools
        self._by_opener = {
            opener: tuple(form for form in forms if opener in form.openers)
            for form in forms
            for opener in form.openers
        }
        self._bare = tuple(form for form in forms if form.bare)
        self._strays = {stray: form.control for form in forms for stray in form.strays}
        all_marks = {*self._by_opener, *self._strays, _THINK, _THOUGHT}
        marks = sorted(all_marks, key=lambda mark: (-len(mark), mark))
        self._prefixes = proper_prefixes(tuple(marks))
        self._mark = marks_pattern(tuple(marks))
        self._first_characters = re.compile(
            "[" + re.escape("".join({mark[0] for mark in marks})) + "]"
        )
        self._longest = len(marks[0])
        self._code = CodeSpans()
        self._pending = ""  # text that may be the beginning of a mark
        self._blank: list[str] = []  # white space at the beginning of the text
        self._fresh = True  # there is no text yet, or none since the last block
        self._trim = False  # remove white space before the next text, as after reasoning
        self._index = 0
        self._thinking = False
        self._thought_end = marks_pattern((_THOUGHT,))  # the marks that end the reasoning
        self._has_reasoned = False
        self._events: list[StreamEvent] = []
        self._text_pieces: list[str] = []
        self._block: HeldBlock | None = None  # text that may be a call
        self._unended_blocks = 0  # the number of blocks without an end

    def feed(self, text: str) -> list[StreamEvent]:
        """Add a piece of the text; return the events that are certain now."""
        plain = not (self._pending or self._fresh or self._block or self._thinking)
        if plain and self._first_characters.search(text) is None:  # a fast path for most text
            self._code.advance(text)
            return [TextDelta(text)] if text else []
        while text:
            text = (
                self._grow(self._block, text) if self._block else self._scan(self._pending + text)
            )
        return self._take_events()

    def end(self, *, cut: bool = False) -> list[StreamEvent]:
        """Return the last events; `cut` is true if the answer reached its token limit."""
        remaining, self._pending = self._pending, ""
        while remaining or self._block:
            if self._block:
                verdict, is_unended = self._block.end(remaining)
                assert not isinstance(verdict, More)
                self._unended_blocks += is_unended
                if cut and is_unended and verdict is None and self._mark.match(self._block.text):
                    break  # drop a possible call that was cut off, like a certain one
                remaining = self._close_block(self._block.text, verdict, cut=cut)
            else:
                remaining = self._scan(remaining, final=True, cut=cut)
        self._blank, self._block = [], None
        return self._take_events()

    def _take_events(self) -> list[StreamEvent]:
        self._flush()
        events, self._events = self._events, []
        return events

    def _flush(self) -> None:
        if self._text_pieces:
            text = "".join(self._text_pieces)
            self._text_pieces.clear()
            self._events.append(ThoughtDelta(text) if self._thinking else TextDelta(text))

    def _scan(self, text: str, *, final: bool = False, cut: bool = False) -> str:
        """Read text outside blocks; return the rest from where a block may begin."""
        self._pending = ""
        at = 0
        while at < len(text):
            if self._thinking:
                at = self._think(text, at, final=final)
                continue
            if self._fresh and self._bare:
                at = self._skip_blank(text, at)
                if at == len(text):
                    return ""
                marked = self._mark.match(text, at)
                if marked is None and not final and text[at : at + self._longest] in self._prefixes:
                    self._pending = text[at:]
                    return ""
                if (
                    marked is None
                    and not self._code.inside
                    and self._unended_blocks <= _MAX_UNENDED_BLOCKS
                ):
                    readers = tuple(form for form in self._bare if text[at] in form.bare)
                    if readers:
                        self._block = HeldBlock(readers, self._tools)
                        return text[at:]
            match = self._mark.search(text, at)
            if match is None:
                hold = self._find_partial_mark(text, at)
                if final and (not cut or len(text) - hold < 2):
                    hold = len(text)
                self._add_text(text[at:hold])
                self._pending = "" if final else text[hold:]
                return ""
            self._add_text(text[at : match.start()])
            if not final and text[match.start() :] in self._prefixes:  # of a longer mark
                self._pending = text[match.start() :]
                return ""
            at = match.end()
            mark = match[0]
            if mark == _THINK and self._code.line_start and not self._code.inside:
                self._begin_thought((_THOUGHT,))
            elif mark == _THOUGHT and not self._has_reasoned and not self._code.inside:
                # Some chat templates open the reasoning, so the answer only closes it.
                self._has_reasoned = self._fresh = self._trim = True
                self._blank = []
            else:
                readers = self._may_open(mark)
                if readers:
                    self._block = HeldBlock(readers, self._tools)
                    return text[match.start() :]
                # The rest of an unreadable call is not shown.
                after_call = self._fresh and self._index > 0
                if not self._strays.get(mark, False) and not (mark in self._strays and after_call):
                    self._add_text(mark)
        return ""

    def _may_open(self, mark: str) -> tuple[CallReader, ...]:
        if self._unended_blocks > _MAX_UNENDED_BLOCKS:
            return ()
        return tuple(
            form
            for form in self._by_opener.get(mark, ())
            if (form.control or not self._code.inside)
            and (not form.line_start or self._code.line_start)
        )

    def _begin_thought(self, ends: tuple[str, ...]) -> None:
        self._flush()
        self._thinking = self._has_reasoned = True
        self._thought_end = marks_pattern(ends)

    def _think(self, text: str, at: int, *, final: bool) -> int:
        match = self._thought_end.search(text, at)
        if match is None:
            hold = len(text) if final else self._find_partial_mark(text, at)
            if hold > at:
                self._text_pieces.append(text[at:hold])
            self._pending = text[hold:]
            return len(text)
        if match.start() > at:
            self._text_pieces.append(text[at : match.start()])
        self._flush()
        self._thinking = False
        self._fresh = self._trim = True
        # The opener of another block ends the reasoning too.
        return match.start() if match[0] in self._by_opener else match.end()

    def _find_partial_mark(self, text: str, start: int) -> int:
        """Return where a possible incomplete mark at the end of a text begins."""
        at = max(start, len(text) - self._longest + 1)
        while match := self._first_characters.search(text, at):
            at = match.start()
            if text[at:] in self._prefixes:
                return at
            at += 1
        return len(text)

    def _skip_blank(self, text: str, at: int) -> int:
        remaining = text[at:]
        blank = remaining[: len(remaining) - len(remaining.lstrip())]
        if blank:
            self._blank.append(blank)
        return at + len(blank)

    def _add_text(self, text: str) -> None:
        """Add text of the answer. Leading white space is held back until other text follows."""
        if not text:
            return
        self._code.advance(text)
        if self._fresh or self._blank:
            if not text.strip():
                self._blank.append(text)
                return
            text = text.lstrip() if self._trim else "".join((*self._blank, text))
            self._blank, self._fresh, self._trim = [], False, False
        self._text_pieces.append(text)

    def _grow(self, block: HeldBlock, text: str) -> str:
        """Add text to a block; return the text after its end."""
        verdict = block.grow(text)
        return (
            "" if isinstance(verdict, More) else self._close_block(block.text, verdict, cut=False)
        )

    def _close_block(self, text: str, verdict: Block | None, *, cut: bool) -> str:
        self._block = None
        if verdict is None:
            # The opener is text; the text after it is read separately.
            mark = self._mark.match(text)
            end = mark.end() if mark else 1
            self._add_text(text[:end])
            return text[end:]
        self._blank = []
        for part in verdict.content:
            if isinstance(part, WrittenCall):
                self._call(part, cut=cut)
            else:
                self._add_text(part)
        self._code = CodeSpans()
        self._fresh, self._trim = True, False
        if verdict.thought:
            self._begin_thought(verdict.thought)
        return text[verdict.end :]

    def _call(self, call: WrittenCall, *, cut: bool) -> None:
        self._flush()
        if call.problem == NO_END and cut:
            name = "" if call.name == UNREADABLE else call.name
            self._events.append(CallCut(index=self._index, name=name, size=len(call.arguments)))
            return
        self._blank = []
        index, self._index = self._index, self._index + 1
        self.calls += 1
        # With a problem in front, the arguments are not valid JSON. The call cannot run, and its
        # error shows the model the reason.
        arguments = f"{call.problem}\n{call.arguments}" if call.problem else call.arguments
        self._events.append(CallStarted(index=index, name=call.name))
        self._events.append(CallDelta(index=index, text=arguments))
        self._events.append(CallDone(index=index, name=call.name, arguments=arguments))
