"""Every stable type of version 1, in one place to import from."""

# ruff: noqa: PLC0414 - an alias of the same name is how a module says that it exports a name

from __future__ import annotations

from protocol.jsonrpc.messages import Error as Error
from protocol.v1.base import (
    AuthMethodId as AuthMethodId,
)
from protocol.v1.base import (
    CompactionId as CompactionId,
)
from protocol.v1.base import (
    ElicitationId as ElicitationId,
)
from protocol.v1.base import (
    Int64 as Int64,
)
from protocol.v1.base import (
    JsonObject as JsonObject,
)
from protocol.v1.base import (
    MessageId as MessageId,
)
from protocol.v1.base import (
    PermissionOptionId as PermissionOptionId,
)
from protocol.v1.base import (
    RequestId as RequestId,
)
from protocol.v1.base import (
    SessionConfigGroupId as SessionConfigGroupId,
)
from protocol.v1.base import (
    SessionConfigId as SessionConfigId,
)
from protocol.v1.base import (
    SessionConfigValueId as SessionConfigValueId,
)
from protocol.v1.base import (
    SessionId as SessionId,
)
from protocol.v1.base import (
    SessionModeId as SessionModeId,
)
from protocol.v1.base import (
    TerminalId as TerminalId,
)
from protocol.v1.base import (
    ToolCallId as ToolCallId,
)
from protocol.v1.base import (
    UInt16 as UInt16,
)
from protocol.v1.base import (
    UInt32 as UInt32,
)
from protocol.v1.base import (
    UInt64 as UInt64,
)
from protocol.v1.capabilities import (
    AgentAuthCapabilities as AgentAuthCapabilities,
)
from protocol.v1.capabilities import (
    AgentCapabilities as AgentCapabilities,
)
from protocol.v1.capabilities import (
    AuthCapabilities as AuthCapabilities,
)
from protocol.v1.capabilities import (
    BooleanConfigOptionCapabilities as BooleanConfigOptionCapabilities,
)
from protocol.v1.capabilities import (
    ClientCapabilities as ClientCapabilities,
)
from protocol.v1.capabilities import (
    ClientSessionCapabilities as ClientSessionCapabilities,
)
from protocol.v1.capabilities import (
    CompactionCapabilities as CompactionCapabilities,
)
from protocol.v1.capabilities import (
    ElicitationCapabilities as ElicitationCapabilities,
)
from protocol.v1.capabilities import (
    ElicitationFormCapabilities as ElicitationFormCapabilities,
)
from protocol.v1.capabilities import (
    ElicitationUrlCapabilities as ElicitationUrlCapabilities,
)
from protocol.v1.capabilities import (
    FileSystemCapabilities as FileSystemCapabilities,
)
from protocol.v1.capabilities import (
    LogoutCapabilities as LogoutCapabilities,
)
from protocol.v1.capabilities import (
    McpCapabilities as McpCapabilities,
)
from protocol.v1.capabilities import (
    NoticeCapabilities as NoticeCapabilities,
)
from protocol.v1.capabilities import (
    PromptCapabilities as PromptCapabilities,
)
from protocol.v1.capabilities import (
    SessionAdditionalDirectoriesCapabilities as SessionAdditionalDirectoriesCapabilities,
)
from protocol.v1.capabilities import (
    SessionCapabilities as SessionCapabilities,
)
from protocol.v1.capabilities import (
    SessionCloseCapabilities as SessionCloseCapabilities,
)
from protocol.v1.capabilities import (
    SessionConfigOptionsCapabilities as SessionConfigOptionsCapabilities,
)
from protocol.v1.capabilities import (
    SessionDeleteCapabilities as SessionDeleteCapabilities,
)
from protocol.v1.capabilities import (
    SessionListCapabilities as SessionListCapabilities,
)
from protocol.v1.capabilities import (
    SessionResumeCapabilities as SessionResumeCapabilities,
)
from protocol.v1.client_methods import (
    CancelledPermissionOutcome as CancelledPermissionOutcome,
)
from protocol.v1.client_methods import (
    CreateTerminalRequest as CreateTerminalRequest,
)
from protocol.v1.client_methods import (
    CreateTerminalResponse as CreateTerminalResponse,
)
from protocol.v1.client_methods import (
    KillTerminalRequest as KillTerminalRequest,
)
from protocol.v1.client_methods import (
    KillTerminalResponse as KillTerminalResponse,
)
from protocol.v1.client_methods import (
    PermissionOption as PermissionOption,
)
from protocol.v1.client_methods import (
    PermissionOptionKind as PermissionOptionKind,
)
from protocol.v1.client_methods import (
    ReadTextFileRequest as ReadTextFileRequest,
)
from protocol.v1.client_methods import (
    ReadTextFileResponse as ReadTextFileResponse,
)
from protocol.v1.client_methods import (
    ReleaseTerminalRequest as ReleaseTerminalRequest,
)
from protocol.v1.client_methods import (
    ReleaseTerminalResponse as ReleaseTerminalResponse,
)
from protocol.v1.client_methods import (
    RequestPermissionOutcome as RequestPermissionOutcome,
)
from protocol.v1.client_methods import (
    RequestPermissionRequest as RequestPermissionRequest,
)
from protocol.v1.client_methods import (
    RequestPermissionResponse as RequestPermissionResponse,
)
from protocol.v1.client_methods import (
    SelectedPermissionOutcome as SelectedPermissionOutcome,
)
from protocol.v1.client_methods import (
    TerminalExitStatus as TerminalExitStatus,
)
from protocol.v1.client_methods import (
    TerminalOutputRequest as TerminalOutputRequest,
)
from protocol.v1.client_methods import (
    TerminalOutputResponse as TerminalOutputResponse,
)
from protocol.v1.client_methods import (
    WaitForTerminalExitRequest as WaitForTerminalExitRequest,
)
from protocol.v1.client_methods import (
    WaitForTerminalExitResponse as WaitForTerminalExitResponse,
)
from protocol.v1.client_methods import (
    WriteTextFileRequest as WriteTextFileRequest,
)
from protocol.v1.client_methods import (
    WriteTextFileResponse as WriteTextFileResponse,
)
from protocol.v1.config_options import (
    SessionConfigBoolean as SessionConfigBoolean,
)
from protocol.v1.config_options import (
    SessionConfigOption as SessionConfigOption,
)
from protocol.v1.config_options import (
    SessionConfigOptionCategory as SessionConfigOptionCategory,
)
from protocol.v1.config_options import (
    SessionConfigSelect as SessionConfigSelect,
)
from protocol.v1.config_options import (
    SessionConfigSelectEntry as SessionConfigSelectEntry,
)
from protocol.v1.config_options import (
    SessionConfigSelectGroup as SessionConfigSelectGroup,
)
from protocol.v1.config_options import (
    SessionConfigSelectOption as SessionConfigSelectOption,
)
from protocol.v1.config_options import (
    SessionConfigSelectOptions as SessionConfigSelectOptions,
)
from protocol.v1.config_options import (
    SessionMode as SessionMode,
)
from protocol.v1.config_options import (
    SessionModeState as SessionModeState,
)
from protocol.v1.config_options import (
    SetSessionConfigOptionRequest as SetSessionConfigOptionRequest,
)
from protocol.v1.config_options import (
    SetSessionConfigOptionResponse as SetSessionConfigOptionResponse,
)
from protocol.v1.config_options import (
    SetSessionModeRequest as SetSessionModeRequest,
)
from protocol.v1.config_options import (
    SetSessionModeResponse as SetSessionModeResponse,
)
from protocol.v1.content import (
    Annotations as Annotations,
)
from protocol.v1.content import (
    AudioContent as AudioContent,
)
from protocol.v1.content import (
    BlobResourceContents as BlobResourceContents,
)
from protocol.v1.content import (
    ContentBlock as ContentBlock,
)
from protocol.v1.content import (
    EmbeddedResource as EmbeddedResource,
)
from protocol.v1.content import (
    EmbeddedResourceResource as EmbeddedResourceResource,
)
from protocol.v1.content import (
    ImageContent as ImageContent,
)
from protocol.v1.content import (
    ResourceLink as ResourceLink,
)
from protocol.v1.content import (
    Role as Role,
)
from protocol.v1.content import (
    TextContent as TextContent,
)
from protocol.v1.content import (
    TextResourceContents as TextResourceContents,
)
from protocol.v1.elicitation import (
    BooleanPropertySchema as BooleanPropertySchema,
)
from protocol.v1.elicitation import (
    CompleteElicitationNotification as CompleteElicitationNotification,
)
from protocol.v1.elicitation import (
    CreateElicitationRequest as CreateElicitationRequest,
)
from protocol.v1.elicitation import (
    CreateElicitationResponse as CreateElicitationResponse,
)
from protocol.v1.elicitation import (
    ElicitationAcceptAction as ElicitationAcceptAction,
)
from protocol.v1.elicitation import (
    ElicitationCancelAction as ElicitationCancelAction,
)
from protocol.v1.elicitation import (
    ElicitationContentValue as ElicitationContentValue,
)
from protocol.v1.elicitation import (
    ElicitationDeclineAction as ElicitationDeclineAction,
)
from protocol.v1.elicitation import (
    ElicitationFormMode as ElicitationFormMode,
)
from protocol.v1.elicitation import (
    ElicitationPropertySchema as ElicitationPropertySchema,
)
from protocol.v1.elicitation import (
    ElicitationSchema as ElicitationSchema,
)
from protocol.v1.elicitation import (
    ElicitationSchemaType as ElicitationSchemaType,
)
from protocol.v1.elicitation import (
    ElicitationUrlMode as ElicitationUrlMode,
)
from protocol.v1.elicitation import (
    EnumOption as EnumOption,
)
from protocol.v1.elicitation import (
    IntegerPropertySchema as IntegerPropertySchema,
)
from protocol.v1.elicitation import (
    MultiSelectItems as MultiSelectItems,
)
from protocol.v1.elicitation import (
    MultiSelectPropertySchema as MultiSelectPropertySchema,
)
from protocol.v1.elicitation import (
    NumberPropertySchema as NumberPropertySchema,
)
from protocol.v1.elicitation import (
    OtherElicitationAction as OtherElicitationAction,
)
from protocol.v1.elicitation import (
    OtherElicitationMode as OtherElicitationMode,
)
from protocol.v1.elicitation import (
    OtherMultiSelectItems as OtherMultiSelectItems,
)
from protocol.v1.elicitation import (
    OtherPropertySchema as OtherPropertySchema,
)
from protocol.v1.elicitation import (
    StringFormat as StringFormat,
)
from protocol.v1.elicitation import (
    StringMultiSelectItems as StringMultiSelectItems,
)
from protocol.v1.elicitation import (
    StringPropertySchema as StringPropertySchema,
)
from protocol.v1.elicitation import (
    TitledMultiSelectItems as TitledMultiSelectItems,
)
from protocol.v1.initialization import (
    AuthenticateRequest as AuthenticateRequest,
)
from protocol.v1.initialization import (
    AuthenticateResponse as AuthenticateResponse,
)
from protocol.v1.initialization import (
    AuthMethod as AuthMethod,
)
from protocol.v1.initialization import (
    AuthMethodAgent as AuthMethodAgent,
)
from protocol.v1.initialization import (
    AuthMethodTerminal as AuthMethodTerminal,
)
from protocol.v1.initialization import (
    Implementation as Implementation,
)
from protocol.v1.initialization import (
    InitializeRequest as InitializeRequest,
)
from protocol.v1.initialization import (
    InitializeResponse as InitializeResponse,
)
from protocol.v1.initialization import (
    LogoutRequest as LogoutRequest,
)
from protocol.v1.initialization import (
    LogoutResponse as LogoutResponse,
)
from protocol.v1.initialization import (
    ProtocolVersion as ProtocolVersion,
)
from protocol.v1.sessions import (
    CancelNotification as CancelNotification,
)
from protocol.v1.sessions import (
    CancelRequestNotification as CancelRequestNotification,
)
from protocol.v1.sessions import (
    CloseSessionRequest as CloseSessionRequest,
)
from protocol.v1.sessions import (
    CloseSessionResponse as CloseSessionResponse,
)
from protocol.v1.sessions import (
    DeleteSessionRequest as DeleteSessionRequest,
)
from protocol.v1.sessions import (
    DeleteSessionResponse as DeleteSessionResponse,
)
from protocol.v1.sessions import (
    EnvVariable as EnvVariable,
)
from protocol.v1.sessions import (
    HttpHeader as HttpHeader,
)
from protocol.v1.sessions import (
    ListSessionsRequest as ListSessionsRequest,
)
from protocol.v1.sessions import (
    ListSessionsResponse as ListSessionsResponse,
)
from protocol.v1.sessions import (
    LoadSessionRequest as LoadSessionRequest,
)
from protocol.v1.sessions import (
    LoadSessionResponse as LoadSessionResponse,
)
from protocol.v1.sessions import (
    McpServer as McpServer,
)
from protocol.v1.sessions import (
    McpServerHttp as McpServerHttp,
)
from protocol.v1.sessions import (
    McpServerSse as McpServerSse,
)
from protocol.v1.sessions import (
    McpServerStdio as McpServerStdio,
)
from protocol.v1.sessions import (
    NewSessionRequest as NewSessionRequest,
)
from protocol.v1.sessions import (
    NewSessionResponse as NewSessionResponse,
)
from protocol.v1.sessions import (
    PromptRequest as PromptRequest,
)
from protocol.v1.sessions import (
    PromptResponse as PromptResponse,
)
from protocol.v1.sessions import (
    ResumeSessionRequest as ResumeSessionRequest,
)
from protocol.v1.sessions import (
    ResumeSessionResponse as ResumeSessionResponse,
)
from protocol.v1.sessions import (
    SessionInfo as SessionInfo,
)
from protocol.v1.sessions import (
    StopReason as StopReason,
)
from protocol.v1.tool_calls import (
    Content as Content,
)
from protocol.v1.tool_calls import (
    Diff as Diff,
)
from protocol.v1.tool_calls import (
    Terminal as Terminal,
)
from protocol.v1.tool_calls import (
    ToolCall as ToolCall,
)
from protocol.v1.tool_calls import (
    ToolCallContent as ToolCallContent,
)
from protocol.v1.tool_calls import (
    ToolCallLocation as ToolCallLocation,
)
from protocol.v1.tool_calls import (
    ToolCallProgress as ToolCallProgress,
)
from protocol.v1.tool_calls import (
    ToolCallStatus as ToolCallStatus,
)
from protocol.v1.tool_calls import (
    ToolCallUpdate as ToolCallUpdate,
)
from protocol.v1.tool_calls import (
    ToolKind as ToolKind,
)
from protocol.v1.updates import (
    AgentMessageChunk as AgentMessageChunk,
)
from protocol.v1.updates import (
    AgentThoughtChunk as AgentThoughtChunk,
)
from protocol.v1.updates import (
    AvailableCommand as AvailableCommand,
)
from protocol.v1.updates import (
    AvailableCommandInput as AvailableCommandInput,
)
from protocol.v1.updates import (
    AvailableCommandsUpdate as AvailableCommandsUpdate,
)
from protocol.v1.updates import (
    CompactionStatus as CompactionStatus,
)
from protocol.v1.updates import (
    CompactionSummaryChunk as CompactionSummaryChunk,
)
from protocol.v1.updates import (
    CompactionUpdate as CompactionUpdate,
)
from protocol.v1.updates import (
    ConfigOptionUpdate as ConfigOptionUpdate,
)
from protocol.v1.updates import (
    ContentChunk as ContentChunk,
)
from protocol.v1.updates import (
    Cost as Cost,
)
from protocol.v1.updates import (
    CurrentModeUpdate as CurrentModeUpdate,
)
from protocol.v1.updates import (
    Notice as Notice,
)
from protocol.v1.updates import (
    NoticeSeverity as NoticeSeverity,
)
from protocol.v1.updates import (
    Plan as Plan,
)
from protocol.v1.updates import (
    PlanEntry as PlanEntry,
)
from protocol.v1.updates import (
    PlanEntryPriority as PlanEntryPriority,
)
from protocol.v1.updates import (
    PlanEntryStatus as PlanEntryStatus,
)
from protocol.v1.updates import (
    SessionInfoUpdate as SessionInfoUpdate,
)
from protocol.v1.updates import (
    SessionNotification as SessionNotification,
)
from protocol.v1.updates import (
    SessionUpdate as SessionUpdate,
)
from protocol.v1.updates import (
    UnstructuredCommandInput as UnstructuredCommandInput,
)
from protocol.v1.updates import (
    UsageUpdate as UsageUpdate,
)
from protocol.v1.updates import (
    UserMessageChunk as UserMessageChunk,
)
