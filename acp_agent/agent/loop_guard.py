"""Notices that a model goes round in circles.

Three kinds of loops are known. `repeat`: the same call with the same result, one after the other.
`cycle`: a few calls that come again in the same order with the same results. `errors`: calls of one
tool that fail with the same error, whatever they were made with.

What makes a difference is no loop: a call with other arguments or another result in between ends a
repeat and a cycle; a change of a file, or a call of the tool that works, ends a row of errors.
Looking again and again at something that takes its time is no loop either: a tool that says so
(`Tool.polls`), a command that sleeps or waits.

What the user says may change everything: what was counted before it counts at most up to the point
at which the model would be told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from acp_agent.agent.loop_steps import Step, step_of
from acp_agent.events import (
    Event,
    LoopKind,
    LoopNoticed,
    LoopStep,
    ToolCalled,
    ToolEnded,
    ToolKind,
    TurnEnded,
    TurnInterrupted,
    UserMessage,
)
from acp_agent.ids import CallId

LONGEST_CYCLE = 6  # calls
MOST_ROUNDS = 40
_LEAST_ROUNDS = 2  # a single call goes round nowhere
_KEPT = LONGEST_CYCLE * MOST_ROUNDS
_CHANGES: tuple[ToolKind, ...] = ("edit", "delete", "move")
_WAITS = r"(?:^|[;&|({\"\s]|\\n)(?:sleep|wait|watch|inotifywait|tail\s(?:[^;&|]*\s)?-\w*[fF])\b"


_Call = tuple[ToolCalled, ToolEnded]
_HEEDED = {ToolCalled, ToolEnded, UserMessage, LoopNoticed, TurnEnded, TurnInterrupted}


class Loop(NamedTuple):
    """A loop at the end of what happened: how often it went round, and over how many calls."""

    kind: LoopKind
    rounds: int
    span: int
    call: CallId
    tool: str


class Patience(NamedTuple):
    """After how many rounds which step is due; 0: never."""

    told: int = 3
    asked: int = 5
    stopped: int = 8

    def steps(self) -> list[tuple[LoopStep, int]]:
        """Each step that is taken at all, with its number of rounds.

        One that is due later than a step behind it never is: that one comes first.
        """
        steps: list[tuple[LoopStep, int]] = [
            ("told", self.told),
            ("asked", self.asked),
            ("stopped", self.stopped),
        ]
        taken = [(step, max(rounds, _LEAST_ROUNDS)) for step, rounds in steps if rounds]
        return [
            (step, rounds)
            for place, (step, rounds) in enumerate(taken)
            if all(rounds <= later for _, later in taken[place + 1 :])
        ]


class LoopGuard:
    """Follows from a session's events alone. Feed it every event, in order."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._new: list[_Call] = []  # those that are no steps yet: most are never looked at
        self._count = 0  # of all steps ever
        self._open: dict[CallId, ToolCalled] = {}  # in the order in which they were made
        self._ends: dict[CallId, ToolEnded] = {}
        self._words_at = 0  # the count of steps when the user spoke last
        self._last = CallId("")
        self._noticed: LoopNoticed | None = None
        self._noticed_at = 0

    def take(self, events: Iterable[Event]) -> None:
        """Take further events in."""
        for event in events:
            kind = type(event)
            if kind in _HEEDED:
                self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case ToolCalled():
                self._open[event.call] = event
            case ToolEnded() if event.call in self._open:
                self._ends[event.call] = event
                if len(self._ends) == len(self._open):
                    self._ended()
            case UserMessage() if not event.local:
                self._heard_words()
            case LoopNoticed():
                self._noticed, self._noticed_at = event, self._count
                if event.decision == "said":
                    self._heard_words()
            case TurnEnded() | TurnInterrupted():
                self._open.clear()
                self._ends.clear()
            case _:
                pass

    def _heard_words(self) -> None:
        self._words_at, self._noticed = self._count, None

    def _ended(self) -> None:
        """Calls of one answer count in their order, however they end: so when all have."""
        for call, called in self._open.items():
            end = self._ends[call]
            if not end.cancelled:  # what the user stopped is nobody's loop
                self._new.append((called, end))
                self._count += 1
                self._last = call
        self._open.clear()
        self._ends.clear()
        if len(self._new) > 2 * _KEPT:
            del self._new[:-_KEPT]

    def _look(self) -> None:
        """Make steps of what has ended since the last time."""
        self._steps += [step_of(called, ended) for called, ended in self._new]
        self._new.clear()
        del self._steps[:-_KEPT]

    def due(
        self, patience: Patience, polls: Callable[[str], bool] = lambda _: False
    ) -> tuple[LoopStep, Loop] | None:
        """The step that is due now, and why; None where nothing goes round in circles.

        No step is left out: a user is not asked about what the model was never told.

        Args:
            patience: after how many rounds.
            polls: whether calling the tool of this name again and again is its use.
        """
        steps = patience.steps()
        if not steps:
            return None
        self._look()
        loop = self._loop(polls, forgiven=max(0, steps[0][1] - 1))
        if loop is None:
            return None
        taken = 0
        if self._noticed is not None:
            since = self._count - self._noticed_at
            if since < loop.span:  # it goes on, whatever kind of loop it is by now
                names = [step for step, _ in steps]
                taken = names.index(self._noticed.step) + 1 if self._noticed.step in names else 0
        if taken < len(steps) and loop.rounds >= steps[taken][1]:
            return steps[taken][0], loop
        return None

    def _loop(self, polls: Callable[[str], bool], forgiven: int) -> Loop | None:
        """The loop that went round most often."""
        found = [self._cycle(period, polls, forgiven) for period in range(1, LONGEST_CYCLE + 1)]
        found.append(self._errors(polls, forgiven))
        loops = [loop for loop in found if loop is not None]
        return max(loops, key=lambda loop: loop.rounds, default=None)

    def _cycle(self, period: int, polls: Callable[[str], bool], forgiven: int) -> Loop | None:
        steps = self._steps
        block = steps[-period:]
        if len(block) < period or any(_waits(step, polls) for step in block):
            return None
        rounds = 1
        while steps[-(rounds + 1) * period : -rounds * period] == block:
            rounds += 1
        after = min(self._count - self._words_at, rounds * period) // period
        return Loop(
            kind="repeat" if period == 1 else "cycle",
            rounds=after + min(rounds - after, forgiven),
            span=rounds * period,
            call=self._last,
            tool=block[-1].name,
        )

    def _errors(self, polls: Callable[[str], bool], forgiven: int) -> Loop | None:
        last = self._steps[-1] if self._steps else None
        if last is None or not last.failed or last.is_silent or _waits(last, polls):
            return None
        before = after = span = 0
        for back, step in enumerate(reversed(self._steps), 1):
            if step.name == last.name:
                if not step.failed or step.result != last.result:
                    break
                if back <= self._count - self._words_at:
                    after += 1
                else:
                    before += 1
                span = back
            elif step.kind in _CHANGES and not step.failed:
                break
        return Loop(
            kind="errors",
            rounds=after + min(before, forgiven),
            span=span,
            call=self._last,
            tool=last.name,
        )


def _waits(step: Step, polls: Callable[[str], bool]) -> bool:
    if step.kind == "execute" and re.search(_WAITS, step.arguments):
        return True
    return polls(step.name)
