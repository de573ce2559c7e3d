"""The contract between the scanner of an answer and the forms in which models write calls.

A form looks at text that begins with one of its openers and says what it is. Its verdict on a text
is its verdict on every longer one, so it does not matter how a stream is cut into pieces: where
what comes next could change it, the answer is `More`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Protocol

from msgspec import Struct

from acp_agent.models.dialects.tools import Tools

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
    """It cannot be told yet. `sure`: it is a call for certain, only its end has not come."""

    sure: bool = False


class Block(Struct, frozen=True):
    """The text up to `end`, which is more than none, is calls and any text that stood between them.

    Where `thought` names ends, what follows is reasoning, up to the first of them.
    """

    end: int
    parts: tuple[WrittenCall | str, ...]
    thought: tuple[str, ...] = ()


Verdict = More | Block | None  # None: it is text, whatever follows

LONGEST_TAG = 300  # characters; what begins like one and goes on for longer is none

MORE = More()
SURE = More(sure=True)


class CutError(Exception):
    """The text ended where more of it had to be known."""


class Writing(Protocol):
    """How tools, calls and results are written for a model whose API knows neither."""

    def instructions(self, tools: Tools) -> str:
        """What the model is told of the tools and of how to call them."""
        ...

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """The calls of one answer: the number of each in the conversation, name, arguments."""
        ...

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """The results of one answer's calls: number, name and text of each."""
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
        """Say what a text is that begins with an opener. Where it is `final`, never `More`."""
        ...


def after_space(text: str, at: int) -> int:
    """The place of the first character from `at` on that is no white space."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def begins(text: str, at: int, marks: Sequence[str], *, final: bool) -> str | More | None:
    """Which of `marks` stands at a place; `More` where one may, once there is more text."""
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
    """Which of `marks` stands at a place.

    Raises:
        CutError: one may, once there is more text.
    """
    mark = begins(text, at, marks, final=final)
    if isinstance(mark, More):
        raise CutError
    return mark


@cache
def any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    """What finds the first of `marks`, of those that begin alike the one that is named first."""
    return re.compile("|".join(map(re.escape, marks)))


@cache
def beginnings(marks: tuple[str, ...]) -> frozenset[str]:
    """All with which one of the marks begins and does not end."""
    return frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))


def before_half_mark(text: str, marks: Sequence[str]) -> str:
    """The text of a block that just stops, without the half of a mark with which it may end."""
    longest = max(map(len, marks)) - 1
    for size in range(min(len(text), longest), 0, -1):
        # One character may be anything, unless it is all that there is.
        if size == 1 and text[:-1].strip():
            break
        if text[-size:] in beginnings(tuple(marks)):
            return text[:-size]
    return text


def broken(problem: str, written: str, tools: Tools) -> WrittenCall:
    """A call that must not be run, of the tool that it seems to name."""
    found = _NAMED.search(written)
    name = next((group for group in found.groups() if group), "") if found else ""
    return WrittenCall(
        name=name if name in tools else UNREADABLE, arguments=written.strip(), problem=problem
    )


_SPACE = re.compile(r"\s*")
_NAMED = re.compile(r'"(?:name|tool)"\s*:\s*"([^"]{1,128})"|(?:name="|function=)([\w.:-]{1,128})')
