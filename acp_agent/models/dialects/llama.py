"""Llama 3.1 to 3.3: an answer that is JSON, several calls with semicolons between them.

https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/. JSON that an answer begins
with is a call only where it is one of a known tool, and nothing else.
"""

from __future__ import annotations

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
from acp_agent.models.dialects.signatures import described_json
from acp_agent.models.dialects.tools import Tools

_TAG = "<|python_tag|>"
_BAD = 'Write calls as {"name": …, "parameters": {…}}. This one was not run.'


class Llama:
    """`{"name": …, "parameters": {…}}`, after `<|python_tag|>` or as the whole answer."""

    openers = (_TAG,)
    bare = "{["
    ends = ("}", "]")
    strays = ("<|eom_id|>", "<|eot_id|>")
    control = True
    line_start = False

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.Form`."""
        if not text.startswith(_TAG):
            return _call(text, 0, tools, tagged=False, final=final)
        at = after_space(text, len(_TAG))
        if at == len(text):
            return Block(at, ()) if final else MORE
        if text[at] in "{[":
            return _call(text, at, tools, tagged=True, final=final)
        # A call of the code interpreter, or Python that is to be run there: there is none.
        return Block(len(text), (broken(_BAD, text[at:], tools),)) if final else SURE

    def instructions(self, tools: Tools) -> str:
        """See `form.Form`."""
        return (
            "You have access to the following functions. To call a function, respond with JSON "
            'for a function call and nothing else, in the format {"name": function name, '
            '"parameters": dictionary of argument name and its value}. Do not use variables. '
            f"Put a semicolon between several calls.\n\n{described_json(tools)}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "; ".join(
            f'{{"name": {json_text.encode(name)}, "parameters": {arguments}}}'
            for _, name, arguments in calls
        )

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `form.Form`."""
        return "\n".join(f'{{"output": {json_text.encode(text)}}}' for _, _, text in results)


def _call(text: str, at: int, tools: Tools, *, tagged: bool, final: bool) -> Verdict:
    """The call at a place, or list of calls; without the tag before it, it may be anything else.

    The semicolon after it belongs to it, so that the next one is the first of the rest again.
    """
    named = True if tagged else names_tool(text, at, tools, final=final)
    if isinstance(named, More):
        return MORE
    if not named:
        return None
    end = json_text.value_end(text, at)
    if end is None:
        return Block(len(text), (broken(NO_END, text[at:], tools),)) if final else SURE
    found = read_calls(text[at:end], tools, strict=not tagged)
    if not found:
        return None
    after = after_space(text, end)
    if after == len(text) and not final:
        return SURE
    return Block(after + 1 if text[after : after + 1] == ";" else end, tuple(found))
