"""The data of a page: its turns and what is between them, with their steps and their times.

Texts and times are as in `steps`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from acp_agent.view.spending import Request, Spend
from acp_agent.view.steps import Step, children_of

Lane = Literal["model", "tools", "user"]


class Span(Struct, frozen=True):
    """A time in which a lane was at work."""

    lane: Lane
    start: int
    end: int


class Times(Struct, frozen=True, kw_only=True):
    """How long a section took, and how much of it the model, tools and the user were at work.

    What runs side by side counts once in its lane. `rest` is what belongs to no lane.
    """

    start: int
    end: int
    spans: tuple[Span, ...] = ()
    model: int = 0
    tools: int = 0
    user: int = 0
    rest: int = 0

    @property
    def whole(self) -> int:
        """From the first event to the last."""
        return self.end - self.start


class Section(Struct, kw_only=True):
    """A turn, or what happened between turns (`number` is None).

    What child sessions took is in the `spend`, and their requests are not in the `requests`.
    """

    anchor: str
    number: int | None
    start: int
    title: str = ""
    steps: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    outcome: str = "running"  # a stop reason, `error`, `interrupted` or `running`
    error: str = ""
    times: Times | None = None
    spend: Spend = field(default_factory=Spend)
    context_used: int = 0
    context_size: int = 0
    local: bool = False  # a command that the agent answered by itself
    undone: bool = False

    def every_request(self) -> Iterator[Request]:
        """Its requests, and those of the child sessions that worked in it."""
        yield from self.requests
        for step in self.steps:
            for child in children_of(step):
                yield from child.requests


class Page(Struct, kw_only=True):
    """All of a page. `left_out` counts characters and bytes that had no room in it."""

    session: str
    title: str
    cwd: str
    directories: list[str]
    forked_from: str
    created_at: int
    updated_at: int
    models: list[str]
    sections: list[Section]
    spend: Spend
    times: Times
    left_out: int = 0

    @property
    def turns(self) -> list[Section]:
        """The sections that are turns."""
        return [section for section in self.sections if section.number is not None]
