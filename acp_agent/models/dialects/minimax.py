"""MiniMax M2: `invoke` tags in a wrapper of its own (the template of MiniMaxAI/MiniMax-M2)."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects.form import Verdict
from acp_agent.models.dialects.invoke import invocations
from acp_agent.models.dialects.signatures import described_functions
from acp_agent.models.dialects.tools import Tools
from acp_agent.models.dialects.xml_calls import TagReader, Tags

OPEN, CLOSE = "<minimax:tool_call>", "</minimax:tool_call>"
_READER = TagReader(
    Tags(
        wrappers=((OPEN, CLOSE),),
        call='<invoke name="',
        call_end="</invoke>",
        argument='<parameter name="',
        argument_end="</parameter>",
    )
)


class MiniMax:
    """`<minimax:tool_call><invoke name="…"><parameter name="…">…</parameter></invoke>…`."""

    openers = (OPEN,)
    bare = ""
    ends = (CLOSE,)
    strays = (CLOSE, "</invoke>", "</parameter>")
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return _READER.read(text, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "# Tools\nYou may call one or more tools to assist with the user query.\n"
            "Here are the tools available in JSONSchema format:\n\n"
            f"<tools>\n{described_functions(tools, '<tool>', '</tool>')}\n</tools>\n\n"
            "When making tool calls, use XML format to invoke tools and pass parameters:\n\n"
            f'{OPEN}\n<invoke name="tool-name">\n<parameter name="param-key">param-value'
            f"</parameter>\n</invoke>\n{CLOSE}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return f"{OPEN}\n{invocations(calls)}{CLOSE}"

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(f"<response>{text}</response>" for _, _, text in results)
