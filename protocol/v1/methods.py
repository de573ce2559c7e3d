"""The one table of version 1's stable methods: what each side answers, with which types.

What a session asks of its client comes after its start, and so do the types of those methods.
"""

from __future__ import annotations

from typing import Final

from protocol.jsonrpc.methods import LazyMethod, Method, by_name
from protocol.v1 import types

INITIALIZE: Final[Method[types.InitializeRequest, types.InitializeResponse]] = LazyMethod(
    "initialize", "protocol.v1.initialization", "Initialize"
)
AUTHENTICATE: Final[Method[types.AuthenticateRequest, types.AuthenticateResponse]] = LazyMethod(
    "authenticate", "protocol.v1.initialization", "Authenticate"
)
LOGOUT: Final[Method[types.LogoutRequest, types.LogoutResponse]] = LazyMethod(
    "logout", "protocol.v1.initialization", "Logout"
)
SESSION_NEW: Final = Method("session/new", types.NewSessionRequest, types.NewSessionResponse)
SESSION_LOAD: Final = Method("session/load", types.LoadSessionRequest, types.LoadSessionResponse)
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
SESSION_SET_MODE: Final = Method(
    "session/set_mode", types.SetSessionModeRequest, types.SetSessionModeResponse
)
SESSION_SET_CONFIG_OPTION: Final = Method(
    "session/set_config_option",
    types.SetSessionConfigOptionRequest,
    types.SetSessionConfigOptionResponse,
)
SESSION_CANCEL: Final[Method[types.CancelNotification, None]] = Method(
    "session/cancel", types.CancelNotification
)

FS_READ_TEXT_FILE: Final[Method[types.ReadTextFileRequest, types.ReadTextFileResponse]] = (
    LazyMethod("fs/read_text_file", "protocol.v1.client_methods", "ReadTextFile")
)
FS_WRITE_TEXT_FILE: Final[Method[types.WriteTextFileRequest, types.WriteTextFileResponse]] = (
    LazyMethod("fs/write_text_file", "protocol.v1.client_methods", "WriteTextFile")
)
REQUEST_PERMISSION: Final[
    Method[types.RequestPermissionRequest, types.RequestPermissionResponse]
] = LazyMethod("session/request_permission", "protocol.v1.client_methods", "RequestPermission")
TERMINAL_CREATE: Final[Method[types.CreateTerminalRequest, types.CreateTerminalResponse]] = (
    LazyMethod("terminal/create", "protocol.v1.client_methods", "CreateTerminal")
)
TERMINAL_OUTPUT: Final[Method[types.TerminalOutputRequest, types.TerminalOutputResponse]] = (
    LazyMethod("terminal/output", "protocol.v1.client_methods", "TerminalOutput")
)
TERMINAL_RELEASE: Final[Method[types.ReleaseTerminalRequest, types.ReleaseTerminalResponse]] = (
    LazyMethod("terminal/release", "protocol.v1.client_methods", "ReleaseTerminal")
)
TERMINAL_WAIT_FOR_EXIT: Final[
    Method[types.WaitForTerminalExitRequest, types.WaitForTerminalExitResponse]
] = LazyMethod("terminal/wait_for_exit", "protocol.v1.client_methods", "WaitForTerminalExit")
TERMINAL_KILL: Final[Method[types.KillTerminalRequest, types.KillTerminalResponse]] = LazyMethod(
    "terminal/kill", "protocol.v1.client_methods", "KillTerminal"
)
ELICITATION_CREATE: Final[
    Method[types.CreateElicitationRequest, types.CreateElicitationResponse]
] = LazyMethod("elicitation/create", "protocol.v1.elicitation", "CreateElicitation")
SESSION_UPDATE: Final[Method[types.SessionNotification, None]] = LazyMethod(
    "session/update", "protocol.v1.updates", notification="SessionNotification"
)
ELICITATION_COMPLETE: Final[Method[types.CompleteElicitationNotification, None]] = LazyMethod(
    "elicitation/complete",
    "protocol.v1.elicitation",
    notification="CompleteElicitationNotification",
)

CANCEL_REQUEST: Final[Method[types.CancelRequestNotification, None]] = Method(
    "$/cancel_request", types.CancelRequestNotification
)

# What the agent answers.
AGENT_METHODS: Final = by_name(
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
CLIENT_METHODS: Final = by_name(
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
PROTOCOL_METHODS: Final = by_name(CANCEL_REQUEST)
