"""Recognise calls that a model wrote as text instead of using the tools of its API.

A text counts as a call only if there is no doubt: it calls known tools in a form that models are
trained on, it is at the end of an answer without other calls, it is not in code, and the words
before it do not only mention a call. Text that may be such a call is held back until its end. All
other text is streamed unchanged, except that reasoning between tags becomes reasoning, and control
tokens at the end of an answer are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from acp_agent.models.base import (
    CallCut,
    CallDelta,
    CallDone,
    CallStarted,
    Failed,
    FellBack,
    Finished,
    Retrying,
    SearchEnded,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
)
from acp_agent.models.dialects.call_marks import (
    ANNOUNCES,
    END_TOKENS,
    LONGEST_LEAD,
    MARK,
    SPECIAL,
    THOUGHTS,
    begins_python,
    marks_at,
    may_follow_calls,
    speaks_of_calls,
    tokens_at_end,
)
from acp_agent.models.dialects.code_spans import CodeSpans
from acp_agent.models.dialects.form import LONGEST_TAG

if TYPE_CHECKING:  # the forms are imported only if a text may be a call
    from acp_agent.models.dialects.form import Tools, WrittenCall
    from acp_agent.models.dialects.scanner import Scanner

LONGEST_CALLS = 512 * 1024  # the most characters of an answer that are held back
_MOST_TRIES = 100  # places of one answer at which a call may begin

_HARMONY = ("<|channel|>", "<|start|>")  # a whole answer in this form begins with one of these
_JSON = re.compile(r"[`{]|\[\s*\{")


class WrittenCalls:
    """Replaces the text of calls by events of calls, in one answer after another.

    Args:
        tools: returns the known tools; called only if a text may be a call.
        is_reasoning: true if the text is reasoning, in which no further reasoning is searched.
    """

    def __init__(self, tools: Callable[[], Tools], *, is_reasoning: bool = False) -> None:
        self._tools = tools
        self._is_reasoning = is_reasoning
        self._reset()

    def read(self, batch: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """Return the events that replace those of a batch."""
        read: list[StreamEvent] = []
        said: list[str] = []
        for item in batch:
            if isinstance(item, TextDelta):
                said.append(item.text)
                continue
            if said:
                self._take("".join(said), read)
                said.clear()
            match item:
                case ThoughtDelta():
                    self._thoughts.append(item.text)
                case CallStarted() | CallDelta() | CallDone() | CallCut() | Failed():
                    self._release(read)
                    self._end_text(read)
                case SearchStarted() | SearchEnded():
                    self._release(read)
                    self._end_text(read)
                case Retrying() | FellBack():
                    self._reset()
                case Finished():
                    read.extend(self._finish(item))
                    continue
                case _:
                    pass
            read.append(item)
        if said:
            self._take("".join(said), read)
        return read

    def _reset(self) -> None:
        self._thoughts: list[str] = []
        self._told = False  # text other than white space was passed on
        self._tail = ""  # the end of the text, which may be a control token
        self._off = False
        self._tries = 0
        self._begin_part()

    def _begin_part(self) -> None:
        """Start an answer, or the part of it after reasoning."""
        self._code = CodeSpans()  # of the text that was passed on
        self._text = ""  # the end of the text, including the words before a possible call
        self._is_long = False  # there is more text before `_text`
        self._shown = 0  # characters of `_text` that were passed on
        self._looked = 0  # characters of `_text` in which no call begins
        self._may_be_python = True
        self._thought_end = ""  # the closing tag if the text is reasoning
        self._trim = False  # remove white space after reasoning
        self._scanner: Scanner | None = None  # reads the call
        self._is_harmony = False
        self._after = ""  # the text after the calls
        self._calls: list[StreamEvent] = []

    def _say(self, text: str, read: list[StreamEvent]) -> None:
        """Pass on text, except for an end that may be a control token."""
        if self._tail:
            text, self._tail = self._tail + text, ""
        if "<" in text:
            end = tokens_at_end(text)
            text, self._tail = text[:end], text[end:]
        if not text:
            return
        self._told = self._told or not text.isspace()
        last = read[-1] if read else None
        if isinstance(last, TextDelta):
            read[-1] = TextDelta(last.text + text)
        else:
            read.append(TextDelta(text))

    def _end_text(self, read: list[StreamEvent]) -> None:
        """Pass on the end of the text, unless it is a control token."""
        if self._tail and not self._tail.rstrip().endswith(END_TOKENS):
            read.append(TextDelta(self._tail))
        self._tail = ""

    def _release(self, read: list[StreamEvent]) -> None:
        """Pass on the text that is held back, and stop looking for calls in this answer."""
        rest = self._text[self._shown :]
        if rest and self._thought_end:
            read.append(ThoughtDelta(rest))
        elif rest:
            self._say(rest, read)
        self._begin_part()
        self._off = True

    def _show(self, end: int, read: list[StreamEvent]) -> None:
        if end > self._shown:
            text = self._text[self._shown : end]
            self._code.take(text)
            self._say(text, read)
            self._shown = end

    def _take(self, text: str, read: list[StreamEvent]) -> None:
        if self._off:
            self._say(text, read)
            return
        if self._trim and not self._text:
            text = text.lstrip()
        if not SPECIAL.search(text) and not self._is_held:  # a fast path for most text
            self._text += text
            self._show(len(self._text), read)
            self._forget()
            return
        self._text += text
        if self._thought_end:
            self._think(read)
        elif self._scanner is not None:
            self._scan(self._scanner.feed(text), read)
        else:
            self._look(read)

    @property
    def _is_held(self) -> bool:
        """Return whether text is held back, or may be Python, reasoning or a call."""
        held = self._shown < len(self._text) or self._may_be_python
        return held or bool(self._thought_end) or self._scanner is not None

    def _forget(self) -> None:
        """Remove text that is too far before a possible call."""
        line = self._text.rfind("\n") + 1  # white space at its beginning is searched again
        at_line_start = not self._text[line:].strip()
        self._looked = max(self._looked, line - 1 if at_line_start else len(self._text))
        if len(self._text) > 4 * LONGEST_LEAD:
            gone = len(self._text) - LONGEST_LEAD
            self._text, self._is_long = self._text[gone:], True
            self._shown, self._looked = self._shown - gone, max(0, self._looked - gone)

    def _look(self, read: list[StreamEvent]) -> None:
        """Look for the opener of a call, and pass on the text before it."""
        if self._may_be_python and begins_python(self._text, self._tools):
            return
        self._may_be_python = False
        for found in MARK.finditer(self._text, self._looked):
            at = found.end() if found[0] not in {"<", "[", "◁"} else found.start()
            if at < self._shown:
                continue
            self._show(at, read)
            opened = None if self._code.inside else self._opens(at)
            if opened is None:
                self._looked = max(found.end(), at + 1)
                continue
            if opened:
                self._begin(at, read)
            return
        self._show(len(self._text), read)
        self._forget()

    def _opens(self, at: int) -> bool | None:
        """Return whether a call may begin at a place: True, False (with more text), None (no)."""
        if self._text.startswith("`", at - 1) and at:
            return None  # the tag is quoted
        begins_line = self._code.line_start  # all text before the place was passed on
        if self._text[at : at + 1] in {"{", "`"} and self._lead_is_long(at):
            return None
        if self._text[at : at + 1] == "{":
            return True
        if self._text[at : at + 1] == "[" and begins_line and not self._lead_is_long(at):
            follows = self._text[at + 1 :].lstrip()[:1]
            if follows in {"", "{"}:
                return bool(follows)
        mark, begun = marks_at(begins_line, not self._lead_is_long(at))
        if mark.match(self._text, at):
            return True
        rest = self._text[at : at + LONGEST_TAG]
        return False if rest in begun else None

    def _lead_is_long(self, at: int) -> bool:
        return self._is_long or at > LONGEST_LEAD

    def _begin(self, at: int, read: list[StreamEvent]) -> None:
        from acp_agent.models.dialects.driver import FORMS  # noqa: PLC0415 - rarely needed
        from acp_agent.models.dialects.scanner import Scanner  # noqa: PLC0415

        for opener, end in THOUGHTS.items():
            if self._text.startswith(opener, at):
                self._thought_end, self._shown = end, at + len(opener)
                self._think(read)
                return
            if self._text.startswith(end, at):
                self._go_on(self._text[at + len(end) :], read)
                return
        lead = self._text[:at].strip()
        json_alone = _JSON.match(self._text, at)
        if speaks_of_calls(lead) or (lead and json_alone and not ANNOUNCES.search(lead)):
            self._pass_by(at, read)
            return
        self._tries += 1
        if self._tries > _MOST_TRIES:
            self._release(read)
            return
        self._is_harmony = not self._told and self._text.startswith(_HARMONY, at)
        self._scanner = Scanner(tuple(FORMS.values()), self._tools())
        self._scan(self._scanner.feed(self._text[at:]), read)

    def _go_on(self, rest: str, read: list[StreamEvent]) -> None:
        """Continue with the text after reasoning."""
        self._begin_part()
        self._trim = not self._told
        self._take(rest, read)

    def _pass_by(self, at: int, read: list[StreamEvent]) -> None:
        """Continue after a place at which no call begins."""
        self._scanner, self._after, self._calls = None, "", []
        self._looked = at + 1
        while self._text.startswith("`", self._looked):
            self._looked += 1
        self._look(read)

    def _scan(self, events: Sequence[StreamEvent], read: list[StreamEvent]) -> None:
        """Collect the events of calls. They are text after all if unexpected text follows them."""
        for event in events:
            match event:
                case TextDelta(text) if self._is_harmony:
                    self._say(text, read)
                case TextDelta(text):
                    self._after += text
                case ThoughtDelta() if self._is_harmony:
                    read.append(event)
                case CallStarted() | CallDelta() | CallDone() | CallCut():
                    self._calls.append(event)
                case _:
                    self._after += getattr(event, "text", "")
        if self._is_harmony:
            self._text, self._shown = "", 0
            return
        after = self._after.strip()
        if after and not (self._calls and may_follow_calls(after)):
            self._pass_by(self._shown, read)
        elif len(self._text) > LONGEST_CALLS:
            self._release(read)

    def _think(self, read: list[StreamEvent]) -> None:
        """Pass on reasoning in the text, up to its closing tag."""
        end = self._text.find(self._thought_end, self._shown)
        hold = end if end >= 0 else _before_half(self._text, self._thought_end)
        if hold > self._shown:
            thought = self._text[self._shown : hold]
            self._thoughts.append(thought)
            read.append(ThoughtDelta(thought))
        if end >= 0:
            self._go_on(self._text[end + len(self._thought_end) :], read)
        else:
            self._text, self._shown = self._text[hold:], 0

    def _finish(self, finished: Finished) -> Sequence[StreamEvent]:
        read: list[StreamEvent] = []
        is_cut = finished.stop == "max_tokens"
        if self._scanner is not None:
            events = self._scanner.end(cut=is_cut)
            # A call without its end is incomplete, even if its arguments are complete.
            self._scan([_cut(event) for event in events] if is_cut else events, read)
        elif not self._off and not is_cut:
            self._calls = self._python_calls()
        if not self._calls and not self._told and finished.stop == "end_turn":
            self._calls = self._calls_in_thoughts()
        calls = self._calls
        known = bool(calls) and (self._is_harmony or self._are_known(calls))
        if finished.stop == "refusal" or not known:
            self._release(read)
            calls = []
        self._end_text(read)
        called = any(isinstance(event, CallDone) for event in calls)
        if called and finished.stop == "end_turn":
            finished = structs.replace(finished, stop="tool_calls")
        self._reset()
        return [*read, *calls, finished]

    def _are_known(self, calls: Sequence[StreamEvent]) -> bool:
        tools = self._tools()
        return all(
            event.name in tools or (isinstance(event, CallCut) and not event.name)
            for event in calls
            if isinstance(event, CallDone | CallCut)
        )

    def _calls_in_thoughts(self) -> list[StreamEvent]:
        """Return the calls at the end of the reasoning, for an answer without text."""
        text = "".join(self._thoughts)
        if self._is_reasoning or len(text) > LONGEST_CALLS or not MARK.search(text):
            return []
        reader = WrittenCalls(self._tools, is_reasoning=True)
        read = [*reader.read([TextDelta(text)]), *reader.read([Finished(stop="end_turn")])]
        return [e for e in read if isinstance(e, CallStarted | CallDelta | CallDone)]

    def _python_calls(self) -> list[StreamEvent]:
        """Return the calls if the whole answer is Python calls or a `functools[…]` list."""
        if not self._may_be_python or not self._text.strip():
            return []
        from acp_agent.models.dialects.json_calls import read_calls  # noqa: PLC0415 - rarely needed
        from acp_agent.models.dialects.python_calls import read_python_calls  # noqa: PLC0415

        text, tools = self._text.strip(), self._tools()
        if text.startswith("functools["):
            return _events(read_calls(text.removeprefix("functools"), tools, strict=True))
        return _events(read_python_calls(text, tools))


def _events(calls: Iterable[WrittenCall]) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    for index, call in enumerate(calls):
        events += [
            CallStarted(index=index, name=call.name),
            CallDelta(index=index, text=call.arguments),
            CallDone(index=index, name=call.name, arguments=call.arguments),
        ]
    return events


def _cut(event: StreamEvent) -> StreamEvent:
    if not isinstance(event, CallDone):
        return event
    return CallCut(index=event.index, name=event.name, size=len(event.arguments))


def _before_half(text: str, mark: str) -> int:
    """Return where an incomplete mark at the end of a text begins."""
    sizes = (size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size]))
    return len(text) - next(sizes, 0)
