"""DeepSeek V3, R1 and V3.1: control tokens around each call and around all of them.

The chat template of deepseek-ai/DeepSeek-V3.1 has the short form, in which calls are written here;
that of DeepSeek-V3-0324 has the kind of the tool before its name, and the arguments in a fence.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.form import Verdict
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.token_calls import TokenReader, Tokens
from acp_agent.models.dialects.tools import Tools

_BEGIN, _END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL, _CALL_END, _SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
STOP = "<｜end▁of▁sentence｜>"
_READER = TokenReader(
    Tokens(
        open=(_BEGIN,),
        close=(_END,),
        call=_CALL,
        call_end=_CALL_END,
        arguments=_SEP,
        stop=STOP,
        name=lambda head: head,
    )
)


class DeepSeek:
    """`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>…`."""

    openers = (_BEGIN, _CALL)
    bare = ""
    ends = (_END, _CALL_END)
    strays = (_END, _CALL_END, _SEP, STOP)
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return _READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            f"## Tools\nYou have access to the following tools:\n\n{described_json(tools)}\n\n"
            "IMPORTANT: ALWAYS adhere to this exact format for tool use:\n"
            f"{_BEGIN}{_CALL}tool_call_name{_SEP}tool_call_arguments{_CALL_END}"
            "{additional_tool_calls}"
            f"{_END}\n\nWhere `tool_call_arguments` is a JSON object."
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        inner = "".join(
            f"{_CALL}{name}{_SEP}{arguments}{_CALL_END}" for _, name, arguments in calls
        )
        return f"{_BEGIN}{inner}{_END}"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "".join(
            f"<｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜>" for _, _, text in results
        )
