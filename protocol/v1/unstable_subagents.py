"""UNSTABLE: child sessions, what they are doing, and messages between sessions.

Only for a client that advertises `subagents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from msgspec import UNSET, UnsetType, field

from protocol.codec.tolerance import Lenient, LenientItems, OpenUnion, UnknownVariant
from protocol.jsonrpc.messages import Error
from protocol.shared.types import Bare, JsonObject, MessageId, SessionId, StopReason, Usage, Wire
from protocol.v1.content import ContentBlock

_STOP_REASONS = frozenset(get_args(StopReason))


class StateUpdate(OpenUnion):
    """What a child is doing."""

    __slots__ = ()
    discriminator = "state"

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its state, and an idle one by why it stopped."""
        variant = super().find_variant(value)
        if variant not in {IdleStateUpdate, ErrorIdleStateUpdate}:
            return variant
        reason = value.get("stopReason")
        if reason == "error":
            return ErrorIdleStateUpdate
        is_known = not isinstance(reason, str) or reason in _STOP_REASONS
        return IdleStateUpdate if is_known else OtherIdleStateUpdate


class RunningStateUpdate(Wire, StateUpdate, tag="running"):
    """The child works."""


class RequiresActionStateUpdate(Wire, StateUpdate, tag="requires_action"):
    """The child waits for the user."""


class UnknownStateUpdate(Wire, StateUpdate, tag="unknown"):
    """The agent cannot tell what the child is doing."""


class IdleStateUpdate(Wire, StateUpdate, tag="idle"):
    """The child waits for its next task; why it stopped, where that is known."""

    stop_reason: Lenient[StopReason | None] = None
    usage: Lenient[Usage | None] = None


def _error() -> Literal["error"]:
    return "error"


class ErrorIdleStateUpdate(Wire, StateUpdate, tag="idle"):
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


class SessionCancelCapabilities(Wire):
    """The client may cancel the child's work."""


class SubagentSessionCapabilities(Wire):
    """What the client may do with a child session."""

    cancel: Lenient[SessionCancelCapabilities | None] = None


class SubagentUpdate(Bare, tag_field="sessionUpdate", tag="subagent_update"):
    """A child of the session, or what changed about it: UNSET is unchanged, None is cleared."""

    session_id: SessionId
    title: Lenient[str | UnsetType | None] = UNSET
    description: Lenient[str | UnsetType | None] = UNSET
    capabilities: Lenient[SubagentSessionCapabilities | UnsetType | None] = UNSET
    state: Lenient[StateUpdate | UnsetType | None] = UNSET
    cwd: str | UnsetType | None = UNSET
    additional_directories: Sequence[str] | UnsetType | None = UNSET
    meta: Lenient[JsonObject | UnsetType | None] = field(name="_meta", default=UNSET)


class SessionMessage(Bare, tag_field="sessionUpdate", tag="session_message"):
    """A message between sessions, or what changed about it: UNSET is unchanged, None is cleared."""

    message_id: MessageId
    sender_session_id: Lenient[SessionId | UnsetType | None] = UNSET
    recipient_session_id: Lenient[SessionId | UnsetType | None] = UNSET
    sender_message_id: Lenient[MessageId | UnsetType | None] = UNSET
    recipient_message_id: Lenient[MessageId | UnsetType | None] = UNSET
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET
    meta: Lenient[JsonObject | UnsetType | None] = field(name="_meta", default=UNSET)


class SessionMessageChunk(Wire, tag_field="sessionUpdate", tag="session_message_chunk"):
    """A piece of a message between sessions."""

    message_id: MessageId
    content: ContentBlock
