"""Read answers that consist of calls without tags: Python, a list, or a name before JSON."""

from __future__ import annotations

import re
from collections.abc import Callable

from acp_agent.models.dialects.form import Tools, WrittenCall

LONGEST_HEAD = 1_000  # characters that show whether an answer is a call without tags
_LONGEST = 64 * 1024
_PYTHON = re.compile(
    r"\s*(?:```(?:tool_code|tool_call)\s*\n)?\s*\[?\s*(?:print\()?(?:default_api\.)?(\w+)\("
)
_ANSWER_OPENERS = ("```tool_code", "print(default_api.", "functools[")  # the whole answer is a call
# GLM 4 and ChatGLM write a name and JSON on the next line, Functionary marks the name.
_MARK = ">>>"
_NAMED = re.compile(r"\s*(?:>>>)?\s*([\w.-]{1,128})[ \t]*\n\s*(?=\{)")
_NAME_PART = re.compile(r"([\w.-]{1,128})[ \t]*(?:\n\s*)?")


def may_be_calls(answer: str, tools: Callable[[], Tools]) -> bool:
    """Return whether a whole answer may be calls, given its beginning."""
    if len(answer) > _LONGEST:
        return False
    text = answer[:LONGEST_HEAD].lstrip()
    if any(text.startswith(whole) or whole.startswith(text) for whole in (*_ANSWER_OPENERS, _MARK)):
        return not text.startswith(_MARK) or _may_be_named(text.removeprefix(_MARK), tools)
    begun = text.removeprefix("[").lstrip()
    if not begun or begun.isidentifier():
        return any(tool.name.startswith(begun) for tool in tools())
    found = _PYTHON.match(text[:200])
    return (found is not None and found[1] in tools()) or _may_be_named(text, tools)


def _may_be_named(text: str, tools: Callable[[], Tools]) -> bool:
    named = _NAMED.match(text)
    if named is not None:
        return named[1] in tools()
    begun = text.lstrip()
    part = _NAME_PART.fullmatch(begun)
    if part is None:
        return not begun
    ended = part.end(1) < len(begun)
    return any(tool.name == part[1] if ended else tool.name.startswith(part[1]) for tool in tools())


def read_whole(answer: str, tools: Tools) -> list[WrittenCall]:
    """Return the calls of which an answer consists; empty if it has other content."""
    from acp_agent.models.dialects.json_calls import read_calls  # noqa: PLC0415 - rarely needed
    from acp_agent.models.dialects.python_calls import read_python_calls  # noqa: PLC0415

    text = answer.strip()
    if text.startswith("functools["):
        return read_calls(text.removeprefix("functools"), tools, strict=True)
    return read_python_calls(text, tools) or _read_named(text, tools)


def _read_named(text: str, tools: Tools) -> list[WrittenCall]:
    from acp_agent.models.dialects.json_calls import read_arguments  # noqa: PLC0415 - as above
    from acp_agent.models.dialects.json_text import value_end  # noqa: PLC0415 - as above

    calls: list[WrittenCall] = []
    at = 0
    while at < len(text):
        named = _NAMED.match(text, at)
        end = value_end(text, named.end()) if named is not None else None
        if named is None or end is None or named[1] not in tools:
            return []
        call = read_arguments(named[1], text[named.end() : end])
        if call.problem:
            return []
        calls.append(call)
        at = end
    return calls
