"""Detect that a model repeats itself without progress.

There are three kinds of loops:

- `repeat`: the same call with the same result, several times in a row.
- `cycle`: a few calls that repeat in the same order with the same results.
- `errors`: calls of one tool that fail with the same error, with any arguments.

A call with other arguments or another result ends a repeat and a cycle. A changed file, or a
successful call of the same tool, ends a series of errors. Polling is not a loop: this covers tools
made for polling (`Tool.polls`) and commands that sleep or wait.

After a message of the user, the rounds before it no longer suffice for the first step; at least one
more round is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

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

MAX_CYCLE = 6  # calls
MAX_ROUNDS = 40
_MIN_ROUNDS = 2  # a single call is no loop
_MAX_STEPS = MAX_CYCLE * MAX_ROUNDS
_CHANGES: tuple[ToolKind, ...] = ("edit", "delete", "move")
_WAITS = r"(?:^|[;&|({\"\s]|\\n)(?:sleep|wait|watch|inotifywait|tail\s(?:[^;&|]*\s)?-\w*[fF])\b"


_Call = tuple[ToolCalled, ToolEnded]
_EVENTS = {ToolCalled, ToolEnded, UserMessage, LoopNoticed, TurnEnded, TurnInterrupted}
_WORD = re.compile(r"[\w./~@+-]+")
_MIN_WORD = 3  # characters; shorter words of arguments are not removed from an error
_MAX_ARGUMENT = 10_000  # characters of an argument that are split into words
_TIMES = re.compile(
    r"(?<![\w.])\d+(?:\.\d+)? ?(?:[nmu\u00b5]?s|secs?|seconds?|min|minutes?)\b"
    r"|(?<!\d)\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?!\d)"
    r"|\b0x[0-9a-f]{6,}\b"  # a memory address
)


class Loop(NamedTuple):
    """A loop in the latest calls: `rounds` repetitions over `span` calls."""

    kind: LoopKind
    rounds: int
    span: int
    call: CallId
    tool: str


class LoopLimits(NamedTuple):
    """The number of rounds after which each step is due; 0 means never."""

    warn: int = 3
    ask: int = 5
    stop: int = 8

    def steps(self) -> list[tuple[LoopStep, int]]:
        """Return the steps that can be due, each with its number of rounds.

        A step that needs more rounds than a later step is never due.
        """
        steps: list[tuple[LoopStep, int]] = [
            ("told", self.warn),
            ("asked", self.ask),
            ("stopped", self.stop),
        ]
        enabled = [(step, max(rounds, _MIN_ROUNDS)) for step, rounds in steps if rounds]
        return [
            (step, rounds)
            for index, (step, rounds) in enumerate(enabled)
            if all(rounds <= later for _, later in enabled[index + 1 :])
        ]


class LoopDetector:
    """Detects loops in a session's events. Feed it every event, in order."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._new: list[_Call] = []  # not converted to steps yet, which is rarely needed
        self._count = 0  # the number of all steps so far
        self._open: dict[CallId, ToolCalled] = {}  # in the order of the calls
        self._ends: dict[CallId, ToolEnded] = {}
        self._message_at = 0  # the count of steps at the user's last message
        self._last = CallId("")
        self._noticed: LoopNoticed | None = None
        self._noticed_at = 0

    def feed(self, events: Iterable[Event]) -> None:
        """Apply more events."""
        for event in events:
            kind = type(event)
            if kind in _EVENTS:
                self._apply(event)

    def _apply(self, event: Event) -> None:
        match event:
            case ToolCalled() if not event.provider:
                self._open[event.call] = event
            case ToolEnded() if event.call in self._open:
                self._ends[event.call] = event
                if len(self._ends) == len(self._open):
                    self._end_answer()
            case UserMessage() if not event.local:
                self._note_message()
            case LoopNoticed():
                self._noticed, self._noticed_at = event, self._count
                if event.decision == "said":
                    self._note_message()
            case TurnEnded() | TurnInterrupted():
                self._open.clear()
                self._ends.clear()

    def _note_message(self) -> None:
        self._message_at, self._noticed = self._count, None

    def _end_answer(self) -> None:
        """Add the calls of one answer in their order, after all of them have ended."""
        for call, called in self._open.items():
            end = self._ends[call]
            if not end.cancelled:  # a call that the user stopped does not count
                self._new.append((called, end))
                self._count += 1
                self._last = call
        self._open.clear()
        self._ends.clear()
        if len(self._new) > 2 * _MAX_STEPS:
            del self._new[:-_MAX_STEPS]

    def next_step(
        self, limits: LoopLimits, polls: Callable[[str], bool] = lambda _: False
    ) -> tuple[LoopStep, Loop] | None:
        """Return the step that is due now and its loop, or None.

        Steps are not skipped: the model is warned before the user is asked.

        Args:
            limits: the number of rounds after which each step is due.
            polls: returns whether the tool with this name is meant to be called repeatedly.
        """
        steps = limits.steps()
        if not steps:
            return None
        self._steps += [make_step(called, ended) for called, ended in self._new]
        self._new.clear()
        del self._steps[:-_MAX_STEPS]
        loop = self._loop(polls, forgiven=max(0, steps[0][1] - 1))
        if loop is None:
            return None
        step_index = 0
        if self._noticed is not None:
            since = self._count - self._noticed_at
            if since < loop.span:  # the same loop, even if its kind has changed
                names = [step for step, _ in steps]
                step_index = (
                    names.index(self._noticed.step) + 1 if self._noticed.step in names else 0
                )
        if step_index < len(steps) and loop.rounds >= steps[step_index][1]:
            return steps[step_index][0], loop
        return None

    def _loop(self, polls: Callable[[str], bool], forgiven: int) -> Loop | None:
        """Return the loop with the most rounds."""
        candidates = [self._cycle(period, polls, forgiven) for period in range(1, MAX_CYCLE + 1)]
        candidates.append(self._errors(polls, forgiven))
        loops = [loop for loop in candidates if loop is not None]
        return max(loops, key=lambda loop: loop.rounds, default=None)

    def _cycle(self, period: int, polls: Callable[[str], bool], forgiven: int) -> Loop | None:
        steps = self._steps
        block = steps[-period:]
        if len(block) < period or any(_waits(step, polls) for step in block):
            return None
        rounds = 1
        while steps[-(rounds + 1) * period : -rounds * period] == block:
            rounds += 1
        after = min(self._count - self._message_at, rounds * period) // period
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
        for distance, step in enumerate(reversed(self._steps), 1):
            if step.name == last.name:
                if not step.failed or step.result != last.result:
                    break
                if distance <= self._count - self._message_at:
                    after += 1
                else:
                    before += 1
                span = distance
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


