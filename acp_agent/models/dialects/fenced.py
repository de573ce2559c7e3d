"""JSON in a code block: what models do that were told of tools in words only.

A block is a call where it is one of a known tool, and nothing else; every other block is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    MORE,
    NO_END,
    SURE,
    Block,
    More,
    Verdict,
    after_space,
    broken,
)
from acp_agent.models.dialects.json_calls import names_tool, read_calls
from acp_agent.models.dialects.signatures import described_functions
from acp_agent.models.dialects.tools import Tools

_FENCE = "```"
_OPENED = re.compile(r"```(?:json|tool|tool_call|tool_code)?[ \t]*\n\s*(?=[{\[])")
_MAY_OPEN = re.compile(r"```[a-z_]{0,9}[ \t]{0,9}(?:\n\s*)?")


class Fenced:
    """A block that opens with three grave accents and `json`, and holds a call as JSON."""

    openers = (_FENCE,)
    bare = ""
    ends = (_FENCE,)
    strays: tuple[str, ...] = ()
    control = False
    line_start = True

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        opened = _OPENED.match(text)
        if opened is None:
            return MORE if not final and _MAY_OPEN.fullmatch(text) else None
        at = opened.end()
        named = names_tool(text, at, tools, final=final)
        if named is not True:
            return named if isinstance(named, More) else None
        end = json_text.value_end(text, at)
        if end is None:
            return Block(len(text), (broken(NO_END, text[at:], tools),)) if final else SURE
        calls = read_calls(text[at:end], tools, strict=True)
        if not calls:
            return None
        close = after_space(text, end)
        rest = text[close : close + len(_FENCE)]
        if rest == _FENCE:
            return Block(close + len(_FENCE), tuple(calls))
        if _FENCE.startswith(rest):
            return Block(len(text), tuple(calls)) if final else SURE
        return None

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            f"# Tools\nYou can call these tools:\n{described_functions(tools, '', '')}\n\n"
            "To call one, end your answer with a code block like this one, and nothing after it:\n"
            '```json\n{"name": "TOOL", "arguments": {…}}\n```'
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(
            f'```json\n{{"name": {json_text.encode(name)}, "arguments": {arguments}}}\n```'
            for _, name, arguments in calls
        )

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n\n".join(f"Result of {name}:\n{text}" for _, name, text in results)
