"""UNSTABLE: child sessions that work for a session, and messages between sessions.

Only for a client that advertises `subagents`. What a child is doing is in `subagent_states`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType, field

from protocol.codec.marks import Lenient, LenientItems
from protocol.codec.open_union import OpenUnion
from protocol.v1.base import Bare, JsonObject, MessageId, SessionId, Wire
from protocol.v1.content import ContentBlock


class StateUpdate(OpenUnion):
    """What a child is doing; the variants are in `subagent_states`."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its state, and an idle one by why it stopped."""
        from protocol.v1.subagent_states import variant_of  # noqa: PLC0415 - rare, not at start

        return variant_of(value)


class SessionCancelCapabilities(Wire, frozen=True, kw_only=True):
    """The client may cancel the child's work."""


class SubagentSessionCapabilities(Wire, frozen=True, kw_only=True):
    """What the client may do to a child."""

    cancel: Lenient[SessionCancelCapabilities | None] = None


class SubagentUpdate(
    Bare, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="subagent_update"
):
    """A child of the session, or what changed about it: UNSET is unchanged, None is cleared."""

    session_id: SessionId
    title: Lenient[str | UnsetType | None] = UNSET
    description: Lenient[str | UnsetType | None] = UNSET
    capabilities: Lenient[SubagentSessionCapabilities | UnsetType | None] = UNSET
    state: Lenient[StateUpdate | UnsetType | None] = UNSET
    cwd: str | UnsetType | None = UNSET
    additional_directories: Sequence[str] | UnsetType | None = UNSET
    meta: Lenient[JsonObject | UnsetType | None] = field(name="_meta", default=UNSET)


class SessionMessage(
    Bare, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="session_message"
):
    """A message between sessions, or what changed about it: UNSET is unchanged, None is cleared."""

    message_id: MessageId
    sender_session_id: Lenient[SessionId | UnsetType | None] = UNSET
    recipient_session_id: Lenient[SessionId | UnsetType | None] = UNSET
    sender_message_id: Lenient[MessageId | UnsetType | None] = UNSET
    recipient_message_id: Lenient[MessageId | UnsetType | None] = UNSET
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET
    meta: Lenient[JsonObject | UnsetType | None] = field(name="_meta", default=UNSET)


class SessionMessageChunk(
    Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="session_message_chunk"
):
    """A piece of a message between sessions."""

    message_id: MessageId
    content: ContentBlock
