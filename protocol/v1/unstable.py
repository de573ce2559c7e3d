"""UNSTABLE: methods of version 1, and their types.

Nothing on the way to a first prompt needs this module: import it where an unstable method is first
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from protocol.codec.tolerance import Lenient, LenientItems, NullAsDefault
from protocol.jsonrpc.methods import Method, by_name
from protocol.shared.types import SessionId, Wire
from protocol.shared.unstable import *  # noqa: F403 - exports all of it, too
from protocol.shared.unstable import (
    AGENT_METHODS,
    PROXY_SUCCESSOR,
    SessionStatus,
    SessionStatusRequest,
)
from protocol.v1.initialization import InitializeRequest, InitializeResponse
from protocol.v1.sessions import McpServer, SessionConfigOption, SessionModeState, SystemPrompt


class ForkSessionRequest(Wire):
    """Create a session that begins with the conversation of another one."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[Sequence[str]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None


class ForkSessionResponse(Wire):
    """The new session and its settings."""

    session_id: SessionId
    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class SessionStatusResponse(Wire):
    """Whether the session is open."""

    status: SessionStatus


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
