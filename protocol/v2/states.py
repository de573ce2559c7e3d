"""What a session is doing, each time the whole of it: running, idle, waiting for the user.

A state stands by itself where it is a field (`StateUpdate` and its variants). As a `state_update`
it is one of the types that `session_states` derives from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import field

from protocol.codec.marks import Lenient
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.jsonrpc.messages import Error
from protocol.v2.base import SessionId, TerminalId, ToolCallId, UInt64, Wire

# Those that say no more than their name; `error` has a type of its own.
IdleStopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"
]
StateVariants: TypeAlias = Mapping[tuple[str, Literal["error", "other"] | None], type[OpenUnion]]
_STOP_REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}


class BackgroundWork(OpenUnion):
    """Something that runs beside a session's foreground work."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type."""
        return _BACKGROUND.get(string_in(value, "type"), OtherBackgroundWork)


class BackgroundTerminal(
    Wire, BackgroundWork, frozen=True, kw_only=True, tag_field="type", tag="terminal"
):
    """A command in a terminal."""

    terminal_id: TerminalId


class BackgroundToolCall(
    Wire, BackgroundWork, frozen=True, kw_only=True, tag_field="type", tag="tool_call"
):
    """A tool call."""

    tool_call_id: ToolCallId


class BackgroundSubagent(
    Wire, BackgroundWork, frozen=True, kw_only=True, tag_field="type", tag="subagent"
):
    """UNSTABLE. A child session."""

    session_id: SessionId


class OtherBackgroundWork(UnknownVariant, BackgroundWork):
    """Work of a type not known yet."""

    __slots__ = ()


_BACKGROUND: dict[str, type[BackgroundWork]] = {
    "terminal": BackgroundTerminal,
    "tool_call": BackgroundToolCall,
    "subagent": BackgroundSubagent,
}


class Usage(Wire, frozen=True, kw_only=True):
    """UNSTABLE. Tokens that were used; those with a None are not counted apart."""

    total_tokens: UInt64
    input_tokens: UInt64
    output_tokens: UInt64
    thought_tokens: Lenient[UInt64 | None] = None
    cached_read_tokens: Lenient[UInt64 | None] = None
    cached_write_tokens: Lenient[UInt64 | None] = None


class StateUpdate(OpenUnion):
    """What a session is doing in the foreground."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its state, and an idle one by why it stopped."""
        return state_variant(value, _STATES, OtherStateUpdate)


class _State(Wire, StateUpdate, frozen=True, kw_only=True):
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


class RunningStateUpdate(_State, frozen=True, kw_only=True):
    """It works."""

    state: Literal["running"] = field(default_factory=_running)


class RequiresActionStateUpdate(_State, frozen=True, kw_only=True):
    """It waits for the user."""

    state: Literal["requires_action"] = field(default_factory=_requires_action)


class UnknownStateUpdate(_State, frozen=True, kw_only=True):
    """UNSTABLE. The agent cannot tell what it is doing."""

    state: Literal["unknown"] = field(default_factory=_unknown)


class IdleStateUpdate(_State, frozen=True, kw_only=True):
    """It takes the next prompt; why it stopped, where that is said."""

    state: Literal["idle"] = field(default_factory=_idle)
    stop_reason: Lenient[IdleStopReason | None] = None
    usage: Lenient[Usage | None] = None  # UNSTABLE


class ErrorIdleStateUpdate(_State, frozen=True, kw_only=True):
    """It takes the next prompt, and stopped because something failed: `ErrorStopReason`."""

    state: Literal["idle"] = field(default_factory=_idle)
    stop_reason: Lenient[Literal["error"]] = field(default_factory=_error)
    error: Lenient[Error | None] = None
    usage: Lenient[Usage | None] = None  # UNSTABLE


class OtherIdleStateUpdate(UnknownVariant, StateUpdate):
    """It takes the next prompt, and stopped for a reason not known yet."""

    __slots__ = ()


class OtherStateUpdate(UnknownVariant, StateUpdate):
    """A state not known yet."""

    __slots__ = ()


# By state and, of the idle ones, by why they stopped: None where the reason has no type of its own.
_STATES: StateVariants = {
    ("running", None): RunningStateUpdate,
    ("requires_action", None): RequiresActionStateUpdate,
    ("unknown", None): UnknownStateUpdate,
    ("idle", None): IdleStateUpdate,
    ("idle", "error"): ErrorIdleStateUpdate,
    ("idle", "other"): OtherIdleStateUpdate,
}


def state_variant(
    value: dict[str, Any], variants: StateVariants, other: type[OpenUnion]
) -> type[OpenUnion]:
    """The variant that a JSON object with a state is meant to be.

    Args:
        value: the object.
        variants: by state and, of the idle ones, by why they stopped.
        other: for states that are not known.

    Raises:
        ValueError: it says no state.
    """
    state = string_in(value, "state")
    reason = value.get("stopReason") if state == "idle" else None
    if not isinstance(reason, str) or reason in _STOP_REASONS:
        return variants.get((state, None), other)
    return variants["idle", "error" if reason == "error" else "other"]
