"""Every unstable type of version 1 that no stable type holds, in one place to import from."""

# ruff: noqa: PLC0414 - an alias of the same name is how a module says that it exports a name

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.codec.late_names import late_names

if TYPE_CHECKING:
    from protocol.v1.auth_status import (
        AuthAccount as AuthAccount,
        AuthState as AuthState,
        AuthStatusRequest as AuthStatusRequest,
        AuthStatusResponse as AuthStatusResponse,
        AuthStatusUpdateNotification as AuthStatusUpdateNotification,
    )
    from protocol.v1.mcp import (
        McpError as McpError,
        McpRequestId as McpRequestId,
        McpServerAcp as McpServerAcp,
        MessageMcpFailure as MessageMcpFailure,
        MessageMcpNotification as MessageMcpNotification,
        MessageMcpRequest as MessageMcpRequest,
        MessageMcpResponse as MessageMcpResponse,
        MessageMcpResult as MessageMcpResult,
    )
    from protocol.v1.providers import (
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
    from protocol.v1.proxy import (
        InitializeProxyRequest as InitializeProxyRequest,
        InitializeProxyResponse as InitializeProxyResponse,
        ProxySuccessorNotification as ProxySuccessorNotification,
        ProxySuccessorRequest as ProxySuccessorRequest,
        ProxySuccessorResponse as ProxySuccessorResponse,
    )
    from protocol.v1.stored_sessions import (
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
    from protocol.v1.subagent_states import (
        ErrorIdleStateUpdate as ErrorIdleStateUpdate,
        IdleStateUpdate as IdleStateUpdate,
        OtherIdleStateUpdate as OtherIdleStateUpdate,
        OtherStateUpdate as OtherStateUpdate,
        RequiresActionStateUpdate as RequiresActionStateUpdate,
        RunningStateUpdate as RunningStateUpdate,
        UnknownStateUpdate as UnknownStateUpdate,
    )
    from protocol.v1.system_prompt import GivenSystemPrompt as GivenSystemPrompt
else:
    # Imported when one is asked for that is in it, or behind it.
    __getattr__ = late_names(
        globals(),
        __package__,
        (
            "auth_status",
            "providers",
            "system_prompt",
            "stored_sessions",
            "mcp",
            "subagent_states",
            "proxy",
        ),
    )
