"""The forms of FunctionGemma and Gemma 4: a name, and arguments in a notation similar to JSON.

Keys have no quotation marks, and a text is between two marks of which the second is the same as the
first, so nothing in a text is escaped.
"""

from __future__ import annotations

import re

from msgspec import Struct

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    NO_END,
    SURE,
    Block,
    CutError,
    Tools,
    Verdict,
    WrittenCall,
    broken_call,
    expect_mark,
    skip_space,
)

_BAD = "The arguments of the call cannot be read: it was not run. Write it again."
_NAME = re.compile(r"\s*(?:call:)?\s*([\w.:/-]{1,128})\s*(?=\{)")
_NAME_PART = re.compile(r"\s*[\w.:/-]{0,133}\s*")
_KEY = re.compile(r"\s*([^\s:{}\[\],<>]{1,128})\s*:\s*")
_KEY_PART = re.compile(r"[^\s:{}\[\],<>]{0,128}\s*")
_BARE = re.compile(r"[^,{}\[\]<]*")
_DEPTH = 32


class _Marks(Struct, frozen=True):
    """The tokens around a call, and the mark at both ends of a text."""

    open: str
    close: str
    text: str


_FORMS = (
    _Marks("<start_function_call>", "<end_function_call>", "<escape>"),
    _Marks("<|tool_call>", "<tool_call|>", '<|"|>'),
)
_WRAPPER = _FORMS[0]


class _UnreadableError(Exception):
    """The arguments are in another notation."""


class Gemma:
    """`<start_function_call>call:name{key:<escape>text<escape>}<end_function_call>`."""

    openers = tuple(marks.open for marks in _FORMS)
    bare = ""
    ends = tuple(marks.close for marks in _FORMS)
    strays = (*ends, *(marks.text for marks in _FORMS), "<start_function_response>")
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        marks = next(marks for marks in _FORMS if text.startswith(marks.open))
        match = _NAME.match(text, len(marks.open))
        if match is None:
            if _NAME_PART.fullmatch(text, len(marks.open)) and not final:
                return SURE
            return Block(len(marks.open), ())
        try:
            arguments, at = _object(text, match.end(), marks.text, _DEPTH)
            at = skip_space(text, at)
            if expect_mark(text, at, (marks.close,), final=final):
                at += len(marks.close)
            return Block(at, (WrittenCall(name=match[1], arguments=json_text.encode(arguments)),))
        except CutError:
            if not final:
                return SURE
            end, problem = len(text), NO_END
        except _UnreadableError:
            end, problem = text.find(marks.close, match.end()), _BAD
            if end < 0:
                if not final:
                    return SURE
                end = len(text)
        content = text[len(marks.open) : end]
        call = broken_call(problem, content, tools)
        if match[1] in tools:
            call = WrittenCall(name=match[1], arguments=call.arguments, problem=problem)
        return Block(min(len(text), end + len(marks.close)), (call,))


def _object(text: str, at: int, mark: str, depth: int) -> tuple[dict[str, object], int]:
    """Return the object whose brace is at a position, and its end.

    Raises:
        CutError: the object has no end.
        _UnreadableError: the text is not an object.
    """
    members: dict[str, object] = {}
    at = _next(text, at + 1)
    while text[at] != "}":
        if text.startswith(mark, at):
            end = _text_end(text, at + len(mark), mark)
            key, at = text[at + len(mark) : end], skip_space(text, end + len(mark))
            at = _next(text, at + 1)
        else:
            match = _KEY.match(text, at)
            if match is None:
                raise CutError if _KEY_PART.fullmatch(text, at) else _UnreadableError
            key, at = match[1].strip("\"'"), match.end()
        members[key], at = _value(text, at, mark, depth)
        at = _next(text, at)
        if text[at] == ",":
            at = _next(text, at + 1)
        elif text[at] != "}":
            raise _UnreadableError
    return members, at + 1


def _value(text: str, at: int, mark: str, depth: int) -> tuple[object, int]:
    """Return the value at a position, and its end; see `_object`."""
    if depth == 0:
        raise _UnreadableError
    at = _next(text, at)
    if text.startswith(mark, at):
        end = _text_end(text, at + len(mark), mark)
        return text[at + len(mark) : end], end + len(mark)
    if mark.startswith(text[at:]):
        raise CutError
    if text[at] == "{":
        return _object(text, at, mark, depth - 1)
    if text[at] == "[":
        values: list[object] = []
        at = _next(text, at + 1)
        while text[at] != "]":
            value, at = _value(text, at, mark, depth - 1)
            values.append(value)
            at = _next(text, at)
            if text[at] == ",":
                at = _next(text, at + 1)
            elif text[at] != "]":
                raise _UnreadableError
        return values, at + 1
    bare = _BARE.match(text, at)
    if bare is None or not bare[0] or bare.end() == len(text):
        raise CutError if at + 1 >= len(text) or bare else _UnreadableError
    value = json_text.decode(bare[0].strip())
    return bare[0].strip() if value is json_text.NOTHING else value, bare.end()


def _text_end(text: str, at: int, mark: str) -> int:
    """Return where a text ends: at a mark that is followed by what may follow a value.

    Raises:
        CutError: the text has no end.
    """
    end = text.find(mark, at)
    while end >= 0:
        follows = skip_space(text, end + len(mark))
        if follows == len(text):
            raise CutError
        if text[follows] in ",}]:":
            return end
        end = text.find(mark, end + 1)
    raise CutError


def _next(text: str, at: int) -> int:
    """Return the position of the next character that is not white space. Raises CutError."""
    at = skip_space(text, at)
    if at >= len(text):
        raise CutError
    return at
