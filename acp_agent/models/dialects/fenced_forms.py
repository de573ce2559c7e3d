"""Forms with calls in a code block, or on lines that begin with a word."""

from __future__ import annotations

import re

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    MORE,
    NO_END,
    SURE,
    Block,
    More,
    Tools,
    Verdict,
    broken_call,
    skip_space,
)
from acp_agent.models.dialects.json_calls import names_tool, read_arguments, read_calls
from acp_agent.models.dialects.python_calls import read_python_calls

# JSON in a code block: models do this if tools are only described in the prompt. Gemma 3 writes
# Python in a block of its own kind.
#
# A block is a call if it contains only calls of known tools. Every other block is text.

_FENCE = "```"
_OPENING = re.compile(r"```(?:json|tool|tool_call|tool_code)?[ \t]*\n\s*(?=[{\[])")
_PYTHON_OPENING = re.compile(r"```tool_code[ \t]*\n(?=\s*[\w\[])")
_PARTIAL_OPENING = re.compile(r"```[a-z_]{0,9}[ \t]{0,9}(?:\n\s*)?")


class Fenced:
    """A code block that begins with three backticks and `json`, and contains a call as JSON."""

    openers: tuple[str, ...] = (_FENCE,)
    bare = ""
    ends: tuple[str, ...] = (_FENCE,)
    strays: tuple[str, ...] = ()
    control = False
    line_start = True

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        opening = _OPENING.match(text)
        if python := _PYTHON_OPENING.match(text):
            return _read_python(text, python.end(), tools, final=final)
        if opening is None:
            return MORE if not final and _PARTIAL_OPENING.fullmatch(text) else None
        at = opening.end()
        is_call = names_tool(text, at, tools, final=final)
        if is_call is not True:
            return is_call if isinstance(is_call, More) else None
        end = json_text.value_end(text, at)
        if end is None:
            return Block(len(text), (broken_call(NO_END, text[at:], tools),)) if final else SURE
        calls = read_calls(text[at:end], tools, strict=True)
        if not calls:
            return None
        close = skip_space(text, end)
        after_call = text[close : close + len(_FENCE)]
        if after_call == _FENCE:
            return Block(close + len(_FENCE), tuple(calls))
        if _FENCE.startswith(after_call):
            return Block(len(text), tuple(calls)) if final else SURE
        return None


def _read_python(text: str, start: int, tools: Tools, *, final: bool) -> Verdict:
    """Return the verdict on a block of Python; a string of it may have a fence too."""
    for close in re.finditer(rf"\n[ \t]*{_FENCE}|\Z" if final else rf"\n[ \t]*{_FENCE}", text):
        if calls := read_python_calls(text[start : close.start()], tools):
            return Block(close.end(), tuple(calls))
    return None if final else MORE


# Command R: a code block after a word. Other models that reason and act in turns write a name and
# its arguments on two lines.

_ACTION = "Action:"
_ACTION_NAME = re.compile(r"[ \t]*([\w.:/-]{1,128})[ \t]*\n\s*Action Input:\s*(?=\{)")
_ACTION_PART = re.compile(r"[ \t]*[\w.:/-]{0,128}[ \t]*(?:\n\s*[A-Za-z :]{0,13}\s*)?")


class Action(Fenced):
    """`Action:` and a code block with calls, or `Action: name` and `Action Input: {…}`."""

    openers = (_ACTION,)
    ends = (_FENCE, "}")

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        at = skip_space(text, len(_ACTION))
        if text.startswith(_FENCE, at):
            verdict = super().read(text[at:], tools, final=final)
            return (
                Block(at + verdict.end, verdict.content) if isinstance(verdict, Block) else verdict
            )
        match = _ACTION_NAME.match(text, len(_ACTION))
        if match is None:
            may_continue = _ACTION_PART.fullmatch(text, len(_ACTION)) or _FENCE.startswith(
                text[at:]
            )
            return MORE if may_continue and not final else None
        if match[1] not in tools:
            return None
        end = json_text.value_end(text, match.end())
        if end is None:
            return SURE if not final else Block(len(text), (broken_call(NO_END, text, tools),))
        return Block(end, (read_arguments(match[1], text[match.end() : end]),))
