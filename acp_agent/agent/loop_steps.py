"""Calls as the loop guard compares them: without what differs though nothing is different.

That is the order in which the arguments are written, and in a failure the arguments themselves and
the time that it took. The time that a success took may be what the model wants to know.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from acp_agent.events import ToolCalled, ToolEnded, ToolKind

_WORD = re.compile(r"[\w./~@+-]+")
_SHORTEST = 3  # characters of an argument's word that is looked for in an error
_LONGEST = 10_000  # characters of an argument that are looked at for its words
_TIMES = re.compile(
    r"(?<![\w.])\d+(?:\.\d+)? ?(?:[nmu\u00b5]?s|secs?|seconds?|min|minutes?)\b"
    r"|(?<!\d)\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?!\d)"
    r"|\b0x[0-9a-f]{6,}\b"  # an address in memory, which tells no more
)


class Step(NamedTuple):
    """A call that ended; two that are equal made no difference."""

    name: str
    arguments: str
    result: str
    failed: bool
    kind: ToolKind = "other"
    is_silent: bool = False  # it failed, and did not say why


def step_of(called: ToolCalled, ended: ToolEnded) -> Step:
    """A call and its end, as they are compared."""
    # A long result names the file that has the whole of it, by the call.
    result = ended.result.replace(called.call, "") if called.call in ended.result else ended.result
    try:
        given: object = msgspec.json.decode(called.arguments)
        arguments = msgspec.json.encode(given, order="sorted").decode()
    except (msgspec.MsgspecError, RecursionError):
        given, arguments = None, called.arguments.strip()
    return Step(
        name=called.name,
        arguments=arguments,
        result=_error(result, given) if ended.failed else result,
        failed=ended.failed,
        kind=called.kind,
        is_silent=ended.exit_code is not None and ended.result.startswith("[no output"),
    )


def _error(text: str, given: object) -> str:
    """An error without the words that the call was made with: it is the same for another path."""
    values = given.values() if isinstance(given, dict) else ()
    texts = {one for one in values if isinstance(one, str)}
    for one in sorted((one for one in texts if one and one in text), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(one)}(?!\w)", "\u2026", text)
    words = {word.rstrip(".") for one in texts for word in _WORD.findall(one[:_LONGEST])}

    def without(found: re.Match[str]) -> str:
        word = found[0].rstrip(".")
        return "\u2026" if len(word) >= _SHORTEST and word in words else found[0]

    return _TIMES.sub("\u2026", _WORD.sub(without, text))
