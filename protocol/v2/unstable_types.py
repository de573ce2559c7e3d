"""Every unstable type of version 2 that `types` does not have, in one place to import from."""

# ruff: noqa: PLC0414 - an alias of the same name is how a module says that it exports a name

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.codec.late_names import late_names

if TYPE_CHECKING:
    from protocol.v2.auth_status import (
        AuthAccount as AuthAccount,
        AuthState as AuthState,
        AuthStatusRequest as AuthStatusRequest,
        AuthStatusResponse as AuthStatusResponse,
        AuthStatusUpdateNotification as AuthStatusUpdateNotification,
    )
    from protocol.v2.mcp import (
        McpError as McpError,
        MessageMcpFailure as MessageMcpFailure,
        MessageMcpNotification as MessageMcpNotification,
        MessageMcpRequest as MessageMcpRequest,
        MessageMcpResponse as MessageMcpResponse,
        MessageMcpResult as MessageMcpResult,
    )
    from protocol.v2.providers import (
        DisableProviderRequest as DisableProviderRequest,
        DisableProviderResponse as DisableProviderResponse,
        ListProvidersRequest as ListProvidersRequest,
        ListProvidersResponse as ListProvidersResponse,
        LlmProtocol as LlmProtocol,
        ProviderCurrentConfig as ProviderCurrentConfig,
        ProviderInfo as ProviderInfo,
        SetProviderRequest as SetProviderRequest,
        SetProviderResponse as SetProviderResponse,
    )
    from protocol.v2.proxy import (
        InitializeProxyRequest as InitializeProxyRequest,
        InitializeProxyResponse as InitializeProxyResponse,
        ProxySuccessorNotification as ProxySuccessorNotification,
        ProxySuccessorRequest as ProxySuccessorRequest,
        ProxySuccessorResponse as ProxySuccessorResponse,
    )
    from protocol.v2.stored_sessions import (
        ArchiveSessionRequest as ArchiveSessionRequest,
        ArchiveSessionResponse as ArchiveSessionResponse,
        ForkSessionRequest as ForkSessionRequest,
        ForkSessionResponse as ForkSessionResponse,
        SessionStatus as SessionStatus,
        SessionStatusRequest as SessionStatusRequest,
        SessionStatusResponse as SessionStatusResponse,
        SetSessionTitleRequest as SetSessionTitleRequest,
        SetSessionTitleResponse as SetSessionTitleResponse,
        UnarchiveSessionRequest as UnarchiveSessionRequest,
        UnarchiveSessionResponse as UnarchiveSessionResponse,
    )
    from protocol.v2.subagents import (
        SessionCancelCapabilities as SessionCancelCapabilities,
        SessionMessage as SessionMessage,
        SessionMessageChunk as SessionMessageChunk,
        SubagentSessionCapabilities as SubagentSessionCapabilities,
        SubagentUpdate as SubagentUpdate,
    )
else:
    # Imported when one is asked for that is in it, or behind it.
    __getattr__ = late_names(
        globals(),
        __package__,
        (
            "auth_status",
            "providers",
            "stored_sessions",
            "subagents",
            "mcp",
            "proxy",
        ),
    )
