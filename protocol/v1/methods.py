"""The one table of version 1's stable methods: what each side answers, with which types.

What a session asks of its client comes after its start, and so do the types of those methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.jsonrpc.late_method import LateMethod
from protocol.jsonrpc.method import Method
from protocol.v1 import (
    config_options as options,
    initialization,
    sessions,
)

if TYPE_CHECKING:
    from protocol.v1 import (
        client_methods as client,
        elicitation,
        updates,
    )

INITIALIZE: Final = Method(
    "initialize", initialization.InitializeRequest, initialization.InitializeResponse
)
AUTHENTICATE: Final = Method(
    "authenticate", initialization.AuthenticateRequest, initialization.AuthenticateResponse
)
LOGOUT: Final = Method("logout", initialization.LogoutRequest, initialization.LogoutResponse)
SESSION_NEW: Final = Method("session/new", sessions.NewSessionRequest, sessions.NewSessionResponse)
SESSION_LOAD: Final = Method(
    "session/load", sessions.LoadSessionRequest, sessions.LoadSessionResponse
)
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
SESSION_PROMPT: Final = Method("session/prompt", sessions.PromptRequest, sessions.PromptResponse)
SESSION_SET_MODE: Final = Method(
    "session/set_mode", options.SetSessionModeRequest, options.SetSessionModeResponse
)
SESSION_SET_CONFIG_OPTION: Final = Method(
    "session/set_config_option",
    options.SetSessionConfigOptionRequest,
    options.SetSessionConfigOptionResponse,
)
SESSION_CANCEL: Final[Method[sessions.CancelNotification, None]] = Method(
    "session/cancel", sessions.CancelNotification
)

FS_READ_TEXT_FILE: Final[Method[client.ReadTextFileRequest, client.ReadTextFileResponse]] = (
    LateMethod(
        "fs/read_text_file",
        "protocol.v1.client_methods",
        "ReadTextFileRequest",
        "ReadTextFileResponse",
    )
)
FS_WRITE_TEXT_FILE: Final[Method[client.WriteTextFileRequest, client.WriteTextFileResponse]] = (
    LateMethod(
        "fs/write_text_file",
        "protocol.v1.client_methods",
        "WriteTextFileRequest",
        "WriteTextFileResponse",
    )
)
REQUEST_PERMISSION: Final[
    Method[client.RequestPermissionRequest, client.RequestPermissionResponse]
] = LateMethod(
    "session/request_permission",
    "protocol.v1.client_methods",
    "RequestPermissionRequest",
    "RequestPermissionResponse",
)
TERMINAL_CREATE: Final[Method[client.CreateTerminalRequest, client.CreateTerminalResponse]] = (
    LateMethod(
        "terminal/create",
        "protocol.v1.client_methods",
        "CreateTerminalRequest",
        "CreateTerminalResponse",
    )
)
TERMINAL_OUTPUT: Final[Method[client.TerminalOutputRequest, client.TerminalOutputResponse]] = (
    LateMethod(
        "terminal/output",
        "protocol.v1.client_methods",
        "TerminalOutputRequest",
        "TerminalOutputResponse",
    )
)
TERMINAL_RELEASE: Final[Method[client.ReleaseTerminalRequest, client.ReleaseTerminalResponse]] = (
    LateMethod(
        "terminal/release",
        "protocol.v1.client_methods",
        "ReleaseTerminalRequest",
        "ReleaseTerminalResponse",
    )
)
TERMINAL_WAIT_FOR_EXIT: Final[
    Method[client.WaitForTerminalExitRequest, client.WaitForTerminalExitResponse]
] = LateMethod(
    "terminal/wait_for_exit",
    "protocol.v1.client_methods",
    "WaitForTerminalExitRequest",
    "WaitForTerminalExitResponse",
)
TERMINAL_KILL: Final[Method[client.KillTerminalRequest, client.KillTerminalResponse]] = LateMethod(
    "terminal/kill", "protocol.v1.client_methods", "KillTerminalRequest", "KillTerminalResponse"
)
ELICITATION_CREATE: Final[
    Method[elicitation.CreateElicitationRequest, elicitation.CreateElicitationResponse]
] = LateMethod(
    "elicitation/create",
    "protocol.v1.elicitation",
    "CreateElicitationRequest",
    "CreateElicitationResponse",
)
SESSION_UPDATE: Final[Method[updates.SessionNotification, None]] = LateMethod(
    "session/update", "protocol.v1.updates", "SessionNotification"
)
ELICITATION_COMPLETE: Final[Method[elicitation.CompleteElicitationNotification, None]] = LateMethod(
    "elicitation/complete", "protocol.v1.elicitation", "CompleteElicitationNotification"
)

CANCEL_REQUEST: Final[Method[sessions.CancelRequestNotification, None]] = Method(
    "$/cancel_request", sessions.CancelRequestNotification
)


def table(*methods: Method[Any, Any]) -> dict[str, Method[Any, Any]]:
    """A table of methods by their names."""
    return {method.name: method for method in methods}


# What the agent answers.
AGENT_METHODS: Final = table(
    INITIALIZE,
    AUTHENTICATE,
    LOGOUT,
    SESSION_NEW,
    SESSION_LOAD,
    SESSION_RESUME,
    SESSION_LIST,
    SESSION_DELETE,
    SESSION_CLOSE,
    SESSION_PROMPT,
    SESSION_SET_MODE,
    SESSION_SET_CONFIG_OPTION,
    SESSION_CANCEL,
)
# What the client answers.
CLIENT_METHODS: Final = table(
    FS_READ_TEXT_FILE,
    FS_WRITE_TEXT_FILE,
    REQUEST_PERMISSION,
    TERMINAL_CREATE,
    TERMINAL_OUTPUT,
    TERMINAL_RELEASE,
    TERMINAL_WAIT_FOR_EXIT,
    TERMINAL_KILL,
    ELICITATION_CREATE,
    SESSION_UPDATE,
    ELICITATION_COMPLETE,
)
# What either side may send; the connection itself handles it.
PROTOCOL_METHODS: Final = table(CANCEL_REQUEST)
