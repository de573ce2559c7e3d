"""The one table of version 2's stable methods: what each side answers, with which types.

What a session asks of its client comes after its start, and so do the types of those methods.
"""

from __future__ import annotations

from typing import Final

from protocol.jsonrpc.methods import LazyMethod, Method, by_name
from protocol.v2 import types

INITIALIZE: Final = Method("initialize", types.InitializeRequest, types.InitializeResponse)
AUTH_LOGIN: Final = Method("auth/login", types.LoginAuthRequest, types.LoginAuthResponse)
AUTH_LOGOUT: Final = Method("auth/logout", types.LogoutAuthRequest, types.LogoutAuthResponse)
SESSION_NEW: Final = Method("session/new", types.NewSessionRequest, types.NewSessionResponse)
SESSION_RESUME: Final = Method(
    "session/resume", types.ResumeSessionRequest, types.ResumeSessionResponse
)
SESSION_LIST: Final = Method("session/list", types.ListSessionsRequest, types.ListSessionsResponse)
SESSION_DELETE: Final = Method(
    "session/delete", types.DeleteSessionRequest, types.DeleteSessionResponse
)
SESSION_CLOSE: Final = Method(
    "session/close", types.CloseSessionRequest, types.CloseSessionResponse
)
SESSION_PROMPT: Final = Method("session/prompt", types.PromptRequest, types.PromptResponse)
SESSION_SET_CONFIG_OPTION: Final = Method(
    "session/set_config_option",
    types.SetSessionConfigOptionRequest,
    types.SetSessionConfigOptionResponse,
)
TOOL_CALL_CANCEL: Final = Method(
    "tool_call/cancel", types.CancelToolCallRequest, types.CancelToolCallResponse
)
TERMINAL_CANCEL: Final = Method(
    "terminal/cancel", types.CancelTerminalRequest, types.CancelTerminalResponse
)
SESSION_CANCEL: Final[Method[types.CancelSessionNotification, None]] = Method(
    "session/cancel", types.CancelSessionNotification
)

REQUEST_PERMISSION: Final[
    Method[types.RequestPermissionRequest, types.RequestPermissionResponse]
] = LazyMethod("session/request_permission", "protocol.v2.tool_calls", "RequestPermission")
ELICITATION_CREATE: Final[
    Method[types.CreateElicitationRequest, types.CreateElicitationResponse]
] = LazyMethod("elicitation/create", "protocol.v2.elicitation", "CreateElicitation")
SESSION_UPDATE: Final[Method[types.UpdateSessionNotification, None]] = Method(
    "session/update", types.UpdateSessionNotification
)
ELICITATION_COMPLETE: Final[Method[types.CompleteElicitationNotification, None]] = LazyMethod(
    "elicitation/complete",
    "protocol.v2.elicitation",
    notification="CompleteElicitationNotification",
)

CANCEL_REQUEST: Final[Method[types.CancelRequestNotification, None]] = Method(
    "$/cancel_request", types.CancelRequestNotification
)

# What the agent answers.
AGENT_METHODS: Final = by_name(
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
CLIENT_METHODS: Final = by_name(
    REQUEST_PERMISSION, ELICITATION_CREATE, SESSION_UPDATE, ELICITATION_COMPLETE
)
# What either side may send; the connection itself handles it.
PROTOCOL_METHODS: Final = by_name(CANCEL_REQUEST)
