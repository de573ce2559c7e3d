"""Messages of the user and the agent, whole or piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from protocol.codec.marks import LenientItems
from protocol.v2.base import MessageId, Upsert, Wire
from protocol.v2.content import ContentBlock
from protocol.v2.session_update import SessionUpdate


class ContentChunk(Wire, frozen=True, kw_only=True):
    """A piece that is appended to the message of this id."""

    message_id: MessageId
    content: ContentBlock


class UserMessageChunk(
    ContentChunk,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="user_message_chunk",
):
    """A piece of what the user said."""


class AgentMessageChunk(
    ContentChunk,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="agent_message_chunk",
):
    """A piece of what the agent says."""


class AgentThoughtChunk(
    ContentChunk,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="agent_thought_chunk",
):
    """A piece of what the agent thinks."""


class UserMessage(
    Upsert, SessionUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="user_message"
):
    """What the user said; content replaces what there was."""

    message_id: MessageId
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET


class AgentMessage(
    Upsert, SessionUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_message"
):
    """What the agent says; content replaces what there was."""

    message_id: MessageId
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET


class AgentThought(
    Upsert, SessionUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_thought"
):
    """What the agent thinks; content replaces what there was."""

    message_id: MessageId
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET
