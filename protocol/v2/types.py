"""Every stable type of version 2, in one place to import from.

With them come the unstable types of their modules. The others are in `unstable_types`, apart, so
that a start does not pay for them.
"""

# ruff: noqa: PLC0414 - an alias of the same name is how a module says that it exports a name

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.codec.late_names import late_names
from protocol.jsonrpc.messages import Error as Error

if TYPE_CHECKING:
    from protocol.v2.auth import (
        AuthMethod as AuthMethod,
        AuthMethodAgent as AuthMethodAgent,
        AuthMethodTerminal as AuthMethodTerminal,
        LoginAuthRequest as LoginAuthRequest,
        LoginAuthResponse as LoginAuthResponse,
        LogoutAuthRequest as LogoutAuthRequest,
        LogoutAuthResponse as LogoutAuthResponse,
        OtherAuthMethod as OtherAuthMethod,
    )
    from protocol.v2.base import (
        AbsolutePath as AbsolutePath,
        AuthMethodId as AuthMethodId,
        CompactionId as CompactionId,
        ElicitationId as ElicitationId,
        Int64 as Int64,
        JsonObject as JsonObject,
        McpRequestId as McpRequestId,
        McpServerAcpId as McpServerAcpId,
        MediaType as MediaType,
        MessageId as MessageId,
        PermissionOptionId as PermissionOptionId,
        PlanId as PlanId,
        ProviderId as ProviderId,
        RequestId as RequestId,
        SessionConfigGroupId as SessionConfigGroupId,
        SessionConfigId as SessionConfigId,
        SessionConfigValueId as SessionConfigValueId,
        SessionId as SessionId,
        SessionListCursor as SessionListCursor,
        TerminalId as TerminalId,
        ToolCallId as ToolCallId,
        UInt16 as UInt16,
        UInt32 as UInt32,
        UInt64 as UInt64,
    )
    from protocol.v2.capabilities import (
        AgentAuthCapabilities as AgentAuthCapabilities,
        AgentCapabilities as AgentCapabilities,
        AuthStatusCapabilities as AuthStatusCapabilities,
        ClientAuthCapabilities as ClientAuthCapabilities,
        ClientCapabilities as ClientCapabilities,
        ElicitationCapabilities as ElicitationCapabilities,
        ElicitationFormCapabilities as ElicitationFormCapabilities,
        ElicitationUrlCapabilities as ElicitationUrlCapabilities,
        McpAcpCapabilities as McpAcpCapabilities,
        McpCapabilities as McpCapabilities,
        McpHttpCapabilities as McpHttpCapabilities,
        McpStdioCapabilities as McpStdioCapabilities,
        PromptAudioCapabilities as PromptAudioCapabilities,
        PromptCapabilities as PromptCapabilities,
        PromptEmbeddedContextCapabilities as PromptEmbeddedContextCapabilities,
        PromptImageCapabilities as PromptImageCapabilities,
        ProvidersCapabilities as ProvidersCapabilities,
        SessionAdditionalDirectoriesCapabilities as SessionAdditionalDirectoriesCapabilities,
        SessionArchiveCapabilities as SessionArchiveCapabilities,
        SessionCapabilities as SessionCapabilities,
        SessionDeleteCapabilities as SessionDeleteCapabilities,
        SessionForkCapabilities as SessionForkCapabilities,
        SessionStatusCapabilities as SessionStatusCapabilities,
        SessionSystemPromptCapabilities as SessionSystemPromptCapabilities,
        SessionSystemPromptModeCapabilities as SessionSystemPromptModeCapabilities,
        SessionSystemPromptOverrideCapabilities as SessionSystemPromptOverrideCapabilities,
        SessionTitleCapabilities as SessionTitleCapabilities,
        TerminalAuthCapabilities as TerminalAuthCapabilities,
    )
    from protocol.v2.commands import (
        AvailableCommand as AvailableCommand,
        AvailableCommandInput as AvailableCommandInput,
        AvailableCommandsUpdate as AvailableCommandsUpdate,
        Command as Command,
        OtherCommand as OtherCommand,
        OtherCommandInput as OtherCommandInput,
        TextCommandInput as TextCommandInput,
    )
    from protocol.v2.compactions import (
        CompactionStatus as CompactionStatus,
        CompactionSummaryChunk as CompactionSummaryChunk,
        CompactionUpdate as CompactionUpdate,
    )
    from protocol.v2.config_options import (
        ConfigOptionUpdate as ConfigOptionUpdate,
        OtherConfigOption as OtherConfigOption,
        OtherSetSessionConfigOption as OtherSetSessionConfigOption,
        SessionConfigBoolean as SessionConfigBoolean,
        SessionConfigOption as SessionConfigOption,
        SessionConfigOptionCategory as SessionConfigOptionCategory,
        SessionConfigSelect as SessionConfigSelect,
        SessionConfigSelectEntry as SessionConfigSelectEntry,
        SessionConfigSelectGroup as SessionConfigSelectGroup,
        SessionConfigSelectOption as SessionConfigSelectOption,
        SessionConfigSelectOptions as SessionConfigSelectOptions,
        SetSessionConfigOptionBoolean as SetSessionConfigOptionBoolean,
        SetSessionConfigOptionId as SetSessionConfigOptionId,
        SetSessionConfigOptionRequest as SetSessionConfigOptionRequest,
        SetSessionConfigOptionResponse as SetSessionConfigOptionResponse,
    )
    from protocol.v2.content import (
        Annotations as Annotations,
        AudioContent as AudioContent,
        BlobResourceContents as BlobResourceContents,
        ContentBlock as ContentBlock,
        EmbeddedResource as EmbeddedResource,
        EmbeddedResourceResource as EmbeddedResourceResource,
        Icon as Icon,
        IconTheme as IconTheme,
        ImageContent as ImageContent,
        OtherContentBlock as OtherContentBlock,
        ResourceLink as ResourceLink,
        Role as Role,
        TextContent as TextContent,
        TextResourceContents as TextResourceContents,
    )
    from protocol.v2.diffs import (
        DiffAddChange as DiffAddChange,
        DiffChange as DiffChange,
        DiffCopyChange as DiffCopyChange,
        DiffDeleteChange as DiffDeleteChange,
        DiffFileType as DiffFileType,
        DiffModifyChange as DiffModifyChange,
        DiffMoveChange as DiffMoveChange,
        DiffPatch as DiffPatch,
        DiffPatchFormat as DiffPatchFormat,
        OtherDiffChange as OtherDiffChange,
    )
    from protocol.v2.elicitation import (
        CompleteElicitationNotification as CompleteElicitationNotification,
        CreateElicitationRequest as CreateElicitationRequest,
        CreateElicitationResponse as CreateElicitationResponse,
        ElicitationAcceptAction as ElicitationAcceptAction,
        ElicitationCancelAction as ElicitationCancelAction,
        ElicitationContentValue as ElicitationContentValue,
        ElicitationDeclineAction as ElicitationDeclineAction,
        ElicitationFormMode as ElicitationFormMode,
        ElicitationUrlMode as ElicitationUrlMode,
        OtherElicitationAction as OtherElicitationAction,
        OtherElicitationMode as OtherElicitationMode,
    )
    from protocol.v2.elicitation_schema import (
        BooleanPropertySchema as BooleanPropertySchema,
        ElicitationPropertySchema as ElicitationPropertySchema,
        ElicitationSchema as ElicitationSchema,
        ElicitationSchemaType as ElicitationSchemaType,
        EnumOption as EnumOption,
        IntegerPropertySchema as IntegerPropertySchema,
        MultiSelectItems as MultiSelectItems,
        MultiSelectPropertySchema as MultiSelectPropertySchema,
        NumberPropertySchema as NumberPropertySchema,
        OtherMultiSelectItems as OtherMultiSelectItems,
        OtherPropertySchema as OtherPropertySchema,
        StringFormat as StringFormat,
        StringMultiSelectItems as StringMultiSelectItems,
        StringPropertySchema as StringPropertySchema,
        TitledMultiSelectItems as TitledMultiSelectItems,
    )
    from protocol.v2.errors import (
        ErrorData as ErrorData,
        SessionNotFoundErrorData as SessionNotFoundErrorData,
        UnsupportedProtocolVersionErrorData as UnsupportedProtocolVersionErrorData,
    )
    from protocol.v2.initialization import (
        Implementation as Implementation,
        InitializeRequest as InitializeRequest,
        InitializeResponse as InitializeResponse,
        ProtocolVersion as ProtocolVersion,
    )
    from protocol.v2.mcp_servers import (
        EnvVariable as EnvVariable,
        HttpHeader as HttpHeader,
        McpServer as McpServer,
        McpServerAcp as McpServerAcp,
        McpServerHttp as McpServerHttp,
        McpServerStdio as McpServerStdio,
        OtherMcpServer as OtherMcpServer,
    )
    from protocol.v2.messages import (
        AgentMessage as AgentMessage,
        AgentMessageChunk as AgentMessageChunk,
        AgentThought as AgentThought,
        AgentThoughtChunk as AgentThoughtChunk,
        ContentChunk as ContentChunk,
        UserMessage as UserMessage,
        UserMessageChunk as UserMessageChunk,
    )
    from protocol.v2.permissions import (
        CancelledPermissionOutcome as CancelledPermissionOutcome,
        CommandPermissionSubject as CommandPermissionSubject,
        OtherPermissionOutcome as OtherPermissionOutcome,
        OtherPermissionSubject as OtherPermissionSubject,
        PermissionOption as PermissionOption,
        PermissionOptionKind as PermissionOptionKind,
        RequestPermissionOutcome as RequestPermissionOutcome,
        RequestPermissionRequest as RequestPermissionRequest,
        RequestPermissionResponse as RequestPermissionResponse,
        RequestPermissionSubject as RequestPermissionSubject,
        SelectedPermissionOutcome as SelectedPermissionOutcome,
        ToolCallPermissionSubject as ToolCallPermissionSubject,
    )
    from protocol.v2.plans import (
        OtherPlan as OtherPlan,
        PlanEntry as PlanEntry,
        PlanEntryPriority as PlanEntryPriority,
        PlanEntryStatus as PlanEntryStatus,
        PlanFile as PlanFile,
        PlanItems as PlanItems,
        PlanMarkdown as PlanMarkdown,
        PlanRemoved as PlanRemoved,
        PlanUpdate as PlanUpdate,
        PlanUpdateContent as PlanUpdateContent,
    )
    from protocol.v2.prompts import (
        CancelRequestNotification as CancelRequestNotification,
        CancelSessionNotification as CancelSessionNotification,
        CancelTerminalRequest as CancelTerminalRequest,
        CancelTerminalResponse as CancelTerminalResponse,
        CancelToolCallRequest as CancelToolCallRequest,
        CancelToolCallResponse as CancelToolCallResponse,
        PromptRequest as PromptRequest,
        PromptResponse as PromptResponse,
    )
    from protocol.v2.session_info import (
        Cost as Cost,
        Notice as Notice,
        NoticeSeverity as NoticeSeverity,
        SessionInfoUpdate as SessionInfoUpdate,
        UsageUpdate as UsageUpdate,
    )
    from protocol.v2.session_states import (
        OtherSessionIdleUpdate as OtherSessionIdleUpdate,
        OtherSessionStateUpdate as OtherSessionStateUpdate,
        SessionErrorUpdate as SessionErrorUpdate,
        SessionIdleUpdate as SessionIdleUpdate,
        SessionRequiresActionUpdate as SessionRequiresActionUpdate,
        SessionRunningUpdate as SessionRunningUpdate,
        SessionUnknownStateUpdate as SessionUnknownStateUpdate,
    )
    from protocol.v2.session_update import (
        OtherSessionUpdate as OtherSessionUpdate,
        SessionUpdate as SessionUpdate,
        UpdateSessionNotification as UpdateSessionNotification,
    )
    from protocol.v2.sessions import (
        CloseSessionRequest as CloseSessionRequest,
        CloseSessionResponse as CloseSessionResponse,
        DeleteSessionRequest as DeleteSessionRequest,
        DeleteSessionResponse as DeleteSessionResponse,
        ListSessionsRequest as ListSessionsRequest,
        ListSessionsResponse as ListSessionsResponse,
        NewSessionRequest as NewSessionRequest,
        NewSessionResponse as NewSessionResponse,
        OtherReplayFrom as OtherReplayFrom,
        ReplayFrom as ReplayFrom,
        ReplayFromStart as ReplayFromStart,
        ResumeSessionRequest as ResumeSessionRequest,
        ResumeSessionResponse as ResumeSessionResponse,
        SessionArchiveFilter as SessionArchiveFilter,
        SessionInfo as SessionInfo,
        SystemPrompt as SystemPrompt,
        SystemPromptMode as SystemPromptMode,
    )
    from protocol.v2.states import (
        BackgroundSubagent as BackgroundSubagent,
        BackgroundTerminal as BackgroundTerminal,
        BackgroundToolCall as BackgroundToolCall,
        BackgroundWork as BackgroundWork,
        ErrorIdleStateUpdate as ErrorIdleStateUpdate,
        IdleStateUpdate as IdleStateUpdate,
        IdleStopReason as IdleStopReason,
        OtherBackgroundWork as OtherBackgroundWork,
        OtherIdleStateUpdate as OtherIdleStateUpdate,
        OtherStateUpdate as OtherStateUpdate,
        RequiresActionStateUpdate as RequiresActionStateUpdate,
        RunningStateUpdate as RunningStateUpdate,
        StateUpdate as StateUpdate,
        UnknownStateUpdate as UnknownStateUpdate,
        Usage as Usage,
    )
    from protocol.v2.terminals import (
        TerminalCancelCapabilities as TerminalCancelCapabilities,
        TerminalCapabilities as TerminalCapabilities,
        TerminalExitStatus as TerminalExitStatus,
        TerminalOutput as TerminalOutput,
        TerminalOutputChunk as TerminalOutputChunk,
        TerminalSize as TerminalSize,
        TerminalUpdate as TerminalUpdate,
    )
    from protocol.v2.tool_calls import (
        Content as Content,
        Diff as Diff,
        OtherToolCallContent as OtherToolCallContent,
        Terminal as Terminal,
        ToolCallCancelCapabilities as ToolCallCancelCapabilities,
        ToolCallCapabilities as ToolCallCapabilities,
        ToolCallContent as ToolCallContent,
        ToolCallContentChunk as ToolCallContentChunk,
        ToolCallLocation as ToolCallLocation,
        ToolCallProgress as ToolCallProgress,
        ToolCallStatus as ToolCallStatus,
        ToolCallUpdate as ToolCallUpdate,
        ToolKind as ToolKind,
    )
else:
    # A start needs few of them; the order is that in which a session does.
    __getattr__ = late_names(
        globals(),
        __package__,
        (
            "base",
            "capabilities",
            "mcp_servers",
            "auth",
            "initialization",
            "session_update",
            "commands",
            "config_options",
            "content",
            "sessions",
            "prompts",
            "messages",
            "states",
            "session_states",
            "diffs",
            "tool_calls",
            "terminals",
            "session_info",
            "permissions",
            "plans",
            "compactions",
            "errors",
            "elicitation_schema",
            "elicitation",
        ),
    )
