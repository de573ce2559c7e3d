"""The states of `states` as updates of a session: `state_update`."""

from __future__ import annotations

from typing import Any

from protocol.codec.open_union import OpenUnion
from protocol.v2.session_update import SessionUpdate
from protocol.v2.states import (
    ErrorIdleStateUpdate,
    IdleStateUpdate,
    OtherIdleStateUpdate,
    OtherStateUpdate,
    RequiresActionStateUpdate,
    RunningStateUpdate,
    StateVariants,
    UnknownStateUpdate,
    state_variant,
)


class SessionRunningUpdate(
    RunningStateUpdate,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="state_update",
):
    """The session works."""


class SessionRequiresActionUpdate(
    RequiresActionStateUpdate,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="state_update",
):
    """The session waits for the user."""


class SessionUnknownStateUpdate(
    UnknownStateUpdate,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="state_update",
):
    """UNSTABLE. The agent cannot tell what the session is doing."""


class SessionIdleUpdate(
    IdleStateUpdate,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="state_update",
):
    """The session takes the next prompt."""


class SessionErrorUpdate(
    ErrorIdleStateUpdate,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="state_update",
):
    """The session takes the next prompt, and stopped because something failed."""


class OtherSessionIdleUpdate(OtherIdleStateUpdate, SessionUpdate):
    """The session takes the next prompt, and stopped for a reason not known yet."""

    __slots__ = ()


class OtherSessionStateUpdate(OtherStateUpdate, SessionUpdate):
    """The session is in a state not known yet."""

    __slots__ = ()


_STATES: StateVariants = {
    ("running", None): SessionRunningUpdate,
    ("requires_action", None): SessionRequiresActionUpdate,
    ("unknown", None): SessionUnknownStateUpdate,
    ("idle", None): SessionIdleUpdate,
    ("idle", "error"): SessionErrorUpdate,
    ("idle", "other"): OtherSessionIdleUpdate,
}


def session_state_variant(value: dict[str, Any]) -> type[OpenUnion]:
    """The variant that a `state_update` is meant to be.

    Raises:
        ValueError: it says no state.
    """
    return state_variant(value, _STATES, OtherSessionStateUpdate)
