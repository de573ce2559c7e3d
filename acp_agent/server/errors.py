"""Maps our exceptions to JSON-RPC errors. No other module does.

Codes: Agent Client Protocol v1, ErrorCode; the rest is JSON-RPC 2.0, section 5.1.
"""

from __future__ import annotations

from typing import Any

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.errors import (
    AcpAgentError,
    AuthRequiredError,
    ConfigError,
    InvalidInputError,
    ModelError,
    PromptCancelledError,
    SessionBusyError,
    SessionNotFoundError,
    TurnRunsError,
)
from protocol.jsonrpc.messages import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    RESOURCE_NOT_FOUND,
    Error,
    RpcError,
)

_MAX_MESSAGE = 2_000  # characters: a message can quote an id or a path of any length
_CODES = {AuthRequiredError.kind: AUTH_REQUIRED}  # all other kinds are internal errors


def turn_error(message: str, kind: str) -> Error:
    """Return the error object for a turn that failed, from the journal's fields.

    Args:
        kind: its sort, as `AcpAgentError.kind` names it; "" where the journal does not say.
    """
    return Error(_CODES.get(kind, INTERNAL_ERROR), message)


def to_rpc_error(
    error: AcpAgentError, auth_methods: list[dict[str, Any]], translate: Translator = ENGLISH
) -> RpcError:
    """Return the JSON-RPC error for `error`.

    Args:
        error: what was raised.
        auth_methods: the methods that this client can offer, for `auth required`.
    """
    from acp_agent.tools.quoting import shorten  # noqa: PLC0415 - not at start

    message = shorten(translate.rendered(str(error)), _MAX_MESSAGE)
    match error:
        case AuthRequiredError():
            return RpcError(AUTH_REQUIRED, message, {"authMethods": auth_methods})
        case SessionNotFoundError():
            session_id = shorten(error.session_id, _MAX_MESSAGE)
            return RpcError(RESOURCE_NOT_FOUND, message, {"sessionId": session_id})
        case InvalidInputError():
            data = None if error.field is None else {"field": error.field}
            return RpcError(INVALID_PARAMS, message, data)
        case PromptCancelledError():
            return RpcError(REQUEST_CANCELLED, message)
        case SessionBusyError() | TurnRunsError():
            return RpcError(INVALID_REQUEST, message)
        case ModelError():
            data = {"provider": error.provider}
            if error.status is not None:
                return RpcError(INTERNAL_ERROR, message, {**data, "status": error.status})
            return RpcError(INTERNAL_ERROR, message, data)
        case ConfigError():
            return RpcError(INTERNAL_ERROR, message, {"kind": "configuration"})
        case _:
            return RpcError(INTERNAL_ERROR, message)
