"""What the types of each protocol version call differently from its schema, and where it is."""

from __future__ import annotations

from protocol.v1 import types as v1, unstable_types as v1_unstable
from protocol.v2 import types as v2, unstable_types as v2_unstable
from tests.protocol.schema_types import SchemaTypes

V1 = SchemaTypes(
    "v1",
    v1,
    v1_unstable,
    places={
        "UserMessageChunk": "SessionUpdate",
        "AgentMessageChunk": "SessionUpdate",
        "AgentThoughtChunk": "SessionUpdate",
        "ToolCallProgress": "SessionUpdate",
        "CancelledPermissionOutcome": "RequestPermissionOutcome",
        "ElicitationDeclineAction": "CreateElicitationResponse",
        "ElicitationCancelAction": "CreateElicitationResponse",
        "ElicitationFormMode": "CreateElicitationRequest",
        "ElicitationUrlMode": "CreateElicitationRequest",
        "SessionConfigSelect": "SessionConfigOption",
        "SessionConfigBoolean": "SessionConfigOption",
        "SessionConfigSelectEntry": None,  # the items of SessionConfigSelectOptions
        "GivenSystemPrompt": "SystemPrompt",
        "MessageMcpResult": "MessageMcpResponse",
        "MessageMcpFailure": "MessageMcpResponse",
        "ErrorIdleStateUpdate": "StateUpdate",
    },
    definitions={
        "UserMessageChunk": "ContentChunk",
        "AgentMessageChunk": "ContentChunk",
        "AgentThoughtChunk": "ContentChunk",
        "ToolCallProgress": "ToolCallUpdate",
        "GivenSystemPrompt": "SystemPrompt",
        "ErrorIdleStateUpdate": "IdleStateUpdate",
    },
    merged={
        "ElicitationSessionScope": ["ElicitationFormMode", "ElicitationUrlMode"],
        "ElicitationRequestScope": ["ElicitationFormMode", "ElicitationUrlMode"],
        "ErrorStopReason": ["ErrorIdleStateUpdate"],
    },
    further={"ErrorCode"},
)

V2 = SchemaTypes(
    "v2",
    v2,
    v2_unstable,
    places={
        "UserMessageChunk": "SessionUpdate",
        "AgentMessageChunk": "SessionUpdate",
        "AgentThoughtChunk": "SessionUpdate",
        "ToolCallProgress": "SessionUpdate",
        "SessionRunningUpdate": "SessionUpdate",
        "SessionRequiresActionUpdate": "SessionUpdate",
        "SessionUnknownStateUpdate": "SessionUpdate",
        "SessionIdleUpdate": "SessionUpdate",
        "SessionErrorUpdate": "SessionUpdate",
        "RunningStateUpdate": "StateUpdate",
        "RequiresActionStateUpdate": "StateUpdate",
        "UnknownStateUpdate": "StateUpdate",
        "IdleStateUpdate": "StateUpdate",
        "ErrorIdleStateUpdate": "StateUpdate",
        "DiffAddChange": "DiffChange",
        "DiffDeleteChange": "DiffChange",
        "DiffModifyChange": "DiffChange",
        "DiffMoveChange": "DiffChange",
        "DiffCopyChange": "DiffChange",
        "ElicitationDeclineAction": "CreateElicitationResponse",
        "ElicitationCancelAction": "CreateElicitationResponse",
        "ElicitationAcceptAction": "CreateElicitationResponse",
        "ElicitationFormMode": "CreateElicitationRequest",
        "ElicitationUrlMode": "CreateElicitationRequest",
        "SessionConfigSelect": "SessionConfigOption",
        "SessionConfigBoolean": "SessionConfigOption",
        "SessionConfigSelectEntry": None,  # the items of SessionConfigSelectOptions
        "SetSessionConfigOptionId": "SetSessionConfigOptionRequest",
        "SetSessionConfigOptionBoolean": "SetSessionConfigOptionRequest",
        "MessageMcpResult": "MessageMcpResponse",
        "MessageMcpFailure": "MessageMcpResponse",
    },
    definitions={
        "UserMessageChunk": "ContentChunk",
        "AgentMessageChunk": "ContentChunk",
        "AgentThoughtChunk": "ContentChunk",
        "ToolCallProgress": "ToolCallUpdate",
        "SessionRunningUpdate": "RunningStateUpdate",
        "SessionRequiresActionUpdate": "RequiresActionStateUpdate",
        "SessionUnknownStateUpdate": "UnknownStateUpdate",
        "SessionIdleUpdate": "IdleStateUpdate",
        "SessionErrorUpdate": "IdleStateUpdate",
        "ErrorIdleStateUpdate": "IdleStateUpdate",
        "DiffAddChange": "DiffPathChange",
        "DiffDeleteChange": "DiffPathChange",
        "DiffModifyChange": "DiffPathChange",
        "DiffMoveChange": "DiffPathPairChange",
        "DiffCopyChange": "DiffPathPairChange",
    },
    merged={
        "ElicitationSessionScope": ["ElicitationFormMode", "ElicitationUrlMode"],
        "ElicitationRequestScope": ["ElicitationFormMode", "ElicitationUrlMode"],
        "ErrorStopReason": ["ErrorIdleStateUpdate", "SessionErrorUpdate"],
        "DiffPathChange": ["DiffAddChange", "DiffDeleteChange", "DiffModifyChange"],
        "DiffPathPairChange": ["DiffMoveChange", "DiffCopyChange"],
    },
    further={"ErrorCode"},
)
