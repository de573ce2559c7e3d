"""Hermes, Qwen 2.5 and Qwen 3, SmolLM 3, Granite 4: a JSON object between two tags.

The chat templates of Qwen/Qwen3-8B and NousResearch/Hermes-3-Llama-3.1-8B have it so.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.models.dialects import json_calls, json_text
from acp_agent.models.dialects.form import Verdict
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.tools import Tools

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class Hermes:
    """`<tool_call>{"name": …, "arguments": {…}}</tool_call>`."""

    openers = (OPEN,)
    bare = ""
    ends = (CLOSE,)
    strays = (CLOSE,)
    control = False
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        return json_calls.read_region(text, OPEN, CLOSE, tools, final=final)

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n"
            f"<tools>\n{described_json(tools)}\n</tools>\n\n"
            "For each function call, return a JSON object with its name and arguments within "
            "<tool_call></tool_call> XML tags:\n"
            '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(
            f'{OPEN}\n{{"name": {json_text.encode(name)}, "arguments": {arguments}}}\n{CLOSE}'
            for _, name, arguments in calls
        )

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return tool_responses(results)


def tool_responses(results: Sequence[tuple[int, str, str]]) -> str:
    """Results as most of the templates write them."""
    return "\n".join(f"<tool_response>\n{text}\n</tool_response>" for _, _, text in results)
