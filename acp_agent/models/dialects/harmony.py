"""Harmony, the form of gpt-oss: messages with a header. A message to a tool is a call.

https://cookbook.openai.com/articles/openai-harmony. A header names a channel: `analysis` is
reasoning, `commentary` and `final` are for the user. A message `to=functions.NAME` is a call, and
its text is the arguments. It ends with a stop token, which most servers do not pass on.
"""

from __future__ import annotations

import re

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    MAX_TAG_LENGTH,
    MORE,
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
from acp_agent.models.dialects.json_calls import read_arguments

_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_CONSTRAIN, _CALL = "<|constrain|>", "<|call|>"
_ENDS = (_CALL, "<|end|>", "<|return|>")
_IN_HEADER = (_MESSAGE, _CHANNEL, _CONSTRAIN)
_NEXT = (_START, _CHANNEL)  # the next message, if the end of the previous one is missing
_ANY_END = re.compile("|".join(map(re.escape, (*_ENDS, *_NEXT))))
_TO = re.compile(r"\bto=(?:functions\.)?([\w.:/-]{1,128})")
_WORDS = ("assistant", "analysis", "commentary", "final", "json", "code")
_RECIPIENT = "to="
_BAD = "The arguments of the call are not valid JSON. Write it again."


class Harmony:
    """`<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`."""

    openers = _NEXT
    bare = ""
    ends = (*_ENDS, *_NEXT)
    strays = (*_ENDS, _MESSAGE, _CONSTRAIN)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        try:
            header, at, is_whole = _header(text, final=final)
        except CutError:
            return MORE
        if not is_whole:
            return Block(at, () if _is_header(header, ended=at == len(text)) else (header,))
        recipient = _TO.search(header)
        if recipient is not None:
            try:
                call, end = _call(recipient[1], text, at, tools, final=final)
            except CutError:
                return SURE
            return Block(end, (call,))
        return Block(at, (), (*_ENDS, *_NEXT) if "analysis" in header else ())


def _is_header(words: str, *, ended: bool) -> bool:
    """Return whether words form a header; if the text `ended`, the last one may be cut off."""
    *complete_words, last = words.split() or [""]
    if any(word not in _WORDS and not word.startswith(_RECIPIENT) for word in complete_words):
        return False
    if last in {"", *_WORDS} or last.startswith(_RECIPIENT):
        return True
    return ended and any(word.startswith(last) for word in (*_WORDS, _RECIPIENT))


def _header(text: str, *, final: bool) -> tuple[str, int, bool]:
    """Return a message's header without its tokens, its end, and whether it is complete.

    Raises:
        CutError: the end of the header is missing.
    """
    opener = _START if text.startswith(_START) else _CHANNEL
    at, words = len(opener), ""
    while True:
        token = text.find("<", at, MAX_TAG_LENGTH)
        if token < 0:
            if len(text) < MAX_TAG_LENGTH and not final:
                raise CutError
            return words + text[at:MAX_TAG_LENGTH], min(len(text), MAX_TAG_LENGTH), False
        words += text[at:token]
        mark = expect_mark(text, token, _IN_HEADER, final=final)
        if mark is None:
            return words, token, False
        at = token + len(mark)
        if mark == _MESSAGE:
            return words, at, True
        words += " "


def _call(
    name: str, text: str, start: int, tools: Tools, *, final: bool
) -> tuple[WrittenCall, int]:
    """Return the call whose arguments begin at `start`, and its end. Raises CutError."""
    json_start = skip_space(text, start)
    end = json_start
    if text[json_start : json_start + 1] == "{":
        json_end = json_text.value_end(text, json_start)
        if json_end is None and not final:
            raise CutError
        end = json_start if json_end is None else json_end
    follows = skip_space(text, end)
    mark = expect_mark(text, follows, (*_ENDS, *_NEXT), final=final)
    if mark is not None and (end > json_start or follows == json_start):
        return read_arguments(name, text[json_start:end]), follows + len(mark) * (mark in _ENDS)
    if final and follows == len(text) and end > json_start:
        return read_arguments(name, text[json_start:end]), follows
    stop = _ANY_END.search(text, follows)
    if stop is None and not final:
        raise CutError
    close = len(text) if stop is None else stop.start()
    call = broken_call(NO_END if stop is None else _BAD, text[json_start:close], tools)
    call = WrittenCall(name=name, arguments=call.arguments, problem=call.problem)
    return call, stop.end() if stop is not None and stop[0] in _ENDS else close
