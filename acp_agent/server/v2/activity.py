"""What a session is doing in the foreground, told when it changes (v2, StateUpdate)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from acp_agent.events import TurnEnded
from acp_agent.server.errors import turn_error
from acp_agent.server.interrupted import INTERRUPTED_TITLE
from acp_agent.server.usage import token_counts
from protocol.v2 import types as acp


class Activity:
    """Running, idle, or waiting for the user: which it is follows from what it is fed.

    The whole session waits for the user only where none of its calls is at work beside the
    question.
    """

    def __init__(self) -> None:
        self._running = False
        self._at_work: set[str] = set()
        self._asking: set[str] = set()
        self._told: Literal["running", "requires_action", "idle"] = "idle"

    def begins(self) -> Sequence[acp.SessionUpdate]:
        """A turn began."""
        self._running = True
        return self._changed()

    def works(self, call: str) -> Sequence[acp.SessionUpdate]:
        """A call began to run."""
        self._at_work.add(call)
        return self._changed()

    def asks(self, call: str) -> Sequence[acp.SessionUpdate]:
        """A call waits for the user."""
        self._asking.add(call)
        return self._changed()

    def answered(self, call: str) -> Sequence[acp.SessionUpdate]:
        """A call does not wait for the user any more."""
        self._asking.discard(call)
        return self._changed()

    def rests(self, call: str, *, cancelled: bool = False) -> Sequence[acp.SessionUpdate]:
        """A call ended. Whether the work goes on after one that was cancelled is not known yet."""
        self._at_work.discard(call)
        self._asking.discard(call)
        return [] if cancelled else self._changed()

    def goes_on(self) -> Sequence[acp.SessionUpdate]:
        """The model is asked."""
        return self._changed()

    def ends(self, event: TurnEnded | None) -> Sequence[acp.SessionUpdate]:
        """The turn ended; None: it was cut off. Nothing where its end was told before."""
        self._running = False
        self._at_work.clear()
        self._asking.clear()
        if self._told == "idle":
            return []
        self._told = "idle"
        return [_cut() if event is None else _idle(event)]

    def now(self) -> acp.SessionUpdate:
        """What the session is doing now, for a client that missed what was told."""
        match self._state():
            case "running":
                return acp.SessionRunningUpdate()
            case "requires_action":
                return acp.SessionRequiresActionUpdate()
            case "idle":
                return acp.SessionIdleUpdate()

    def _state(self) -> Literal["running", "requires_action", "idle"]:
        if not self._running:
            return "idle"
        blocked = self._asking and self._at_work <= self._asking
        return "requires_action" if blocked else "running"

    def _changed(self) -> Sequence[acp.SessionUpdate]:
        state = self._state()
        if state == self._told:
            return []
        self._told = state
        return [self.now()]


def _cut() -> acp.SessionUpdate:
    return acp.SessionErrorUpdate(error=turn_error(INTERRUPTED_TITLE, ""))


def _idle(event: TurnEnded) -> acp.SessionUpdate:
    usage = None if event.usage is None else acp.Usage(**token_counts(event.usage))
    if event.error:
        return acp.SessionErrorUpdate(error=turn_error(event.error, event.error_kind), usage=usage)
    return acp.SessionIdleUpdate(stop_reason=event.stop_reason, usage=usage)
