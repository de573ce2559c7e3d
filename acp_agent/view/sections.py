"""The turns of a session, and what is between them, as they grow with its events."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent import events
from acp_agent.session.store.records import StoredEvent
from acp_agent.view.anchors import Anchors
from acp_agent.view.page import Section
from acp_agent.view.spending import Request, Spend
from acp_agent.view.steps import (
    AgentSaid,
    AgentThought,
    Compaction,
    Note,
    Plan,
    Rewind,
    Step,
    children_of,
    every_step,
)
from acp_agent.view.timing import Clock
from acp_agent.view.undone import Line


class Sections:
    """Puts steps in their section, which is a new one where the last has ended.

    Attributes:
        at: the time of the event that is being read.
        seq: its place in the session.
    """

    def __init__(self, anchors: Anchors, parent: Sections | None = None) -> None:
        """There is none yet.

        Args:
            anchors: gives turns their ids.
            parent: of a child session: whose clock its times are on.
        """
        self.at = 0
        self.seq = 0
        self._anchors = anchors
        self._parent = parent
        self._all: list[Section] = []
        self._clocks: list[Clock] = []
        self._turns: dict[str, Section] = {}
        self._number = 0  # of the last turn
        self._goes_on = False  # the last section
        self._line = Line()
        self._said: list[Step] = []  # what the line is of

    @property
    def now(self) -> Section:
        """The section that goes on; a new one between turns where none does."""
        if not self._goes_on:
            self._begin_between()
        return self._all[-1]

    @property
    def clock(self) -> Clock:
        """The clock of the section that goes on."""
        if self._parent is not None:
            return self._parent.clock
        if not self._goes_on:
            self._begin_between()
        return self._clocks[-1]

    def go_on(self, item: StoredEvent) -> None:
        """The next event is read."""
        self.at, self.seq = item.at, item.seq
        if self._goes_on and not _is_aftermath(item.event):
            self._clocks[-1].tick(item.at)

    def begin_turn(self, event: events.TurnStarted) -> None:
        """A turn began."""
        self._number += 1
        anchor = self._anchors.turn(self._number) if self._parent is None else ""
        section = Section(anchor=anchor, number=self._number, start=self.at)
        self._turns[event.turn] = section
        self._begin(section)

    def end_turn(self, outcome: str, error: str = "") -> None:
        """The section that goes on has ended."""
        section = self.now
        section.outcome, section.error = outcome, error
        self._goes_on = False

    def interrupt(self, event: events.TurnInterrupted) -> None:
        """The process died in a turn."""
        section = self._turns.get(event.turn) or self.now
        section.outcome = "interrupted"
        self._goes_on = False

    def add(self, step: Step, message: str = "") -> None:
        """A further step; `message` is the id of the user's message that it shows."""
        section = self.now
        section.steps.append(step)
        # Notices, titles and settings are none of what a conversation is taken back by. Of a
        # command that the agent answers by itself a summary is.
        if isinstance(step, Compaction) or not (section.local or isinstance(step, Note | Rewind)):
            self._line.add(len(self._said), message)
            self._said.append(step)

    def go_back(self, event: events.Rewound) -> None:
        """The conversation went back."""
        self._line.go_back(event)

    def finish(self) -> list[Section]:
        """All of them, when every event was read and every step has its text."""
        kept = self._line.steps()
        for number, step in enumerate(self._said):
            step.undone = number not in kept
        for section, clock in zip(self._all, self._clocks, strict=True):
            section.steps = [step for step in section.steps if not _is_empty(step)]
            section.times = clock.times()
            section.spend = _spend(section.requests)
            for child in (one for step in section.steps for one in children_of(step)):
                section.spend.add(child.spend)
            said = [step for step in section.steps if not isinstance(step, Note | Rewind)]
            section.undone = bool(said) and all(step.undone for step in said)
            plans = [step for step in section.steps if isinstance(step, Plan)]
            if plans:
                plans[-1].last = True
        for step in self._said:
            for inner in every_step([step]) if step.undone else ():
                inner.undone = True
        return [section for section in self._all if section.number is not None or section.steps]

    def _begin_between(self) -> None:
        anchor = "" if self._parent else self._anchors.for_id(f"between-{self._number}")
        self._begin(Section(anchor=anchor, number=None, start=self.at))

    def _begin(self, section: Section) -> None:
        self._all.append(section)
        self._clocks.append(Clock(self.at))
        self._goes_on = True


def _is_aftermath(event: object) -> bool:
    """Whether an event was written when the session was opened after its process had died.

    What a child session is doing is also told then, and else at once with what it does.
    """
    event = events.of_a_child(event) if isinstance(event, events.ChildWorked) else event
    return (
        isinstance(event, events.TurnInterrupted | events.SubagentChanged)
        or (isinstance(event, events.BackgroundCommandChanged) and event.status == "lost")
        or (isinstance(event, events.CompactionChanged) and event.status == "failed")
    )


def _is_empty(step: Step) -> bool:
    if isinstance(step, Note):
        return not step.what  # what it told is shown in another way
    return isinstance(step, AgentSaid | AgentThought) and not step.text.strip()


def _spend(requests: Sequence[Request]) -> Spend:
    spend = Spend()
    for one in requests:
        priced = one.cost is not None or not one.usage
        spend.add(
            Spend(usage=one.usage, cost=one.cost or 0.0, requests=1, unpriced=0 if priced else 1)
        )
    return spend
