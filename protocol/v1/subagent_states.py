"""UNSTABLE: what a child session is doing, each time the whole of it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from protocol.codec.marks import Lenient
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.jsonrpc.messages import Error
from protocol.v1.base import Wire
from protocol.v1.sessions import StopReason, Usage
from protocol.v1.subagents import StateUpdate

_STOP_REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}


class RunningStateUpdate(
    Wire, StateUpdate, frozen=True, kw_only=True, tag_field="state", tag="running"
):
    """The child works."""


class RequiresActionStateUpdate(
    Wire, StateUpdate, frozen=True, kw_only=True, tag_field="state", tag="requires_action"
):
    """The child waits for the user."""


class UnknownStateUpdate(
    Wire, StateUpdate, frozen=True, kw_only=True, tag_field="state", tag="unknown"
):
    """The agent cannot tell what the child is doing."""


class IdleStateUpdate(Wire, StateUpdate, frozen=True, kw_only=True, tag_field="state", tag="idle"):
    """The child waits for its next task; why it stopped, where that is known."""

    stop_reason: Lenient[StopReason | None] = None
    usage: Lenient[Usage | None] = None


def _error() -> Literal["error"]:
    return "error"


class ErrorIdleStateUpdate(
    Wire, StateUpdate, frozen=True, kw_only=True, tag_field="state", tag="idle"
):
    """The child stopped because something failed: `ErrorStopReason`."""

    # A default made by a function is always sent.
    stop_reason: Lenient[Literal["error"]] = field(default_factory=_error)
    error: Lenient[Error | None] = None
    usage: Lenient[Usage | None] = None


class OtherIdleStateUpdate(UnknownVariant, StateUpdate):
    """The child stopped for a reason not known yet."""

    __slots__ = ()


class OtherStateUpdate(UnknownVariant, StateUpdate):
    """A state not known yet."""

    __slots__ = ()


def variant_of(value: dict[str, Any]) -> type[OpenUnion]:
    """The variant of `StateUpdate` that a JSON object is meant to be.

    Raises:
        ValueError: it says no state.
    """
    match string_in(value, "state"):
        case "running":
            return RunningStateUpdate
        case "requires_action":
            return RequiresActionStateUpdate
        case "unknown":
            return UnknownStateUpdate
        case "idle":
            return _idle_variant(value.get("stopReason"))
        case _:
            return OtherStateUpdate


def _idle_variant(stop_reason: object) -> type[OpenUnion]:
    if stop_reason == "error":
        return ErrorIdleStateUpdate
    if not isinstance(stop_reason, str) or stop_reason in _STOP_REASONS:
        return IdleStateUpdate
    return OtherIdleStateUpdate
