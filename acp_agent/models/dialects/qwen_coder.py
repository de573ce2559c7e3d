"""Qwen3-Coder, Qwen 3.5, Nemotron 3: a tag for every argument, its value on lines of its own.

The chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct has it so. Such models leave the outer tag
out now and then, which is understood where the tool is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.form import Verdict
from acp_agent.models.dialects.hermes import CLOSE, OPEN, tool_responses
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.tools import Tools
from acp_agent.models.dialects.xml_calls import TagReader, Tags, written_calls

_READER = TagReader(
    Tags(
        wrappers=((OPEN, CLOSE),),
        call="<function=",
        call_end="</function>",
        argument="<parameter=",
        argument_end="</parameter>",
        quoted=False,
        framed=True,
    )
)


class QwenCoder:
    """`<tool_call><function=…><parameter=…>…</parameter></function></tool_call>`."""

    openers = (OPEN, "<function=")
    bare = ""
    ends = (CLOSE, "</function>")
    strays = (CLOSE, "</function>", "</parameter>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return _READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "# Tools\n\nYou have access to the following functions:\n\n"
            f"<tools>\n{described_json(tools)}\n</tools>\n\n"
            "If you choose to call a function ONLY reply in the following format with NO "
            "suffix:\n\n"
            f"{OPEN}\n<function=example_function_name>\n<parameter=example_parameter>\nvalue\n"
            f"</parameter>\n</function>\n{CLOSE}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        written = written_calls(
            calls, lambda key, value, _: f"<parameter={key}>\n{value}\n</parameter>\n"
        )
        return "\n".join(
            f"{OPEN}\n<function={name}>\n{values}</function>\n{CLOSE}" for name, values in written
        )

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return tool_responses(results)
