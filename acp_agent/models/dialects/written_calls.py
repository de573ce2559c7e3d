"""Recognise calls that a model wrote as text instead of using the tools of its API.

A text counts as a call only if there is no doubt: it calls known tools in a form that models are
trained on, it is at the end of an answer without other calls, it is not in code, and the words
before it do not only mention a call. Text that may be such a call is held back until its end. All
other text is streamed unchanged, except that reasoning between tags becomes reasoning, and control
tokens at the end of an answer are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
from acp_agent.models.dialects import whole_answers
from acp_agent.models.dialects.call_events import are_known, convert_calls, cut_off
from acp_agent.models.dialects.call_marks import (
    ANNOUNCES,
    END_TOKENS,
    MARK,
    MAX_LEAD_LENGTH,
    SPECIAL,
    THOUGHTS,
    find_end_tokens,
    half_mark,
    may_follow_calls,
    only_mentions_calls,
    opener_patterns,
)
from acp_agent.models.dialects.code_spans import CodeSpans
from acp_agent.models.dialects.form import MAX_TAG_LENGTH

if TYPE_CHECKING:  # the forms are imported only if a text may be a call
    from acp_agent.models.dialects.form import Tools
    from acp_agent.models.dialects.scanner import Scanner

MAX_CALLS_LENGTH = 512 * 1024  # the most characters of an answer that are held back
_MAX_TRIES = 100  # places of one answer at which a call may begin
_MAX_PIECE_LENGTH = 1024  # characters that are read at a time, so that a failed try costs little
_BATCH = 64  # characters of a held text that are collected before they are read

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
        output: list[StreamEvent] = []
        text_pieces: list[str] = []
        for event in batch:
            if isinstance(event, TextDelta):
                text_pieces.append(event.text)
                continue
            self._add_pieces("".join(text_pieces), output)
            text_pieces.clear()
            match event:
                case ThoughtDelta():
                    self._thoughts.append(event.text)
                case CallStarted() | CallDelta() | CallDone() | CallCut() | Failed():
                    self._release(output)
                    self._end_text(output)
                case SearchStarted() | SearchEnded():
                    self._release(output)
                    self._end_text(output)
                case Retrying() | FellBack():
                    self._reset()
                case Finished():
                    output.extend(self._finish(event))
                    continue
            output.append(event)
        self._add_pieces("".join(text_pieces), output)
        return output

    def _reset(self) -> None:
        self._thoughts: list[str] = []
        self._has_text = False  # text other than white space was passed on
        self._tail = ""  # the end of the text, which may be a control token
        self._disabled = False
        self._edits = whole_answers.EditAnswer()
        self._tries = 0
        self._begin_part()

    def _begin_part(self) -> None:
        """Start an answer, or the part of it after reasoning."""
        self._code = CodeSpans()  # of the text that was passed on
        self._text = ""  # the end of the text, including the words before a possible call
        self._is_long = False  # there is more text before `_text`
        self._emitted = 0  # characters of `_text` that were passed on
        self._searched = 0  # characters of `_text` in which no call begins
        self._marked = 0  # characters of `_text` that `_code` has read
        self._pending: list[str] = []  # the end of a held text, which was not read yet
        self._pending_size = 0
        self._may_be_calls = True
        self._thought_end = ""  # the closing tag if the text is reasoning
        self._trim = False  # remove white space after reasoning
        self._scanner: Scanner | None = None  # reads the call
        self._is_harmony = False
        self._text_after_calls = ""  # the text after the calls
        self._calls: list[StreamEvent] = []

    def _emit_text(self, text: str, output: list[StreamEvent]) -> None:
        """Pass on text, except for an end that may be a control token."""
        if self._tail:
            text, self._tail = self._tail + text, ""
        if "<" in text:
            end = find_end_tokens(text)
            text, self._tail = text[:end], text[end:]
        if not text:
            return
        self._has_text = self._has_text or not text.isspace()
        last = output[-1] if output else None
        if isinstance(last, TextDelta):
            output[-1] = TextDelta(last.text + text)
        else:
            output.append(TextDelta(text))

    def _end_text(self, output: list[StreamEvent]) -> None:
        """Pass on the end of the text, unless it is a control token."""
        if self._tail and not self._tail.rstrip().endswith(END_TOKENS):
            output.append(TextDelta(self._tail))
        self._tail = ""

    def _release(self, output: list[StreamEvent]) -> None:
        """Pass on the text that is held back, and stop looking for calls in this answer."""
        pending_text = self._text[self._emitted :] + "".join(self._pending)
        if pending_text and self._thought_end:
            output.append(ThoughtDelta(pending_text))
        elif pending_text:
            self._emit_text(pending_text, output)
        self._begin_part()
        self._disabled = True

    def _emit_up_to(self, end: int, output: list[StreamEvent]) -> None:
        if end > self._emitted:
            self._mark(end)
            self._emit_text(self._text[self._emitted : end], output)
            self._emitted = end

    def _mark(self, end: int) -> None:
        """Advance `_code` to a place."""
        if end > self._marked:
            self._code.advance(self._text[self._marked : end])
            self._marked = end

    def _add_pieces(self, text: str, output: list[StreamEvent]) -> None:
        self._edits.add(text)
        for at in range(0, len(text), _MAX_PIECE_LENGTH):
            self._add_text(text[at : at + _MAX_PIECE_LENGTH], output)

    def _add_text(self, text: str, output: list[StreamEvent]) -> None:
        if self._disabled:
            self._emit_text(text, output)
            return
        if self._trim and not self._text:
            text = text.lstrip()
        if not SPECIAL.search(text) and not self._holds_text:  # a fast path for most text
            self._text += text
            self._emit_up_to(len(self._text), output)
            self._drop_old_text()
            return
        is_whole = self._may_be_calls and len(self._text) > whole_answers.LONGEST_HEAD
        if is_whole or (self._scanner is not None and not self._is_harmony):
            # The text is not shown before its end. Reading it in pieces that grow with it keeps the
            # time linear, however small the pieces of the stream are.
            self._pending.append(text)
            self._pending_size += len(text)
            if self._pending_size >= max(_BATCH, len(self._text) >> 6):
                self._read_pending(output)
            return
        self._read_piece(text, output)

    def _read_pending(self, output: list[StreamEvent]) -> None:
        text = "".join(self._pending)
        self._pending.clear()
        self._pending_size = 0
        if text:
            self._read_piece(text, output)

    def _read_piece(self, text: str, output: list[StreamEvent]) -> None:
        self._text += text
        if self._thought_end:
            self._think(output)
        elif self._scanner is not None:
            self._scan(self._scanner.feed(text), output)
        else:
            self._find_call(output)

    @property
    def _holds_text(self) -> bool:
        """Return whether text is held back, or may be Python, reasoning or a call."""
        is_withheld = self._emitted < len(self._text) or self._may_be_calls
        return is_withheld or bool(self._thought_end) or self._scanner is not None

    def _drop_old_text(self) -> None:
        """Remove text that is too far before a possible call."""
        line = self._text.rfind("\n") + 1  # white space at its beginning is searched again
        at_line_start = not self._text[line:].strip()
        self._searched = max(self._searched, line - 1 if at_line_start else len(self._text))
        self._shorten_text()

    def _shorten_text(self) -> None:
        """Keep the words before a possible call, so that a piece costs no more in a long answer."""
        dropped = min(len(self._text) - MAX_LEAD_LENGTH, self._emitted)
        if len(self._text) > 4 * MAX_LEAD_LENGTH and dropped:
            self._text, self._is_long = self._text[dropped:], True
            self._emitted -= dropped
            self._searched = max(0, self._searched - dropped)
            self._marked -= dropped

    def _find_call(self, output: list[StreamEvent]) -> None:
        """Look for the opener of a call, and pass on the text before it."""
        if self._may_be_calls and whole_answers.may_be_calls(self._text, self._tools):
            return
        self._may_be_calls = False
        for match in MARK.finditer(self._text, self._searched):
            at = match.end() if match[0] not in {"<", "[", "]", "◁"} else match.start()
            if at < self._emitted:
                continue
            self._mark(at)
            opened = None if self._code.inside else self._opens(at)
            if opened is None:
                self._searched = max(match.end(), at + 1)
                continue
            self._emit_up_to(at, output)
            self._searched = match.start()
            if opened:
                self._start_call(at, output)
            else:
                self._shorten_text()
            return
        self._emit_up_to(len(self._text), output)
        self._drop_old_text()

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
        mark, prefixes = opener_patterns(begins_line, not self._lead_is_long(at))
        if mark.match(self._text, at):
            return True
        following = self._text[at : at + MAX_TAG_LENGTH]
        return False if following in prefixes else None

    def _lead_is_long(self, at: int) -> bool:
        return self._is_long or at > MAX_LEAD_LENGTH

    def _start_call(self, at: int, output: list[StreamEvent]) -> None:
        from acp_agent.models.dialects.driver import READERS  # noqa: PLC0415 - rarely needed
        from acp_agent.models.dialects.scanner import Scanner  # noqa: PLC0415

        for opener, end in THOUGHTS.items():
            if self._text.startswith(opener, at):
                self._thought_end, self._emitted = end, at + len(opener)
                self._think(output)
                return
            if self._text.startswith(end, at):
                self._continue_after_thought(self._text[at + len(end) :], output)
                return
        lead = self._text[:at].strip()
        starts_json = _JSON.match(self._text, at)
        if only_mentions_calls(lead) or (lead and starts_json and not ANNOUNCES.search(lead)):
            self._skip_position(at, output)
            return
        self._tries += 1
        if self._tries > _MAX_TRIES:
            self._release(output)
            return
        self._is_harmony = not self._has_text and self._text.startswith(_HARMONY, at)
        self._scanner = Scanner(READERS, self._tools())
        self._scan(self._scanner.feed(self._text[at:]), output)

    def _continue_after_thought(self, text: str, output: list[StreamEvent]) -> None:
        """Continue with the text after reasoning."""
        self._begin_part()
        self._trim = not self._has_text
        self._add_text(text, output)

    def _skip_position(self, at: int, output: list[StreamEvent]) -> None:
        """Continue after a place at which no call begins."""
        self._scanner, self._text_after_calls, self._calls = None, "", []
        self._searched = at + 1
        while self._text.startswith("`", self._searched):
            self._searched += 1
        self._find_call(output)

    def _scan(self, events: Sequence[StreamEvent], output: list[StreamEvent]) -> None:
        """Collect the events of calls. They are text after all if unexpected text follows them."""
        for event in events:
            match event:
                case TextDelta(text) if self._is_harmony:
                    self._emit_text(text, output)
                case TextDelta(text):
                    self._text_after_calls += text
                case ThoughtDelta() if self._is_harmony:
                    output.append(event)
                case CallStarted() | CallDelta() | CallDone() | CallCut():
                    self._calls.append(event)
                case _:
                    self._text_after_calls += getattr(event, "text", "")
        if self._is_harmony:
            self._text, self._emitted = "", 0
            return
        after = self._text_after_calls.strip()
        if after and not (self._calls and may_follow_calls(after)):
            self._skip_position(self._emitted, output)
        elif len(self._text) > MAX_CALLS_LENGTH:
            self._release(output)

    def _think(self, output: list[StreamEvent]) -> None:
        """Pass on reasoning in the text, up to its closing tag."""
        end = self._text.find(self._thought_end, self._emitted)
        hold = end if end >= 0 else half_mark(self._text, self._thought_end)
        if hold > self._emitted:
            thought = self._text[self._emitted : hold]
            self._thoughts.append(thought)
            output.append(ThoughtDelta(thought))
        if end >= 0:
            self._continue_after_thought(self._text[end + len(self._thought_end) :], output)
        else:
            self._text, self._emitted = self._text[hold:], 0

    def _finish(self, finished: Finished) -> Sequence[StreamEvent]:
        output: list[StreamEvent] = []
        self._read_pending(output)
        is_cut = finished.stop == "max_tokens"
        if self._scanner is not None:
            events = self._scanner.end(cut=is_cut)
            # A call without its end is incomplete, even if its arguments are complete.
            self._scan([cut_off(event) for event in events] if is_cut else events, output)
        elif not self._disabled and not is_cut:
            self._calls = self._whole_calls(output)
        if not self._calls and not self._has_text and finished.stop == "end_turn":
            self._calls = self._calls_in_thoughts()
        calls = self._calls
        all_known = bool(calls) and (self._is_harmony or are_known(calls, self._tools()))
        if finished.stop == "refusal" or not all_known:
            self._release(output)
            calls = []
        self._end_text(output)
        if finished.stop == "end_turn" and any(isinstance(event, CallDone) for event in calls):
            finished = structs.replace(finished, stop="tool_calls")
        self._reset()
        return [*output, *calls, finished]

    def _calls_in_thoughts(self) -> list[StreamEvent]:
        """Return the calls at the end of the reasoning, for an answer without text."""
        text = "".join(self._thoughts)
        if self._is_reasoning or len(text) > MAX_CALLS_LENGTH or not MARK.search(text):
            return []
        reader = WrittenCalls(self._tools, is_reasoning=True)
        output = [*reader.read([TextDelta(text)]), *reader.read([Finished(stop="end_turn")])]
        return [e for e in output if isinstance(e, CallStarted | CallDelta | CallDone)]

    def _whole_calls(self, output: list[StreamEvent]) -> list[StreamEvent]:
        """Return the calls if the whole answer consists of calls without tags, or of edits."""
        if self._may_be_calls and self._text.strip():
            end = find_end_tokens(self._text)
            return convert_calls(whole_answers.read_whole(self._text[:end], self._tools()))
        self._emit_up_to(len(self._text), output)
        return convert_calls(edits) if (edits := self._edits.calls(self._tools)) else []
