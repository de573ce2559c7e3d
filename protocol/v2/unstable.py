"""UNSTABLE: methods of version 2, and their types.

Nothing on the way to a first prompt needs this module: import it where an unstable method is first
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from protocol.codec.tolerance import Lenient, LenientItems, NullAsDefault
from protocol.jsonrpc.methods import Method, by_name
from protocol.shared.types import AbsolutePath, MessageId, SessionId, Upsert, Wire
from protocol.shared.unstable import *  # noqa: F403 - exports all of it, too
from protocol.shared.unstable import (
    AGENT_METHODS,
    PROXY_SUCCESSOR,
    SessionStatus,
    SessionStatusRequest,
)
from protocol.v2.content import ContentBlock
from protocol.v2.initialization import InitializeRequest, InitializeResponse
from protocol.v2.options import AvailableCommand, SessionConfigOption, SessionUpdate
from protocol.v2.sessions import McpServer, SystemPrompt
from protocol.v2.states import StateUpdate


class ForkSessionRequest(Wire):
    """Create a session that begins with the conversation of another one."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None


class ForkSessionResponse(Wire):
    """The new session, its settings and its commands."""

    session_id: SessionId
    config_options: LenientItems[Sequence[SessionConfigOption]] = ()
    available_commands: LenientItems[Sequence[AvailableCommand]] = ()


class SessionStatusResponse(Wire):
    """Whether the session is open, and what it is doing."""

    status: SessionStatus
    state: Lenient[StateUpdate | None] = None


class InitializeProxyRequest(InitializeRequest):
    """An `initialize` that says: be a proxy."""


class InitializeProxyResponse(InitializeResponse):
    """The same as the response to `initialize`."""


SESSION_FORK: Final = Method("session/fork", ForkSessionRequest, ForkSessionResponse)
SESSION_STATUS: Final = Method("session/status", SessionStatusRequest, SessionStatusResponse)
PROXY_INITIALIZE: Final = Method(
    "proxy/initialize", InitializeProxyRequest, InitializeProxyResponse
)

# What the agent answers.
UNSTABLE_AGENT_METHODS: Final = by_name(SESSION_FORK, SESSION_STATUS, *AGENT_METHODS)
# What a proxy answers; no method of an agent.
PROXY_METHODS: Final = by_name(PROXY_INITIALIZE, PROXY_SUCCESSOR)


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
