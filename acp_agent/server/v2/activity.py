"""What a session is doing in the foreground, told when it changes (v2, StateUpdate)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import TurnEnded
from acp_agent.server.conversion import token_counts
from acp_agent.server.errors import turn_error
from acp_agent.server.notices import interrupted_note, moved_note
from protocol.v2 import types as acp


class Activity:
    """Running, idle, or waiting for the user: which it is follows from what it is fed.

    The whole session waits for the user only where none of its calls is at work beside the
    question. Every state comes with the commands that run in the background, also where there are
    none (Prompt Lifecycle, Background Work).
    """

    def __init__(self, translate: Translator = ENGLISH) -> None:
        self._translate = translate
        self._running = False
        self._at_work: set[str] = set()
        self._asking: set[str] = set()
        self._behind: dict[str, acp.BackgroundTerminal] = {}
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

    def beside(self, told: acp.SessionUpdate) -> Sequence[acp.SessionUpdate]:
        """Something is told by the agent, which goes on for as long as that, whoever it waits for.

        So it answers a command of its own while a call waits for the user.
        """
        if self._told != "requires_action":
            return [told]
        return [self._update("running"), told, self._as_told()]

    def ends(self, event: TurnEnded | None) -> Sequence[acp.SessionUpdate]:
        """The turn ended; None: it was cut off. Nothing where its end was told before."""
        self._running = False
        self._at_work.clear()
        self._asking.clear()
        if self._told == "idle":
            return []
        self._told = "idle"
        return [self._cut() if event is None else self._idle(event)]

    def moves(self) -> Sequence[acp.SessionUpdate]:
        """Another client has the session from now on, with what it is doing."""
        if self._told == "idle":
            return []
        self._told = "idle"
        error = turn_error(moved_note(self._translate), "")
        return [acp.SessionErrorUpdate(error=error, background=self._background())]

    def goes_behind(self, terminal: str) -> Sequence[acp.SessionUpdate]:
        """A command goes on behind its call."""
        self._behind[terminal] = acp.BackgroundTerminal(terminal_id=terminal)
        return [self._as_told()]

    def left_behind(self, terminal: str) -> Sequence[acp.SessionUpdate]:
        """A command that went on behind its call has ended."""
        return [] if self._behind.pop(terminal, None) is None else [self._as_told()]

    @property
    def waits_for_user(self) -> bool:
        """Whether nothing goes on before the user answers."""
        return self._state() == "requires_action"

    @property
    def at_rest(self) -> bool:
        """Whether nothing is done, in the background either."""
        return not (self._running or self._behind)

    def now(self) -> acp.SessionUpdate:
        """What the session is doing now, for a client that missed what was told."""
        return self._update(self._state())

    def _as_told(self) -> acp.SessionUpdate:
        """What was told last, with what runs in the background now."""
        return self._update(self._told)

    def _update(self, state: Literal["running", "requires_action", "idle"]) -> acp.SessionUpdate:
        background = self._background()
        match state:
            case "running":
                return acp.SessionRunningUpdate(background=background)
            case "requires_action":
                return acp.SessionRequiresActionUpdate(background=background)
            case "idle":
                return acp.SessionIdleUpdate(background=background)

    def _background(self) -> Sequence[acp.BackgroundTerminal]:
        return list(self._behind.values())

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

    def _cut(self) -> acp.SessionUpdate:
        error = turn_error(interrupted_note(self._translate)[0], "")
        return acp.SessionErrorUpdate(error=error, background=self._background())

    def _idle(self, event: TurnEnded) -> acp.SessionUpdate:
        usage = None if event.usage is None else acp.Usage(**token_counts(event.usage))
        background = self._background()
        if event.error:
            error = turn_error(event.error, event.error_kind)
            return acp.SessionErrorUpdate(error=error, usage=usage, background=background)
        return acp.SessionIdleUpdate(
            stop_reason=event.stop_reason, usage=usage, background=background
        )
