"""What a session is doing, sent when it changes (Agent Client Protocol v2, StateUpdate)."""

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
    """Derives the state of a session from its events: running, idle, or waiting for the user.

    The session waits for the user only if no other call is running. Every state lists the commands
    in the background, even if there are none (Prompt Lifecycle, Background Work).
    """

    def __init__(self, translate: Translator = ENGLISH) -> None:
        self._translate = translate
        self._running = False
        self._running_calls: set[str] = set()
        self._waiting_calls: set[str] = set()
        self._background_commands: dict[str, acp.BackgroundTerminal] = {}
        self._sent: Literal["running", "requires_action", "idle"] = "idle"

    def turn_started(self) -> Sequence[acp.SessionUpdate]:
        """Start a turn."""
        self._running = True
        return self._state_change()

    def call_started(self, call: str) -> Sequence[acp.SessionUpdate]:
        """Start a call."""
        self._running_calls.add(call)
        return self._state_change()

    def call_waits(self, call: str) -> Sequence[acp.SessionUpdate]:
        """Note that a call waits for the user."""
        self._waiting_calls.add(call)
        return self._state_change()

    def call_answered(self, call: str) -> Sequence[acp.SessionUpdate]:
        """Note that a call no longer waits for the user."""
        self._waiting_calls.discard(call)
        return self._state_change()

    def call_ended(self, call: str, *, cancelled: bool = False) -> Sequence[acp.SessionUpdate]:
        """End a call. After a cancelled one it is not yet known whether the turn continues."""
        self._running_calls.discard(call)
        self._waiting_calls.discard(call)
        return [] if cancelled else self._state_change()

    def model_asked(self) -> Sequence[acp.SessionUpdate]:
        """Note a request to the model."""
        return self._state_change()

    def message_sent(self, update: acp.SessionUpdate) -> Sequence[acp.SessionUpdate]:
        """Return `update`, a message of the agent, within a running state.

        The agent may answer a slash command while a call waits for the user.
        """
        if self._sent != "requires_action":
            return [update]
        return [self._update("running"), update, self._resend()]

    def turn_ended(self, event: TurnEnded | None) -> Sequence[acp.SessionUpdate]:
        """End the turn, which was cut off if `event` is None. Does nothing a second time."""
        self._running = False
        self._running_calls.clear()
        self._waiting_calls.clear()
        if self._sent == "idle":
            return []
        self._sent = "idle"
        return [self._cut_off_state() if event is None else self._idle_state(event)]

    def moved_away(self) -> Sequence[acp.SessionUpdate]:
        """Move the session, with its running turn, to another client."""
        if self._sent == "idle":
            return []
        self._sent = "idle"
        error = turn_error(moved_note(self._translate), "")
        return [acp.SessionErrorUpdate(error=error, background=self._background())]

    def command_backgrounded(self, terminal: str) -> Sequence[acp.SessionUpdate]:
        """Note that a command continues in the background."""
        self._background_commands[terminal] = acp.BackgroundTerminal(terminal_id=terminal)
        return [self._resend()]

    def background_ended(self, terminal: str) -> Sequence[acp.SessionUpdate]:
        """End a command in the background."""
        return [] if self._background_commands.pop(terminal, None) is None else [self._resend()]

    @property
    def waits_for_user(self) -> bool:
        """Whether nothing continues before the user answers."""
        return self._state() == "requires_action"

    @property
    def is_at_rest(self) -> bool:
        """Whether no turn runs, and no command in the background."""
        return not (self._running or self._background_commands)

    def now(self) -> acp.SessionUpdate:
        """Return the current state, for a client that missed earlier ones."""
        return self._update(self._state())

    def _resend(self) -> acp.SessionUpdate:
        """Return the state that was sent last, with the current background commands."""
        return self._update(self._sent)

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
        return list(self._background_commands.values())

    def _state(self) -> Literal["running", "requires_action", "idle"]:
        if not self._running:
            return "idle"
        blocked = self._waiting_calls and self._running_calls <= self._waiting_calls
        return "requires_action" if blocked else "running"

    def _state_change(self) -> Sequence[acp.SessionUpdate]:
        state = self._state()
        if state == self._sent:
            return []
        self._sent = state
        return [self.now()]

    def _cut_off_state(self) -> acp.SessionUpdate:
        error = turn_error(interrupted_note(self._translate)[0], "")
        return acp.SessionErrorUpdate(error=error, background=self._background())

    def _idle_state(self, event: TurnEnded) -> acp.SessionUpdate:
        usage = None if event.usage is None else acp.Usage(**token_counts(event.usage))
        background = self._background()
        if event.error:
            error = turn_error(event.error, event.error_kind)
            return acp.SessionErrorUpdate(error=error, usage=usage, background=background)
        return acp.SessionIdleUpdate(
            stop_reason=event.stop_reason, usage=usage, background=background
        )
