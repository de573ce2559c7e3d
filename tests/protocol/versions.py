"""What the types of each protocol version call differently from its schema, and where it is."""

from __future__ import annotations

from protocol.v1 import types as v1, unstable_types as v1_unstable
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
    },
    merged={
        "ElicitationSessionScope": ["ElicitationFormMode", "ElicitationUrlMode"],
        "ElicitationRequestScope": ["ElicitationFormMode", "ElicitationUrlMode"],
        "ErrorStopReason": ["ErrorIdleStateUpdate"],
    },
    further={"ErrorCode"},
)
