"""The one table of version 2's stable methods: what each side answers, with which types.

What a session asks of its client comes after its start, and so do the types of those methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.jsonrpc.late_method import LateMethod
from protocol.jsonrpc.method import Method
from protocol.v2 import (
    auth,
    config_options as options,
    initialization,
    prompts,
    session_update,
    sessions,
)

if TYPE_CHECKING:
    from protocol.v2 import (
        elicitation,
        permissions,
    )

INITIALIZE: Final = Method(
    "initialize", initialization.InitializeRequest, initialization.InitializeResponse
)
AUTH_LOGIN: Final = Method("auth/login", auth.LoginAuthRequest, auth.LoginAuthResponse)
AUTH_LOGOUT: Final = Method("auth/logout", auth.LogoutAuthRequest, auth.LogoutAuthResponse)
SESSION_NEW: Final = Method("session/new", sessions.NewSessionRequest, sessions.NewSessionResponse)
SESSION_RESUME: Final = Method(
    "session/resume", sessions.ResumeSessionRequest, sessions.ResumeSessionResponse
)
SESSION_LIST: Final = Method(
    "session/list", sessions.ListSessionsRequest, sessions.ListSessionsResponse
)
SESSION_DELETE: Final = Method(
    "session/delete", sessions.DeleteSessionRequest, sessions.DeleteSessionResponse
)
SESSION_CLOSE: Final = Method(
    "session/close", sessions.CloseSessionRequest, sessions.CloseSessionResponse
)
SESSION_PROMPT: Final = Method("session/prompt", prompts.PromptRequest, prompts.PromptResponse)
SESSION_SET_CONFIG_OPTION: Final = Method(
    "session/set_config_option",
    options.SetSessionConfigOptionRequest,
    options.SetSessionConfigOptionResponse,
)
TOOL_CALL_CANCEL: Final = Method(
    "tool_call/cancel", prompts.CancelToolCallRequest, prompts.CancelToolCallResponse
)
TERMINAL_CANCEL: Final = Method(
    "terminal/cancel", prompts.CancelTerminalRequest, prompts.CancelTerminalResponse
)
SESSION_CANCEL: Final[Method[prompts.CancelSessionNotification, None]] = Method(
    "session/cancel", prompts.CancelSessionNotification
)

REQUEST_PERMISSION: Final[
    Method[permissions.RequestPermissionRequest, permissions.RequestPermissionResponse]
] = LateMethod(
    "session/request_permission",
    "protocol.v2.permissions",
    "RequestPermissionRequest",
    "RequestPermissionResponse",
)
ELICITATION_CREATE: Final[
    Method[elicitation.CreateElicitationRequest, elicitation.CreateElicitationResponse]
] = LateMethod(
    "elicitation/create",
    "protocol.v2.elicitation",
    "CreateElicitationRequest",
    "CreateElicitationResponse",
)
SESSION_UPDATE: Final[Method[session_update.UpdateSessionNotification, None]] = Method(
    "session/update", session_update.UpdateSessionNotification
)
ELICITATION_COMPLETE: Final[Method[elicitation.CompleteElicitationNotification, None]] = LateMethod(
    "elicitation/complete", "protocol.v2.elicitation", "CompleteElicitationNotification"
)

CANCEL_REQUEST: Final[Method[prompts.CancelRequestNotification, None]] = Method(
    "$/cancel_request", prompts.CancelRequestNotification
)


def table(*methods: Method[Any, Any]) -> dict[str, Method[Any, Any]]:
    """A table of methods by their names."""
    return {method.name: method for method in methods}


# What the agent answers.
AGENT_METHODS: Final = table(
    INITIALIZE,
    AUTH_LOGIN,
    AUTH_LOGOUT,
    SESSION_NEW,
    SESSION_RESUME,
    SESSION_LIST,
    SESSION_DELETE,
    SESSION_CLOSE,
    SESSION_PROMPT,
    SESSION_SET_CONFIG_OPTION,
    TOOL_CALL_CANCEL,
    TERMINAL_CANCEL,
    SESSION_CANCEL,
)
# What the client answers.
CLIENT_METHODS: Final = table(
    REQUEST_PERMISSION,
    ELICITATION_CREATE,
    SESSION_UPDATE,
    ELICITATION_COMPLETE,
)
# What either side may send; the connection itself handles it.
PROTOCOL_METHODS: Final = table(CANCEL_REQUEST)
