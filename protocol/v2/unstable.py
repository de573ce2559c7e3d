"""UNSTABLE: methods of version 2, and their types.

Nothing on the way to a first prompt needs this module: import it where an unstable method is first
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from protocol.codec.tolerance import Lenient, LenientItems, NullAsDefault
from protocol.jsonrpc.methods import Method, by_name
from protocol.shared.types import AbsolutePath, SessionId, Wire
from protocol.shared.unstable import *  # noqa: F403 - exports all of it, too
from protocol.shared.unstable import (
    AGENT_METHODS,
    PROXY_SUCCESSOR,
    SessionStatus,
    SessionStatusRequest,
)
from protocol.v2.initialization import InitializeRequest, InitializeResponse
from protocol.v2.options import AvailableCommand, SessionConfigOption
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
