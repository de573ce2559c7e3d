"""UNSTABLE: child sessions, and messages between sessions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from protocol.codec.tolerance import Lenient, LenientItems
from protocol.shared.types import AbsolutePath, MessageId, SessionId, Upsert, Wire
from protocol.v2.content import ContentBlock
from protocol.v2.options import SessionUpdate
from protocol.v2.states import StateUpdate


class SessionCancelCapabilities(Wire):
    """The client may cancel the child's work."""


class SubagentSessionCapabilities(Wire):
    """What the client may do with a child session."""

    cancel: Lenient[SessionCancelCapabilities | None] = None


class SubagentUpdate(Upsert, SessionUpdate, tag="subagent_update"):
    """A child of the session, or what changed about it."""

    session_id: SessionId
    title: Lenient[str | UnsetType | None] = UNSET
    description: Lenient[str | UnsetType | None] = UNSET
    capabilities: Lenient[SubagentSessionCapabilities | UnsetType | None] = UNSET
    state: Lenient[StateUpdate | UnsetType | None] = UNSET
    cwd: AbsolutePath | UnsetType | None = UNSET
    additional_directories: Sequence[AbsolutePath] | UnsetType | None = UNSET


class SessionMessage(Upsert, SessionUpdate, tag="session_message"):
    """A message between sessions, or what changed about it; content replaces what there was."""

    message_id: MessageId
    sender_session_id: Lenient[SessionId | UnsetType | None] = UNSET
    recipient_session_id: Lenient[SessionId | UnsetType | None] = UNSET
    sender_message_id: Lenient[MessageId | UnsetType | None] = UNSET
    recipient_message_id: Lenient[MessageId | UnsetType | None] = UNSET
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET


class SessionMessageChunk(Wire, SessionUpdate, tag="session_message_chunk"):
    """A piece that is appended to a message between sessions."""

    message_id: MessageId
    content: ContentBlock
