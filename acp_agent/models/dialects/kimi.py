"""Kimi K2: control tokens, and the tool's name in an id.

The chat template of moonshotai/Kimi-K2-Instruct has it so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp_agent.models.dialects.form import Verdict
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.token_calls import TokenReader, Tokens
from acp_agent.models.dialects.tools import Tools

_BEGIN, _END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_CALL, _CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_STOP = "<|im_end|>"
_ID = re.compile(r"(?:functions\.)?(.*?)(?::\d+)?", re.DOTALL)


def _name(written: str) -> str:
    """`functions.read:0` is the first call of the conversation, of `read`."""
    found = _ID.fullmatch(written)
    return found[1] if found else written


_READER = TokenReader(
    Tokens(
        # The model writes the section's tokens in the singular now and then.
        open=(_BEGIN, "<|tool_call_section_begin|>"),
        close=(_END, "<|tool_call_section_end|>"),
        call=_CALL,
        call_end=_CALL_END,
        arguments=_ARGUMENTS,
        stop=_STOP,
        name=_name,
    )
)


class Kimi:
    """`<|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument…`."""

    openers = (_BEGIN, "<|tool_call_section_begin|>", _CALL)
    bare = ""
    ends = (_END, "<|tool_call_section_end|>", _CALL_END)
    strays = (_END, "<|tool_call_section_end|>", _CALL_END, _ARGUMENTS, _STOP)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return _READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            f"# Tools\n{described_json(tools)}\n\n"
            "Call them in this form, numbered through the conversation, and end with it:\n"
            f"{_BEGIN}{_CALL}functions.NAME:0{_ARGUMENTS}{{…}}{_CALL_END}{_END}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        inner = "".join(
            f"{_CALL}functions.{name}:{number}{_ARGUMENTS}{arguments}{_CALL_END}"
            for number, name, arguments in calls
        )
        return f"{_BEGIN}{inner}{_END}"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(
            f"## Return of functions.{name}:{number}\n{text}" for number, name, text in results
        )
