"""Mistral: a control token, then a list of calls, or a name and its arguments.

Mistral 7B v0.3 and Nemo write the list; Mistral Small 3.2, Magistral and Devstral name and
arguments, one token a call (the tokenizers v3 and v11 of mistral-common). Magistral's reasoning
stands between tokens of its own (v13).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    NO_END,
    SURE,
    Block,
    Verdict,
    WrittenCall,
    after_space,
    broken,
)
from acp_agent.models.dialects.json_calls import read_arguments, read_calls
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.tools import Tools

_OPEN = "[TOOL_CALLS]"
_THINK, _THOUGHT = "[THINK]", "[/THINK]"
_NAMED = re.compile(r"\s*([\w.:/-]{1,128})\s*(?:\[CALL_ID\]\s*\w{1,64}\s*)?(?:\[ARGS\]\s*)?(?=\{)")
_MAY_BE_NAMED = re.compile(r"\s*[\w.:/-]{0,128}\s*(?:\[[A-Z_]{0,7}(?:\][\s\w]{0,66})?){0,2}\s*")
_BAD = 'Calls are written [TOOL_CALLS][{"name": …, "arguments": {…}}]. It was not run.'


class Mistral:
    """`[TOOL_CALLS][{"name": …, "arguments": {…}}]` or `[TOOL_CALLS]name[ARGS]{…}`."""

    openers = (_OPEN, _THINK)
    bare = ""
    ends = ("}", "]")
    strays = ("[/TOOL_CALLS]", _THOUGHT)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        if text.startswith(_THINK):
            return Block(len(_THINK), (), (_THOUGHT,))
        at = after_space(text, len(_OPEN))
        named = None if text[at : at + 1] in {"[", "{"} else _NAMED.match(text, at)
        if named is None and text[at : at + 1] not in {"[", "{"}:
            if not final and _MAY_BE_NAMED.fullmatch(text, at):
                return SURE
            end = len(text) if (line := text.find("\n", at)) < 0 else line
            if end == len(text) and not final:
                return SURE
            problem = NO_END if end == len(text) else _BAD
            return Block(end, (broken(problem, text[at:end], tools),))
        start = at if named is None else named.end()
        end_found = json_text.value_end(text, start)
        if end_found is None:
            if not final:
                return SURE
            lost = broken(NO_END, text[at:], tools)
            if named is not None and named[1] in tools:
                lost = WrittenCall(name=named[1], arguments=lost.arguments, problem=lost.problem)
            return Block(len(text), (lost,))
        written = text[start:end_found]
        if named is not None:
            return Block(end_found, (read_arguments(named[1], written),))
        return Block(end_found, tuple(read_calls(written, tools)))

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        listed = described_json(tools).replace("\n", ", ")
        return (
            f"[AVAILABLE_TOOLS][{listed}][/AVAILABLE_TOOLS]\n"
            'To call tools, answer with [TOOL_CALLS][{"name": NAME, "arguments": {…}}, …] and '
            "nothing after it."
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        inner = ", ".join(
            f'{{"name": {json_text.encode(name)}, "arguments": {arguments}}}'
            for _, name, arguments in calls
        )
        return f"{_OPEN}[{inner}]"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "".join(
            f'[TOOL_RESULTS]{{"content": {json_text.encode(text)}}}[/TOOL_RESULTS]'
            for _, _, text in results
        )
