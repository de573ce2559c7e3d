"""UNSTABLE: types that mean the same in both versions, and the methods that have only such types.

Nothing on the way to a first prompt needs this module: import it where an unstable method is first
used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import field

from protocol.codec.tolerance import Lenient, LenientItems, OpenUnion, UnknownVariant, string_in
from protocol.jsonrpc.methods import Method, by_name
from protocol.shared.types import (
    JsonObject,
    McpRequestId,
    McpServerAcpId,
    ProviderId,
    SessionId,
    Wire,
)

# "open" (in memory), "saved", or a word that later versions add, which means "saved".
SessionStatus: TypeAlias = str


class ArchiveSessionRequest(Wire):
    """Close a session and hide it from lists."""

    session_id: SessionId


class ArchiveSessionResponse(Wire):
    """The session is archived."""


class UnarchiveSessionRequest(Wire):
    """Put an archived session into lists again."""

    session_id: SessionId


class UnarchiveSessionResponse(Wire):
    """The session is no longer archived."""


class SessionStatusRequest(Wire):
    """Is a session in memory?"""

    session_id: SessionId


class SetSessionTitleRequest(Wire):
    """Give a session a title."""

    session_id: SessionId
    title: str


class SetSessionTitleResponse(Wire):
    """The title as it is stored."""

    title: str


# "authenticated", "unauthenticated", "not_required", "unknown", or a word that later versions
# add, which means "unknown".
AuthState: TypeAlias = str


class AuthAccount(Wire):
    """An account or a key, for people to read; `active`: the agent uses it now."""

    label: str
    active: Lenient[bool | None] = None
    name: Lenient[str | None] = None
    email: Lenient[str | None] = None
    organization: Lenient[str | None] = None


class AuthStatusRequest(Wire):
    """Is a login needed?"""


class AuthStatusResponse(Wire):
    """Whether the user is authenticated, and the accounts."""

    state: AuthState
    accounts: LenientItems[Sequence[AuthAccount]] = ()


class AuthStatusUpdateNotification(Wire):
    """The status is another one now."""

    state: AuthState
    accounts: LenientItems[Sequence[AuthAccount]] = ()


# "anthropic", "openai", "azure", "vertex", "bedrock", or a word that later versions add.
LlmProtocol: TypeAlias = str


class ProviderCurrentConfig(Wire):
    """Where a provider is reached. Headers are never sent: they may hold keys."""

    api_type: LlmProtocol
    base_url: str


class ProviderInfo(Wire):
    """A provider; `current` None: it is disabled, which one that is `required` cannot be."""

    provider_id: ProviderId
    supported: LenientItems[Sequence[LlmProtocol]]
    required: bool
    current: ProviderCurrentConfig | None = None


class ListProvidersRequest(Wire):
    """List the providers that can be configured."""


class ListProvidersResponse(Wire):
    """All of them, as they are configured now."""

    providers: Sequence[ProviderInfo]


class SetProviderRequest(Wire):
    """Configure a provider anew; `headers` go with each request and may hold keys."""

    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class SetProviderResponse(Wire):
    """The provider is configured."""


class DisableProviderRequest(Wire):
    """Use a provider no longer."""

    provider_id: ProviderId


class DisableProviderResponse(Wire):
    """The provider is no longer used."""


class MessageMcpRequest(Wire):
    """A request to an MCP server; `request_id` names it in the server's own notifications."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: JsonObject | None = None


class MessageMcpNotification(Wire):
    """A notification that an MCP server sends while it works on a request."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: JsonObject | None = None


class MessageMcpResponse(OpenUnion):
    """The response to an MCP request: `MessageMcpResult` or `MessageMcpFailure`."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Return a result where there is one, even null, and else an error."""
        if "result" not in value and "error" not in value:
            raise ValueError("result: is required where there is no error")
        return MessageMcpResult if "result" in value else MessageMcpFailure


class McpError(OpenUnion, UnknownVariant):
    """An error of an MCP server's: `code`, `message`, `data` and whatever else it holds."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Return the only one there is; its code and message must be what they are called."""
        code = value.get("code")
        if not isinstance(code, int) or isinstance(code, bool) or not -(2**31) <= code < 2**31:
            raise ValueError("code: expected integer of 32 bits")
        string_in(value, "message")
        return McpError


class MessageMcpResult(Wire, MessageMcpResponse):
    """The MCP server's result, which may be null."""

    result: Any


class MessageMcpFailure(Wire, MessageMcpResponse):
    """The MCP server's error. What failed on the way to it is an error of JSON-RPC instead."""

    error: McpError


ProxySuccessorResponse: TypeAlias = object  # the wrapped request's result, as it came


class ProxySuccessorRequest(Wire):
    """A request, wrapped, to or from the next one of the chain; `meta` is the wrapping's."""

    method: str
    params: Any = None


class ProxySuccessorNotification(Wire):
    """A notification, wrapped, to or from the next one of the chain."""

    method: str
    params: Any = None


SESSION_ARCHIVE: Final = Method("session/archive", ArchiveSessionRequest, ArchiveSessionResponse)
SESSION_UNARCHIVE: Final = Method(
    "session/unarchive", UnarchiveSessionRequest, UnarchiveSessionResponse
)
SESSION_SET_TITLE: Final = Method(
    "session/set_title", SetSessionTitleRequest, SetSessionTitleResponse
)
AUTH_STATUS: Final = Method("auth/status", AuthStatusRequest, AuthStatusResponse)
PROVIDERS_LIST: Final = Method("providers/list", ListProvidersRequest, ListProvidersResponse)
PROVIDERS_SET: Final = Method("providers/set", SetProviderRequest, SetProviderResponse)
PROVIDERS_DISABLE: Final = Method(
    "providers/disable", DisableProviderRequest, DisableProviderResponse
)
# The same name both ways: requests go to the client, notifications come from it.
MCP_MESSAGE: Final = Method("mcp/message", MessageMcpRequest, MessageMcpResponse)
MCP_NOTIFICATION: Final[Method[MessageMcpNotification, None]] = Method(
    "mcp/message", MessageMcpNotification
)
AUTH_STATUS_UPDATE: Final[Method[AuthStatusUpdateNotification, None]] = Method(
    "auth/status_update", AuthStatusUpdateNotification
)
PROXY_SUCCESSOR: Final[Method[ProxySuccessorRequest, ProxySuccessorResponse]] = Method(
    "proxy/successor", ProxySuccessorRequest, object
)
PROXY_SUCCESSOR_NOTIFICATION: Final[Method[ProxySuccessorNotification, None]] = Method(
    "proxy/successor", ProxySuccessorNotification
)

# What the agent answers, beside the methods with types of each version.
AGENT_METHODS: Final = (
    SESSION_ARCHIVE,
    SESSION_UNARCHIVE,
    SESSION_SET_TITLE,
    AUTH_STATUS,
    PROVIDERS_LIST,
    PROVIDERS_SET,
    PROVIDERS_DISABLE,
    MCP_NOTIFICATION,
)
# What the client answers.
UNSTABLE_CLIENT_METHODS: Final = by_name(MCP_MESSAGE, AUTH_STATUS_UPDATE)
# The notifications that a proxy takes.
PROXY_NOTIFICATIONS: Final = by_name(PROXY_SUCCESSOR_NOTIFICATION)
