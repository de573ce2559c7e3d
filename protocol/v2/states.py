"""What a session is doing.

A state stands by itself where it is a field (`StateUpdate` and its variants). As an update of a
session it is one of the types that derive from these (`SessionStateUpdate` and its variants).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec import field

from protocol.codec.tolerance import Lenient, OpenUnion, UnknownVariant, string_in
from protocol.jsonrpc.messages import Error
from protocol.shared.types import SessionId, StopReason, TerminalId, ToolCallId, Usage, Wire
from protocol.v2.options import SessionUpdate

IdleStopReason: TypeAlias = StopReason
_STOP_REASONS = frozenset(get_args(StopReason))


class BackgroundWork(OpenUnion):
    """Work of a session that runs in the background."""

    __slots__ = ()


class BackgroundTerminal(Wire, BackgroundWork, tag="terminal"):
    """A command in a terminal."""

    terminal_id: TerminalId


class BackgroundToolCall(Wire, BackgroundWork, tag="tool_call"):
    """A tool call."""

    tool_call_id: ToolCallId


class BackgroundSubagent(Wire, BackgroundWork, tag="subagent"):
    """UNSTABLE. A child session."""

    session_id: SessionId


class OtherBackgroundWork(UnknownVariant, BackgroundWork):
    """Work of a type not known yet."""

    __slots__ = ()


class StateUpdate(OpenUnion):
    """What a session is doing in the foreground."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its state, and an idle one by why it stopped."""
        return _state_variant(value, _STATES, OtherStateUpdate)


class _State(Wire, StateUpdate):
    # None: the agent does not say what runs in the background; empty: nothing does.
    background: Lenient[Sequence[BackgroundWork] | None] = None


# A default made by a function is always sent. No tags of msgspec's: as a session update a state
# has two, and a struct can have but one.


def _running() -> Literal["running"]:
    return "running"


def _requires_action() -> Literal["requires_action"]:
    return "requires_action"


def _unknown() -> Literal["unknown"]:
    return "unknown"


def _idle() -> Literal["idle"]:
    return "idle"


def _error() -> Literal["error"]:
    return "error"


class RunningStateUpdate(_State):
    """The session is working."""

    state: Literal["running"] = field(default_factory=_running)


class RequiresActionStateUpdate(_State):
    """The session waits for the user."""

    state: Literal["requires_action"] = field(default_factory=_requires_action)


class UnknownStateUpdate(_State):
    """UNSTABLE. The agent cannot tell what the session is doing."""

    state: Literal["unknown"] = field(default_factory=_unknown)


class IdleStateUpdate(_State):
    """The session accepts the next prompt; why it stopped, if known."""

    state: Literal["idle"] = field(default_factory=_idle)
    stop_reason: Lenient[IdleStopReason | None] = None
    usage: Lenient[Usage | None] = None  # UNSTABLE


class ErrorIdleStateUpdate(_State):
    """The session accepts the next prompt; it stopped because of an error: `ErrorStopReason`."""

    state: Literal["idle"] = field(default_factory=_idle)
    stop_reason: Lenient[Literal["error"]] = field(default_factory=_error)
    error: Lenient[Error | None] = None
    usage: Lenient[Usage | None] = None  # UNSTABLE


class OtherIdleStateUpdate(UnknownVariant, StateUpdate):
    """The session accepts the next prompt; it stopped for a reason that is not known yet."""

    __slots__ = ()


class OtherStateUpdate(UnknownVariant, StateUpdate):
    """A state not known yet."""

    __slots__ = ()


class SessionStateUpdate(SessionUpdate):
    """What a session is doing, as one of its updates."""

    __slots__ = ()
    variant_tag = "state_update"

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its state, and an idle one by why it stopped."""
        return _state_variant(value, _SESSION_STATES, OtherSessionStateUpdate)


class SessionRunningUpdate(SessionStateUpdate, RunningStateUpdate, tag="state_update"):
    """The session works."""


class SessionRequiresActionUpdate(
    SessionStateUpdate, RequiresActionStateUpdate, tag="state_update"
):
    """The session waits for the user."""


class SessionUnknownStateUpdate(SessionStateUpdate, UnknownStateUpdate, tag="state_update"):
    """UNSTABLE. The agent cannot tell what the session is doing."""


class SessionIdleUpdate(SessionStateUpdate, IdleStateUpdate, tag="state_update"):
    """The session takes the next prompt."""


class SessionErrorUpdate(SessionStateUpdate, ErrorIdleStateUpdate, tag="state_update"):
    """The session takes the next prompt, and stopped because something failed."""


class OtherSessionIdleUpdate(OtherIdleStateUpdate, SessionStateUpdate):
    """The session takes the next prompt, and stopped for a reason not known yet."""

    __slots__ = ()


class OtherSessionStateUpdate(OtherStateUpdate, SessionStateUpdate):
    """The session is in a state not known yet."""

    __slots__ = ()


StateVariants: TypeAlias = Mapping[tuple[str, Literal["error", "other"] | None], type[OpenUnion]]
# By state and, of the idle ones, by why they stopped: None where the reason has no type of its own.
_STATES: StateVariants = {
    ("running", None): RunningStateUpdate,
    ("requires_action", None): RequiresActionStateUpdate,
    ("unknown", None): UnknownStateUpdate,
    ("idle", None): IdleStateUpdate,
    ("idle", "error"): ErrorIdleStateUpdate,
    ("idle", "other"): OtherIdleStateUpdate,
}
_SESSION_STATES: StateVariants = {
    ("running", None): SessionRunningUpdate,
    ("requires_action", None): SessionRequiresActionUpdate,
    ("unknown", None): SessionUnknownStateUpdate,
    ("idle", None): SessionIdleUpdate,
    ("idle", "error"): SessionErrorUpdate,
    ("idle", "other"): OtherSessionIdleUpdate,
}


def _state_variant(
    value: dict[str, Any], variants: StateVariants, fallback: type[OpenUnion]
) -> type[OpenUnion]:
    """Return the variant that a JSON object with a state is meant to be.

    Args:
        variants: by state and, of the idle ones, by why they stopped.
        fallback: for states that are not known.

    Raises:
        ValueError: it says no state.
    """
    state = string_in(value, "state")
    reason = value.get("stopReason") if state == "idle" else None
    if not isinstance(reason, str) or reason in _STOP_REASONS:
        return variants.get((state, None), fallback)
    return variants["idle", "error" if reason == "error" else "other"]
