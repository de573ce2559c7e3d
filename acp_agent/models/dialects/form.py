"""Interfaces and helpers of forms: the ways in which models write tool calls as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Protocol

from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.models.dialects import json_text
from acp_agent.tools.spec import ToolSpec

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip
_PYTHON = {"True": True, "False": False, "None": None}  # some models write values as in Python
_DEPTH = 16  # the most nested schemas and references that are followed


class Tools:
    """The tools that a model may call; `knows` returns whether another name is accepted too."""

    def __init__(
        self, specs: Iterable[ToolSpec], knows: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._knows = knows

    def __contains__(self, name: object) -> bool:
        return name in self._specs or (isinstance(name, str) and self._knows(name))

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._specs.values())

    def convert_argument(self, tool: str, argument: str, text: str) -> object:
        """Return the value of an argument that was written as bare text.

        The text is converted to the type in the tool's schema. If that is impossible, the text
        itself is returned, and the tool refuses it with a reason.
        """
        spec = self._specs.get(tool)
        if spec is None:
            return text
        properties = spec.parameters.get("properties")
        schema = properties.get(argument) if isinstance(properties, dict) else None
        allowed = _types(schema, spec.parameters, _DEPTH)
        types = allowed - {"string"}
        if not types:
            return text
        stripped = text.strip()
        value = _PYTHON[stripped] if stripped in _PYTHON else json_text.decode(stripped)
        if value is json_text.NOTHING:
            return text
        for name in types:
            if isinstance(value, _TYPES[name]) and not (
                isinstance(value, bool) and name != "boolean"
            ):
                return value
        if "integer" in types and isinstance(value, float) and value.is_integer():
            return int(value)
        return text


def _types(schema: object, root: JsonObject, depth: int) -> set[str]:
    """Return the JSON types that a schema allows; empty if it does not specify any."""
    if not isinstance(schema, dict) or depth == 0:
        return set()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: object = root
        for step in reference[2:].split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        return _types(target, root, depth - 1)
    declared = schema.get("type")
    allowed = (
        {declared}
        if isinstance(declared, str)
        else set(declared)
        if isinstance(declared, list)
        else set()
    )
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key) or ():
            allowed |= _types(part, root, depth - 1)
    return {name for name in allowed if name in _TYPES or name == "string"}


# The interface between the scanner of an answer and the forms in which models write calls.
#
# A form reads a text that begins with one of its openers and returns a verdict. The verdict holds
# for every longer text, so the division of a stream into pieces does not matter. If further text
# could change the verdict, the form returns `More`.

NO_END = "The call has no end: it was not run. Write it again, whole."
UNREADABLE = "unreadable_call"  # the name of a call whose tool is unknown


class WrittenCall(Struct, frozen=True, kw_only=True):
    """A call as the model wrote it.

    `arguments` is the JSON text of an object. If there is a `problem`, it is the text that the
    model wrote, and the call must not be run.
    """

    name: str
    arguments: str
    problem: str = ""


class More(Struct, frozen=True):
    """More text is needed. `sure` is true if the text is certainly a call without its end."""

    sure: bool = False


class Block(Struct, frozen=True):
    """The text up to `end`, which is not empty, consists of calls and text between them.

    If `thought` is not empty, the text that follows is reasoning up to the first of these marks.
    """

    end: int
    content: tuple[WrittenCall | str, ...]
    thought: tuple[str, ...] = ()


Verdict = More | Block | None  # None: it is text, regardless of what follows

MAX_TAG_LENGTH = 300  # characters; longer text that begins like a tag is not a tag

MORE = More()
SURE = More(sure=True)


class CutError(Exception):
    """More text is needed to continue."""


class CallWriter(Protocol):
    """Writes tools, calls and results as text for a model whose API does not support tools."""

    def instructions(self, tools: Tools) -> str:
        """Return the text that describes the tools and how to call them."""

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """Return the calls of one answer as text, given the number, name and arguments of each."""

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """Return the results of one answer's calls as text, given number, name and text of each."""


class CallReader(Protocol):
    """Reads one way in which models write calls."""

    @property
    def openers(self) -> tuple[str, ...]:
        """Return the texts with which calls begin; none begins with another."""

    @property
    def bare(self) -> str:
        """Return characters with which calls begin if they are the first of an answer."""

    @property
    def ends(self) -> tuple[str, ...]:
        """Return the texts of which one is needed to complete a call."""

    @property
    def strays(self) -> tuple[str, ...]:
        """Return tags that are dropped if they occur without a call of their own.

        They are dropped next to another call, or anywhere if they are control tokens.
        """

    @property
    def control(self) -> bool:
        """Return whether the tags are control tokens, which never occur in an example."""

    @property
    def line_start(self) -> bool:
        """Return whether openers count only at the beginning of a line."""

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """Return the verdict on a text that begins with an opener; if `final`, never `More`."""


def skip_space(text: str, at: int) -> int:
    """Return the position of the first character from `at` on that is not white space."""
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def match_mark(text: str, at: int, marks: Sequence[str], *, final: bool) -> str | More | None:
    """Return the mark at a position, `More` if more text may complete one, or None."""
    for mark in marks:
        if text.startswith(mark, at):
            return mark
    if final:
        return None
    available = len(text) - at
    if any(available < len(mark) and mark.startswith(text[at:]) for mark in marks):
        return MORE
    return None


def expect_mark(text: str, at: int, marks: Sequence[str], *, final: bool) -> str | None:
    """Return the mark at a position, or None. Raises CutError if more text may complete one."""
    mark = match_mark(text, at, marks, final=final)
    if isinstance(mark, More):
        raise CutError
    return mark


@cache
def marks_pattern(marks: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for `marks`; if several match, the first one wins."""
    return re.compile(_alternatives(marks))


def _alternatives(marks: Sequence[str]) -> str:
    """Return a pattern of alternatives that reads what several begin with once."""
    suffixes: dict[str, list[str]] = {}
    is_optional = False
    for mark in marks:
        if not mark:
            is_optional = True
            break  # the marks after it are never reached
        suffixes.setdefault(mark[0], []).append(mark[1:])
    patterns = [re.escape(char) + _alternatives(tails) for char, tails in suffixes.items()]
    pattern = "|".join([*patterns, ""] if is_optional else patterns)
    return pattern if len(patterns) + is_optional == 1 else f"(?:{pattern})"


@cache
def proper_prefixes(marks: tuple[str, ...]) -> frozenset[str]:
    """Return all proper prefixes of the marks."""
    return frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))


def strip_partial_mark(text: str, marks: Sequence[str]) -> str:
    """Return the text of an unfinished block without an incomplete mark at its end."""
    longest = max(map(len, marks)) - 1
    for size in range(min(len(text), longest), 0, -1):
        # A single character proves nothing, unless it is the whole text.
        if size == 1 and text[:-1].strip():
            break
        if text[-size:] in proper_prefixes(tuple(marks)):
            return text[:-size]
    return text


def broken_call(problem: str, text: str, tools: Tools) -> WrittenCall:
    """Return a call with a problem, of the tool that the text seems to name."""
    match = _TOOL_NAME.search(text)
    name = next((group for group in match.groups() if group), "") if match else ""
    return WrittenCall(
        name=name if name in tools else UNREADABLE, arguments=text.strip(), problem=problem
    )


_SPACE = re.compile(r"\s*")
_TOOL_NAME = re.compile(
    r'"(?:name|tool)"\s*:\s*"([^"]{1,128})"|(?:name="|function=)([\w.:-]{1,128})'
)
