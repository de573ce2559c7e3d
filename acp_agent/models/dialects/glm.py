"""GLM 4.5 to 5: the tool's name, then pairs of keys and values (template of zai-org/GLM-4.6)."""

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
    WrittenCall,
    after_space,
    begins,
    broken,
)
from acp_agent.models.dialects.hermes import CLOSE, OPEN, tool_responses
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.tools import Tools
from acp_agent.models.dialects.xml_calls import written_calls

_KEY, _KEY_END, _VALUE, _VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
_NAME = re.compile(r"\s*([\w.:/-]{1,128})\s*(?=<)")
_PART_OF_NAME = re.compile(r"\s*[\w.:/-]{0,128}\s*")
_STRAY = "Only pairs of keys and values may follow the name. The call was not run; write it again."


class Glm:
    """`<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`."""

    openers = (OPEN,)
    bare = ""
    ends = (CLOSE,)
    strays = (CLOSE, "</arg_value>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        named = _NAME.match(text, len(OPEN))
        if named is None:
            begun = _PART_OF_NAME.fullmatch(text, len(OPEN))
            return MORE if begun and not final else None
        stands = begins(text, named.end(), (_KEY, CLOSE), final=final)
        if not isinstance(stands, str):
            return stands
        given: dict[str, object] = {}
        at = named.end()
        while stands == _KEY:
            pair = _pair(text, at, final=final)
            if pair is None:
                break
            if isinstance(pair, More):
                return SURE
            key, value, at = pair
            given[key] = tools.typed(named[1], key, value)
            at = after_space(text, at)
            follows = begins(text, at, (_KEY, CLOSE), final=final)
            if isinstance(follows, More):
                return SURE
            stands = follows or ""
        if stands == CLOSE:
            call = WrittenCall(name=named[1], arguments=json_text.encode(given))
            return Block(at + len(CLOSE), (call,))
        close = text.find(CLOSE, at)
        if close < 0 and not final:
            return SURE
        end = len(text) if close < 0 else close
        problem = NO_END if close < 0 else _STRAY
        name = named[1] if named[1] in tools else broken("", "", tools).name
        written = WrittenCall(name=name, arguments=text[len(OPEN) : end].strip(), problem=problem)
        return Block(end if close < 0 else close + len(CLOSE), (written,))

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n"
            f"<tools>\n{described_json(tools)}\n</tools>\n\n"
            "For each function call, output the function name and arguments within the following "
            f"XML format:\n{OPEN}{{function-name}}\n{_KEY}{{arg-key-1}}{_KEY_END}\n"
            f"{_VALUE}{{arg-value-1}}{_VALUE_END}\n...\n{CLOSE}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        written = written_calls(
            calls, lambda key, value, _: f"{_KEY}{key}{_KEY_END}\n{_VALUE}{value}{_VALUE_END}\n"
        )
        return "\n".join(f"{OPEN}{name}\n{values}{CLOSE}" for name, values in written)

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return tool_responses(results)


def _pair(text: str, at: int, *, final: bool) -> tuple[str, str, int] | More | None:
    """A key, its value as it is written, and where they end; None: it is no pair."""
    key_end = text.find(_KEY_END, at)
    if key_end < 0:
        return None if final else MORE
    start = after_space(text, key_end + len(_KEY_END))
    stands = begins(text, start, (_VALUE,), final=final)
    if not isinstance(stands, str):
        return stands
    start += len(_VALUE)
    seek = start
    while True:
        end = text.find(_VALUE_END, seek)
        if end < 0:
            return None if final else MORE
        after = end + len(_VALUE_END)
        follows = begins(text, after_space(text, after), (_KEY, CLOSE), final=final)
        if isinstance(follows, More):
            return MORE
        if follows is not None or (final and not text[after:].strip()):
            return text[at + len(_KEY) : key_end].strip(), text[start:end], after
        seek = end + 1
