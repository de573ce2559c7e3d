"""The sections of a session, built from its events: turns and the time between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from acp_agent import events
from acp_agent.events import Rewound
from acp_agent.session.store.records import StoredEvent
from acp_agent.view.page import (
    AgentMessage,
    AgentThought,
    Compaction,
    Lane,
    Note,
    Plan,
    Request,
    Rewind,
    Section,
    Span,
    Spend,
    Step,
    Times,
    all_steps,
    step_children,
)

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PREFIXES = {"msg_": "message-", "call_": "call-", "comp_": "compaction-", "rew_": "rewind-"}
_LANES: tuple[Lane, ...] = ("model", "tools", "user")


class Sections:
    """Adds steps to sections; begins a new section after the end of the last.

    Attributes:
        seq: its number in the session.
    """

    def __init__(self, anchors: Anchors, parent: Sections | None = None) -> None:
        """Create the object without sections.

        Args:
            anchors: creates the ids of turns.
            parent: the sections of a child's parent, whose clock the child uses; None: no child.
        """
        self.at = 0
        self.seq = 0
        self._anchors = anchors
        self._parent = parent
        self._all: list[Section] = []
        self._clocks: list[Clock] = []
        self._turns: dict[str, Section] = {}
        self._number = 0  # of the last turn
        self._is_open = False  # whether the last section is open
        self._branch = ActiveBranch()
        self._branch_steps: list[Step] = []  # the steps that the branch refers to by index

    @property
    def current(self) -> Section:
        """The current section; begins one between turns if there is none."""
        if not self._is_open:
            self._begin_between()
        return self._all[-1]

    @property
    def clock(self) -> Clock:
        """The clock of the current section."""
        if self._parent is not None:
            return self._parent.clock
        if not self._is_open:
            self._begin_between()
        return self._clocks[-1]

    def advance(self, item: StoredEvent) -> None:
        """Set the current event."""
        self.at, self.seq = item.at, item.seq
        if self._is_open and not _is_aftermath(item.event):
            self._clocks[-1].tick(item.at)

    def begin_turn(self, event: events.TurnStarted) -> None:
        """Begin the section of a turn."""
        self._number += 1
        anchor = self._anchors.turn(self._number) if self._parent is None else ""
        section = Section(anchor=anchor, number=self._number, start=self.at)
        self._turns[event.turn] = section
        self._begin_section(section)

    def end_turn(self, outcome: str, error: str = "") -> None:
        """End the current section."""
        section = self.current
        section.outcome, section.error = outcome, error
        self._is_open = False

    def interrupt(self, event: events.TurnInterrupted) -> None:
        """Mark a turn as interrupted by the death of the process."""
        section = self._turns.get(event.turn) or self.current
        section.outcome = "interrupted"
        self._is_open = False

    def add(self, step: Step, message: str = "") -> None:
        """Add a step; `message` is the id of the user message that it shows."""
        section = self.current
        section.steps.append(step)
        # Notices, titles and settings do not belong to the conversation, so a rewind does not undo
        # them. A summary belongs to it even if a command made it.
        if isinstance(step, Compaction) or not (section.local or isinstance(step, Note | Rewind)):
            self._branch.add(len(self._branch_steps), message)
            self._branch_steps.append(step)

    def rewind(self, event: events.Rewound) -> None:
        """Apply a rewind."""
        self._branch.rewind(event)

    def finish(self) -> list[Section]:
        """Return all sections. Call it after the last event, when all steps have their texts."""
        current = self._branch.steps()
        for number, step in enumerate(self._branch_steps):
            step.undone = number not in current
        for section, clock in zip(self._all, self._clocks, strict=True):
            section.steps = [step for step in section.steps if not _is_empty(step)]
            section.times = clock.times()
            section.spend = _spend(section.requests)
            for child in (each for step in section.steps for each in step_children(step)):
                section.spend.add(child.spend)
            conversation = [step for step in section.steps if not isinstance(step, Note | Rewind)]
            section.undone = bool(conversation) and all(step.undone for step in conversation)
            plans = [step for step in section.steps if isinstance(step, Plan)]
            if plans:
                plans[-1].last = True
        for step in self._branch_steps:
            for inner in all_steps([step]) if step.undone else ():
                inner.undone = True
        return [section for section in self._all if section.number is not None or section.steps]

    def _begin_between(self) -> None:
        anchor = "" if self._parent else self._anchors.for_id(f"between-{self._number}")
        self._begin_section(Section(anchor=anchor, number=None, start=self.at))

    def _begin_section(self, section: Section) -> None:
        self._all.append(section)
        self._clocks.append(Clock(self.at))
        self._is_open = True


def _is_aftermath(event: object) -> bool:
    """Return whether an event may come from reopening a session after its process died.

    The state of a child session changes then too; at other times, other events of the child are
    written at the same moment.
    """
    event = events.unwrap_child_event(event) if isinstance(event, events.ChildWorked) else event
    return (
        isinstance(event, events.TurnInterrupted | events.SubagentChanged)
        or (isinstance(event, events.BackgroundCommandChanged) and event.status == "lost")
        or (isinstance(event, events.CompactionChanged) and event.status == "failed")
    )


def _is_empty(step: Step) -> bool:
    if isinstance(step, Note):
        return not step.key  # the page shows its content elsewhere
    return isinstance(step, AgentMessage | AgentThought) and not step.text.strip()


def _spend(requests: Sequence[Request]) -> Spend:
    spend = Spend()
    for request in requests:
        priced = request.cost is not None or not request.usage
        spend.add(
            Spend(
                usage=request.usage,
                cost=request.cost or 0.0,
                requests=1,
                unpriced=0 if priced else 1,
            )
        )
    return spend


class Anchors:
    """Makes a unique anchor for each step."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._anchors: dict[str, str] = {}
        self._count = 0

    def for_id(self, name: str) -> str:
        """Return the anchor for an id, such as `call-…` for `call_…`; the first use gets no suffix.

        An id that is not safe in an address is replaced by a number.
        """
        anchor = ""
        for prefix, kind in _PREFIXES.items():
            if name.startswith(prefix) and _SAFE.fullmatch(name[len(prefix) :]):
                anchor = kind + name[len(prefix) :]
        if not anchor:
            anchor = name if _SAFE.fullmatch(name) else self._numbered()
        anchor = self._free(anchor)
        self._anchors.setdefault(name, anchor)
        return anchor

    def for_event(self, seq: int) -> str:
        """Return an anchor such as `event-7` for the seventh event of the session."""
        return self._free(f"event-{seq}")

    def turn(self, number: int) -> str:
        """Return an anchor such as `turn-3` for the third turn."""
        return self._free(f"turn-{number}")

    def find(self, name: str) -> str:
        """Return the first anchor of an id; "" if it has none."""
        return self._anchors.get(name, "")

    def _numbered(self) -> str:
        self._count += 1
        return f"moment-{self._count}"

    def _free(self, anchor: str) -> str:
        free, number = anchor, 1
        while free in self._used:
            number += 1
            free = f"{anchor}.{number}"
        self._used.add(free)
        return free