class Step(NamedTuple):
    """A call that ended, in a form for comparison.

    The arguments are sorted. Words of the arguments and times are removed from the result of a
    failed call. A successful result is not changed: the model may have asked for the time.
    """

    name: str
    arguments: str
    result: str
    failed: bool
    kind: ToolKind = "other"
    is_silent: bool = False  # the call failed without output


def make_step(called: ToolCalled, end: ToolEnded) -> Step:
    """Return the step for a call and its end."""
    # A long result names the file with the whole text, and that name contains the call's id.
    result = end.result.replace(called.call, "") if called.call in end.result else end.result
    try:
        decoded: object = msgspec.json.decode(called.arguments)
        arguments = msgspec.json.encode(decoded, order="sorted").decode()
    except (msgspec.MsgspecError, RecursionError):
        decoded, arguments = None, called.arguments.strip()
    return Step(
        name=called.name,
        arguments=arguments,
        result=_error(result, decoded) if end.failed else result,
        failed=end.failed,
        kind=called.kind,
        is_silent=end.exit_code is not None and end.result.startswith("[no output"),
    )


def _error(text: str, decoded: object) -> str:
    """Return an error without words of the arguments, so that errors for other paths are equal."""
    values = decoded.values() if isinstance(decoded, dict) else ()
    texts = {value for value in values if isinstance(value, str)}
    for phrase in sorted(
        (phrase for phrase in texts if phrase and phrase in text), key=len, reverse=True
    ):
        text = re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", "\u2026", text)
    words = {word.rstrip(".") for phrase in texts for word in _WORD.findall(phrase[:_MAX_ARGUMENT])}

    def without(match: re.Match[str]) -> str:
        word = match[0].rstrip(".")
        return "\u2026" if len(word) >= _MIN_WORD and word in words else match[0]

    return _TIMES.sub("\u2026", _WORD.sub(without, text))
