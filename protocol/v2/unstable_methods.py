"""The one table of version 2's unstable methods, beside the stable ones in `methods`.

Nothing on the way to a first prompt needs this module: import it, or the modules of the types that
it names, where an unstable method is first used.
"""

from __future__ import annotations

from typing import Final

from protocol.jsonrpc.method import Method
from protocol.v2 import auth_status, mcp, providers, proxy, stored_sessions as stored
from protocol.v2.methods import table

SESSION_FORK: Final = Method("session/fork", stored.ForkSessionRequest, stored.ForkSessionResponse)
SESSION_ARCHIVE: Final = Method(
    "session/archive", stored.ArchiveSessionRequest, stored.ArchiveSessionResponse
)
SESSION_UNARCHIVE: Final = Method(
    "session/unarchive", stored.UnarchiveSessionRequest, stored.UnarchiveSessionResponse
)
SESSION_STATUS: Final = Method(
    "session/status", stored.SessionStatusRequest, stored.SessionStatusResponse
)
SESSION_SET_TITLE: Final = Method(
    "session/set_title", stored.SetSessionTitleRequest, stored.SetSessionTitleResponse
)
AUTH_STATUS: Final = Method(
    "auth/status", auth_status.AuthStatusRequest, auth_status.AuthStatusResponse
)
PROVIDERS_LIST: Final = Method(
    "providers/list", providers.ListProvidersRequest, providers.ListProvidersResponse
)
PROVIDERS_SET: Final = Method(
    "providers/set", providers.SetProviderRequest, providers.SetProviderResponse
)
PROVIDERS_DISABLE: Final = Method(
    "providers/disable", providers.DisableProviderRequest, providers.DisableProviderResponse
)
# The same name both ways: requests go to the client, notifications come from it.
MCP_MESSAGE: Final = Method("mcp/message", mcp.MessageMcpRequest, mcp.MessageMcpResponse)
MCP_NOTIFICATION: Final[Method[mcp.MessageMcpNotification, None]] = Method(
    "mcp/message", mcp.MessageMcpNotification
)
AUTH_STATUS_UPDATE: Final[Method[auth_status.AuthStatusUpdateNotification, None]] = Method(
    "auth/status_update", auth_status.AuthStatusUpdateNotification
)
PROXY_INITIALIZE: Final = Method(
    "proxy/initialize", proxy.InitializeProxyRequest, proxy.InitializeProxyResponse
)
PROXY_SUCCESSOR: Final[Method[proxy.ProxySuccessorRequest, proxy.ProxySuccessorResponse]] = Method(
    "proxy/successor", proxy.ProxySuccessorRequest, object
)
PROXY_SUCCESSOR_NOTIFICATION: Final[Method[proxy.ProxySuccessorNotification, None]] = Method(
    "proxy/successor", proxy.ProxySuccessorNotification
)

# What the agent answers.
UNSTABLE_AGENT_METHODS: Final = table(
    SESSION_FORK,
    SESSION_ARCHIVE,
    SESSION_UNARCHIVE,
    SESSION_STATUS,
    SESSION_SET_TITLE,
    AUTH_STATUS,
    PROVIDERS_LIST,
    PROVIDERS_SET,
    PROVIDERS_DISABLE,
    MCP_NOTIFICATION,
)
# What the client answers.
UNSTABLE_CLIENT_METHODS: Final = table(MCP_MESSAGE, AUTH_STATUS_UPDATE)
# What a proxy answers, and the notifications that it takes; no method of an agent.
PROXY_METHODS: Final = table(PROXY_INITIALIZE, PROXY_SUCCESSOR)
PROXY_NOTIFICATIONS: Final = table(PROXY_SUCCESSOR_NOTIFICATION)