class Clock:
    """Measures the times of a section."""

    def __init__(self, start: int) -> None:
        """Args: start: when the section began."""
        self._start = self._end = start
        self._spans: list[Span] = []
        self._open: dict[tuple[Lane, str], int] = {}

    def tick(self, at: int) -> None:
        """Record the time of an event."""
        self._end = max(self._end, at)

    def begin_span(self, lane: Lane, name: str, at: int) -> None:
        """Begin a span of `name` in a lane."""
        self._open.setdefault((lane, name), at)

    def end_span(self, lane: Lane, name: str, at: int) -> None:
        """End a span; does nothing if it has not begun."""
        began = self._open.pop((lane, name), None)
        if began is not None:
            self._spans.append(Span(lane, began, max(began, at)))

    def times(self) -> Times:
        """Return the current times; open spans last until the end."""
        ended = [Span(span.lane, span.start, min(span.end, self._end)) for span in self._spans]
        spans = [*ended, *(Span(key[0], at, self._end) for key, at in self._open.items())]
        joined = tuple(span for lane in _LANES for span in _union(lane, spans))
        sums = {lane: sum(s.end - s.start for s in joined if s.lane == lane) for lane in _LANES}
        busy = sum(span.end - span.start for span in _union("model", joined, every=True))
        return Times(
            start=self._start,
            end=self._end,
            spans=joined,
            model=sums["model"],
            tools=sums["tools"],
            user=sums["user"],
            idle=max(0, self._end - self._start - busy),
        )


def sum_times(section_times: Iterable[Times], start: int, end: int) -> Times:
    """Return the sum of the times of consecutive sections, without spans."""
    times = list(section_times)
    return Times(
        start=start,
        end=end,
        model=sum(part.model for part in times),
        tools=sum(part.tools for part in times),
        user=sum(part.user for part in times),
        idle=sum(part.idle for part in times),
    )


def _union(lane: Lane, spans: Iterable[Span], *, every: bool = False) -> Iterator[Span]:
    """Yield the spans of a lane, or of all lanes if `every`, with overlapping ones joined."""
    start = end = -1
    for span in sorted((s for s in spans if every or s.lane == lane), key=lambda s: s.start):
        if span.start <= end:
            end = max(end, span.end)
            continue
        if end >= 0:
            yield Span(lane, start, end)
        start, end = span.start, span.end
    if end >= 0:
        yield Span(lane, start, end)


class ActiveBranch:
    """The numbers of the steps that belong to the conversation after rewinds, in order."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._branches: dict[str, list[int]] = {}  # the branches that rewinds left
        self._messages: dict[str, int] = {}

    def add(self, step: int, message: str = "") -> None:
        """Add a step; `message` is the id of the user message that it shows."""
        self._steps.append(step)
        if message:
            self._messages[message] = step

    def rewind(self, event: Rewound) -> None:
        """Switch to the branch of the point that the rewind goes to."""
        if not event.conversation:
            return
        previous, point = self._steps, self._messages.get(event.to)
        if event.to in self._branches:
            self._steps = list(self._branches[event.to])
        elif point is not None:
            for branch in (previous, *reversed(self._branches.values())):
                if point in branch:
                    self._steps = branch[: branch.index(point) + event.keeps_words]
                    break
        self._branches[event.rewind] = list(previous)

    def steps(self) -> set[int]:
        """Return the steps that no rewind undid."""
        return set(self._steps)
