"""A dialect: how a model writes tool calls as text, and how tools are described to it."""

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
_PYTHON = {"True": True, "False": False, "None": None}  # as models write them that learnt Python
_DEPTH = 16  # of references to definitions that are followed


class Tools:
    """The tools that a model may call; `knows` says which other names are taken for theirs."""

    def __init__(
        self, specs: Iterable[ToolSpec], knows: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._knows = knows

    def __contains__(self, name: object) -> bool:
        return name in self._specs or (isinstance(name, str) and self._knows(name))

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._specs.values())

    def typed(self, tool: str, argument: str, text: str) -> object:
        """Return the value of an argument that was written as bare text.

        It has the type that the tool's schema asks for, if the text allows that; else it is the
        text itself, which the tool then refuses with a reason.
        """
        spec = self._specs.get(tool)
        if spec is None:
            return text
        properties = spec.parameters.get("properties")
        schema = properties.get(argument) if isinstance(properties, dict) else None
        allowed = _types(schema, spec.parameters, _DEPTH)
        wanted = allowed - {"string"}
        if not wanted:
            return text
        bare = text.strip()
        value = _PYTHON[bare] if bare in _PYTHON else json_text.decode(bare)
        if value is json_text.NOTHING:
            return text
        for name in wanted:
            if isinstance(value, _TYPES[name]) and not (
                isinstance(value, bool) and name != "boolean"
            ):
                return value
        if "integer" in wanted and isinstance(value, float) and value.is_integer():
            return int(value)
        return text


def _types(schema: object, root: JsonObject, depth: int) -> set[str]:
    """Return the JSON types that a schema allows; none if it does not say."""
    if not isinstance(schema, dict) or depth == 0:
        return set()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: object = root
        for step in reference[2:].split("/"):
            found = found.get(step) if isinstance(found, dict) else None
        return _types(found, root, depth - 1)
    given = schema.get("type")
    allowed = (
        {given} if isinstance(given, str) else set(given) if isinstance(given, list) else set()
    )
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key) or ():
            allowed |= _types(part, root, depth - 1)
    return {name for name in allowed if name in _TYPES or name == "string"}


# The contract between the scanner of an answer and the forms in which models write calls.
#
# A form inspects text that begins with one of its openers. Its verdict on a text holds for every
# longer text, so it does not matter how a stream is cut into pieces. If what follows could change
# the verdict, it is `More`.

NO_END = "The call has no end: it was not run. Write it again, whole."
UNREADABLE = "unreadable_call"  # the name of a call whose tool cannot be told


class WrittenCall(Struct, frozen=True, kw_only=True):
    """A call as the model wrote it.

    `arguments` is the JSON text of an object; where there is a `problem` it is what was written,
    and the call must not be run.
    """

    name: str
    arguments: str
    problem: str = ""


class More(Struct, frozen=True):
    """More text is needed. `sure`: the text is certainly a call whose end has not come."""

    sure: bool = False


class Block(Struct, frozen=True):
    """The text up to `end`, which is not empty, is calls and any text between them.

    If `thought` names ends, the text that follows is reasoning up to the first of them.
    """

    end: int
    parts: tuple[WrittenCall | str, ...]
    thought: tuple[str, ...] = ()


Verdict = More | Block | None  # None: it is text, whatever follows

LONGEST_TAG = 300  # characters; what begins like one and goes on for longer is none

MORE = More()
SURE = More(sure=True)


class CutError(Exception):
    """More text is needed to continue."""


class Writing(Protocol):
    """How tools, calls and results are written for a model whose API knows neither."""

    def instructions(self, tools: Tools) -> str:
        """Return the text that describes the tools and how to call them."""
        ...

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """Write the calls of one answer: number in the conversation, name and arguments of each."""
        ...

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """Write the results of one answer's calls: number, name and text of each."""
        ...


class Form(Writing, Protocol):
    """One way in which models write calls."""

    @property
    def openers(self) -> tuple[str, ...]:
        """The texts with which calls begin; none begins with another."""
        ...

    @property
    def bare(self) -> str:
        """Characters with which calls begin where they are the first of an answer."""
        ...

    @property
    def ends(self) -> tuple[str, ...]:
        """No call is complete before one of these has come."""
        ...

    @property
    def strays(self) -> tuple[str, ...]:
        """Tags that are dropped where they stand without their call.

        Next to another call, that is; anywhere where they are control tokens.
        """
        ...

    @property
    def control(self) -> bool:
        """Whether the tags are control tokens, which nobody writes in an example."""
        ...

    @property
    def line_start(self) -> bool:
        """Whether the openers count at the beginning of a line only."""
        ...

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """Return the verdict on a text that begins with an opener; if `final`, never `More`."""
        ...


def after_space(text: str, at: int) -> int:
    """Return the position of the first character from `at` on that is no white space."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def begins(text: str, at: int, marks: Sequence[str], *, final: bool) -> str | More | None:
    """Return which of `marks` is at a position; `More` if more text may complete one."""
    for mark in marks:
        if text.startswith(mark, at):
            return mark
    if final:
        return None
    left = len(text) - at
    if any(left < len(mark) and mark.startswith(text[at:]) for mark in marks):
        return MORE
    return None


def stands(text: str, at: int, marks: Sequence[str], *, final: bool) -> str | None:
    """Return which of `marks` is at a position.

    Raises:
        CutError: more text may complete one.
    """
    mark = begins(text, at, marks, final=final)
    if isinstance(mark, More):
        raise CutError
    return mark


@cache
def any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for `marks`; of those that begin alike the first one wins."""
    return re.compile("|".join(map(re.escape, marks)))


@cache
def beginnings(marks: tuple[str, ...]) -> frozenset[str]:
    """Return all proper beginnings of the marks."""
    return frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))


def before_half_mark(text: str, marks: Sequence[str]) -> str:
    """Return the text of a block that has no end, without half a mark at its end."""
    longest = max(map(len, marks)) - 1
    for size in range(min(len(text), longest), 0, -1):
        # One character may be anything, unless it is all that there is.
        if size == 1 and text[:-1].strip():
            break
        if text[-size:] in beginnings(tuple(marks)):
            return text[:-size]
    return text


def broken(problem: str, written: str, tools: Tools) -> WrittenCall:
    """Return a call that must not be run, of the tool that it seems to name."""
    found = _NAMED.search(written)
    name = next((group for group in found.groups() if group), "") if found else ""
    return WrittenCall(
        name=name if name in tools else UNREADABLE, arguments=written.strip(), problem=problem
    )


_SPACE = re.compile(r"\s*")
_NAMED = re.compile(r'"(?:name|tool)"\s*:\s*"([^"]{1,128})"|(?:name="|function=)([\w.:-]{1,128})')


# Descriptions of the tools for a model whose API does not take them.


def described_json(tools: Tools) -> str:
    """Return the tools, one on each line, as nearly every template writes them."""
    return "\n".join(
        json_text.encode(
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
        )
        for tool in tools
    )


def described_functions(tools: Tools, before: str, after: str) -> str:
    """Return the tools without the envelope, each between two tags."""
    return "\n".join(
        before
        + json_text.encode(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        )
        + after
        for tool in tools
    )
