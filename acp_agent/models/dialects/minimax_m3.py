"""The calls of MiniMax M3: a token before each tag, lists and objects as nested tags.

As in the parsers of sglang and vLLM for minimax_m3: the arguments are tags with their names, the
items of a list are in `item` tags, and texts are not escaped.
"""

from __future__ import annotations

import re

from msgspec import Struct

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    NO_END,
    SURE,
    Block,
    Tools,
    Verdict,
    WrittenCall,
    broken_call,
)

_TOKEN = "]<]minimax[>["  # noqa: S105 - no secret
M3_OPEN, M3_CLOSE = f"{_TOKEN}<tool_call>", f"{_TOKEN}</tool_call>"
_END = re.compile(rf"{re.escape(_TOKEN)}\s*</tool_call>")
_BETWEEN = re.compile(rf"{re.escape(_TOKEN)}\s*(?=<)")
_TAG = re.compile(r'<(/?)([^<>\s]+)(?:\s+name="([^"]*)")?\s*>(.*)', re.DOTALL)


class _Element(Struct):
    tag: str
    name: str
    text: str
    children: list[_Element]


def read_m3_calls(text: str, tools: Tools, *, final: bool) -> Verdict:
    """Return the verdict on a text that begins with `M3_OPEN`; see `form.Form`."""
    end = _END.search(text)
    if end is None and not final:
        return SURE
    calls: list[WrittenCall] = []
    open_elements: list[_Element] = []
    for piece in _BETWEEN.split(text[len(M3_OPEN) : end.start() if end else len(text)])[1:]:
        tag = _TAG.fullmatch(piece)
        if tag is None:
            break
        if not tag[1]:
            open_elements.append(_Element(tag[2], tag[3] or "", tag[4], []))
            continue
        if not open_elements or open_elements[-1].tag != tag[2]:
            break
        element = open_elements.pop()
        if open_elements:
            open_elements[-1].children.append(element)
        elif element.tag == "invoke":
            calls.append(_call(element, tools))
    else:
        if end is not None and not open_elements:
            return Block(end.end(), tuple(calls))
    return Block(end.end() if end else len(text), (*calls, broken_call(NO_END, text, tools)))


def _call(element: _Element, tools: Tools) -> WrittenCall:
    values = {
        child.tag: _value(child)
        if child.children
        else tools.convert_argument(element.name, child.tag, child.text)
        for child in element.children
    }
    return WrittenCall(name=element.name, arguments=json_text.encode(values))


def _value(element: _Element) -> object:
    """Return the value of a tag: a list of items, an object, or a text or number."""
    if element.children and all(child.tag == "item" for child in element.children):
        return [_value(child) for child in element.children]
    if element.children:
        return {child.tag: _value(child) for child in element.children}
    value = json_text.decode(element.text)
    return value if isinstance(value, bool | int | float) else element.text
