"""Read arguments that are written as XML elements, as Cline and Roo ask for them."""

from __future__ import annotations

import re
from typing import Final

from acp_agent.content import JsonObject

_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_ELEMENT = re.compile(r"\s*<(\w{1,64})>(.*?)</\1>\s*", re.DOTALL)
_WHOLE_LINES = {"content", "diff"}
# Elements that may consist of others; a page of HTML in any other one is its text.
_PARENTS = {"args", "arguments", "diff", "edit", "edits", "file", "files", "parameters", "params"}
_MAX_DEPTH: Final = 4


def read_elements(text: str, depth: int = _MAX_DEPTH) -> JsonObject:
    """Return the values of the elements of which a text consists; empty if it has other content.

    An element that is repeated is a list.
    """
    values: dict[str, list[object]] = {}
    at = 0
    while at < len(text):
        element = _ELEMENT.match(text, at)
        if element is None:
            return {}
        name, body = element.groups()
        inner = read_elements(body, depth - 1) if depth and name in _PARENTS else {}
        values.setdefault(name, []).append(inner or element_text(name, body))
        at = element.end()
    return {key: items if len(items) > 1 else items[0] for key, items in values.items()}


def element_text(name: str, text: str) -> str:
    """Return the text of an element without CDATA and the line breaks around it."""
    if cdata := _CDATA.fullmatch(text):
        text = cdata[1]
    if not text.startswith("\n"):
        return text
    return text[1:] if name in _WHOLE_LINES else text[1:].removesuffix("\n")
