"""Takes calls that a model wrote as text, in place of calling its API's tools, for what they mean.

Only where there is no doubt: a call of a known tool, in a form that models are taught, at the end
of an answer that has no other call and at most a short announcement before it. Every other text
passes as it is. What may be such a call is held back until its end; all other text streams on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
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

if TYPE_CHECKING:  # the forms are imported where a text may be a call
    from acp_agent.models.dialects.form import Tools
    from acp_agent.models.dialects.scanner import Scanner

LONGEST_LEAD = 400  # characters before the first call
LONGEST_CALLS = 512 * 1024  # characters of an answer that are held back
_LONGEST_PYTHON = 4_000

_MARK = re.compile(r"[<\[]|(?:^|\n)[ \t]*(?=[`{])")
_THINK, _THOUGHT = "<think>", "</think>"
# An announcement that speaks of a call, and does not make it.
_QUOTES = re.compile(
    r"\b(?:you (?:can|could|may|might|should|would|need)|could|would|might|example|e\.g\.|format"
    r"|syntax|instead of|looks? like|like this|such as|means|if|not)\b|n't\b|`$"
    r"|例如|比如|可以|格式|如果|不要",
    re.IGNORECASE,
)
# JSON is no markup for calls: the announcement must say that one is made.
_ANNOUNCES = re.compile(
    r"\b(?:I(?:'ll|’ll| will| am going| need| want)|let(?: me|'s|’s)|now|first|next|\w+ing)\b"
    r"|我|现在",
    re.IGNORECASE,
)
_PYTHON = re.compile(
    r"\s*(?:```(?:tool_code|tool_call)\s*\n)?\s*(?:print\()?(?:default_api\.)?(\w+)\("
)
_PYTHON_OPENER = "```tool_code"
_PYTHON_FENCE = re.compile(r"\s*```\w+\s*\n(.*?)\n?```\s*", re.DOTALL)


class WrittenCalls:
    """Reads one answer after the other, each until it has ended or begins again.

    Args:
        tools: makes what says which tools are known; asked where a text may be a call.
    """

    def __init__(self, tools: Callable[[], Tools]) -> None:
        self._tools = tools
        self._reset()

    def read(self, batch: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """Return the events in place of a batch."""
        if self._off and not any(isinstance(item, Retrying | FellBack) for item in batch):
            return batch
        read: list[StreamEvent] = []
        for item in batch:
            match item:
                case TextDelta() if not self._off:
                    self._take(item.text, read)
                    continue
                case CallStarted() | CallDelta() | CallDone() | CallCut() | Failed():
                    self._release(read)
                case SearchStarted() | SearchEnded():
                    self._release(read)
                case Retrying() | FellBack():
                    self._reset()
                case Finished():
                    read.extend(self._finish(item))
                    continue
                case _:
                    pass
            read.append(item)
        return read

    def _reset(self) -> None:
        self._off = self._thinking = False
        self._trim = False  # white space after reasoning is no part of the answer
        self._text = ""  # all of the answer's text, until it can be no call any more
        self._shown = 0  # how much of it was passed on
        self._looked = 0  # how much of it opens no call
        self._scanner: Scanner | None = None  # reads the call
        self._calls: list[StreamEvent] = []

    def _release(self, read: list[StreamEvent]) -> None:
        """Pass on what is held back: no call can follow in this answer."""
        rest = self._text[self._shown :]
        if rest:
            read.append(ThoughtDelta(rest) if self._thinking else TextDelta(rest))
        self._off, self._text, self._scanner, self._calls = True, "", None, []

    def _show(self, end: int, read: list[StreamEvent]) -> None:
        if end > self._shown:
            read.append(TextDelta(self._text[self._shown : end]))
            self._shown = end

    def _take(self, text: str, read: list[StreamEvent]) -> None:
        text = text.lstrip() if self._trim and not self._text else text
        self._text += text
        if self._thinking:
            self._think(read)
        elif self._scanner is not None:
            self._scan(self._scanner.feed(text), read)
        else:
            self._look(read)

    def _look(self, read: list[StreamEvent]) -> None:
        """Look for what may open a call, and pass on the text before it."""
        if self._may_be_python():
            if len(self._text) > _LONGEST_PYTHON:
                self._release(read)
            return
        for found in _MARK.finditer(self._text, self._looked):
            at = found.end() if found[0] not in {"<", "["} else found.start()
            opened = self._opens(at)
            if opened is None:
                self._looked = found.end()
                continue
            self._show(at, read)
            if opened and self._text.startswith(_THINK, at):
                self._thinking, self._shown = True, at + len(_THINK)
                self._think(read)
            elif opened:
                self._begin(at, read)
            return
        self._show(len(self._text), read)
        line = self._text.rfind("\n") + 1  # white space at its beginning is looked at again
        self._looked = max(self._looked, line - 1 if not self._text[line:].strip() else 0)
        if len(self._text) > LONGEST_LEAD:
            self._release(read)

    def _opens(self, at: int) -> bool | None:
        """Whether a call may open at a place; False: with more text it may. None: it does not."""
        from acp_agent.models.dialects.driver import FORMS  # noqa: PLC0415 - rarely needed
        from acp_agent.models.dialects.form import More, begins  # noqa: PLC0415

        if self._text[at : at + 1] == "{":
            return True
        line = self._text.rfind("\n", 0, at) + 1
        if self._text[at : at + 1] == "[" and not self._text[line:at].strip():
            follows = self._text[at + 1 :].lstrip()[:1]
            if follows in {"", "{"}:
                return bool(follows)
        marks = [mark for form in FORMS.values() for mark in form.openers]
        if not self._text[:at].strip():
            marks.append(_THINK)
        if self._text.startswith("`", at - 1) and at:
            return None  # the tag is quoted
        found = begins(self._text, at, marks, final=False)
        return False if isinstance(found, More) else None if found is None else True

    def _begin(self, at: int, read: list[StreamEvent]) -> None:
        from acp_agent.models.dialects.driver import FORMS  # noqa: PLC0415 - rarely needed
        from acp_agent.models.dialects.scanner import Scanner  # noqa: PLC0415

        lead = self._text[:at].strip()
        json_alone = self._text[at] in "{[`"
        quoted = len(lead) > LONGEST_LEAD or _QUOTES.search(lead)
        if quoted or (lead and json_alone and not _ANNOUNCES.search(lead)):
            self._release(read)
            return
        self._scanner = Scanner(tuple(FORMS.values()), self._tools())
        self._scan(self._scanner.feed(self._text[at:]), read)

    def _scan(self, events: Sequence[StreamEvent], read: list[StreamEvent]) -> None:
        """Keep the events of calls; anything else shows that the text is none."""
        for event in events:
            match event:
                case TextDelta(text) if text.isspace():
                    pass
                case CallStarted() | CallDelta() | CallDone() | CallCut():
                    self._calls.append(event)
                case _:
                    self._release(read)
                    return
        if len(self._text) > LONGEST_CALLS:
            self._release(read)

    def _think(self, read: list[StreamEvent]) -> None:
        """Pass on reasoning that stands in the text, up to its end."""
        end = self._text.find(_THOUGHT, self._shown)
        hold = end if end >= 0 else _before_half(self._text, _THOUGHT)
        if hold > self._shown:
            read.append(ThoughtDelta(self._text[self._shown : hold]))
            self._shown = hold
        if end >= 0:
            rest = self._text[end + len(_THOUGHT) :]
            self._reset()
            self._trim = True
            self._take(rest, read)

    def _finish(self, finished: Finished) -> Sequence[StreamEvent]:
        read: list[StreamEvent] = []
        if self._scanner is not None:
            is_cut = finished.stop == "max_tokens"
            events = self._scanner.end(cut=is_cut)
            # Without its end a call is not whole, even if its arguments are.
            self._scan([_cut(event) for event in events] if is_cut else events, read)
        elif not self._off and finished.stop != "max_tokens":
            self._calls = self._python_call()
        calls = self._calls
        known = finished.stop != "refusal" and self._are_known(calls)
        if not known:
            self._release(read)
            calls = []
        called = any(isinstance(event, CallDone) for event in calls)
        if called and finished.stop == "end_turn":
            finished = structs.replace(finished, stop="tool_calls")
        self._reset()
        return [*read, *calls, finished]

    def _are_known(self, calls: Sequence[StreamEvent]) -> bool:
        if not calls:
            return False
        tools = self._tools()
        return all(
            event.name in tools or (isinstance(event, CallCut) and not event.name)
            for event in calls
            if isinstance(event, CallDone | CallCut)
        )

    def _may_be_python(self) -> bool:
        text = self._text.lstrip()
        if self._shown or len(text) > _LONGEST_PYTHON + 1:
            return False
        if (
            _PYTHON_OPENER.startswith(text)
            or text.startswith(_PYTHON_OPENER)
            or "print(default_api.".startswith(text)
        ):
            return True
        if text.isidentifier():
            return any(tool.name.startswith(text) for tool in self._tools())
        return bool(self._python_name())

    def _python_name(self) -> str:
        found = _PYTHON.match(self._text) if not self._shown else None
        return found[1] if found and found[1] in self._tools() else ""

    def _python_call(self) -> list[StreamEvent]:
        """The whole answer as one call in Python, all of whose arguments are named literals."""
        name = self._python_name()
        if not name:
            return []
        fenced = _PYTHON_FENCE.fullmatch(self._text)
        try:
            written = ast.parse((fenced[1] if fenced else self._text).strip(), mode="eval").body
            if isinstance(written, ast.Call) and _called(written) == "print" and written.args:
                written = written.args[0]
            if not isinstance(written, ast.Call) or written.args or _called(written) != name:
                return []
            given = {word.arg: ast.literal_eval(word.value) for word in written.keywords}
            if None in given:
                return []
            arguments = msgspec.json.encode(given).decode()
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return []
        return [
            CallStarted(index=0, name=name),
            CallDelta(index=0, text=arguments),
            CallDone(index=0, name=name, arguments=arguments),
        ]


def _cut(event: StreamEvent) -> StreamEvent:
    if not isinstance(event, CallDone):
        return event
    return CallCut(index=event.index, name=event.name, size=len(event.arguments))


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _before_half(text: str, mark: str) -> int:
    """Where the beginning of a mark begins with which a text may end."""
    sizes = (size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size]))
    return len(text) - next(sizes, 0)
