"""All events that the journal can hold.

A session is an ordered list of events. What an editor sees, live or replayed, and what a model is
sent are pure functions of that list. An event has all that its projections need and never changes
once written. New fields always have a default, so that old journals stay readable. Class names
follow the tags in the journal, which never change.
"""

from __future__ import annotations

from typing import TypeVar

from acp_agent.events.session import (
    Activity,
    CheckpointMade,
    CompactionChanged,
    CompactionSummaryText,
    ConfigChanged,
    ContextTrimmed,
    DirectoriesChanged,
    NoticeShown,
    PicturesDescribed,
    PromptRepeated,
    Rewound,
    SessionForked,
    SessionMessageSent,
    SessionMessageText,
    SessionStarted,
    Severity,
    SubagentChanged,
    SystemPromptGiven,
    SystemPromptWritten,
    TitleChanged,
    UserMessage,
)
from acp_agent.events.turns import (
    PLAN,
    USER_CALL,
    AgentText,
    AgentThought,
    BackgroundCommandChanged,
    Event,
    LoopDecision,
    LoopKind,
    LoopNoticed,
    LoopStep,
    ModelAnswered,
    ModelAsked,
    PermissionAsked,
    PermissionDecided,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    StopReason,
    ThoughtEnded,
    ToolCalled,
    ToolEnded,
    ToolKind,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    Usage,
    UsageReported,
    agent_message,
    agent_notice,
)
from acp_agent.ids import CallId, SessionId

__all__ = [
    "OTHERS_WORDS",
    "PLAN",
    "USER_CALL",
    "Activity",
    "AgentText",
    "AgentThought",
    "AnyEvent",
    "BackgroundCommandChanged",
    "CheckpointMade",
    "ChildWorked",
    "CompactionChanged",
    "CompactionSummaryText",
    "ConfigChanged",
    "ContextTrimmed",
    "DirectoriesChanged",
    "Event",
    "LoopDecision",
    "LoopKind",
    "LoopNoticed",
    "LoopStep",
    "ModelAnswered",
    "ModelAsked",
    "NoticeShown",
    "PermissionAsked",
    "PermissionDecided",
    "PicturesDescribed",
    "PlanChanged",
    "PlanEntry",
    "PlanRemoved",
    "PromptRepeated",
    "Rewound",
    "SessionForked",
    "SessionMessageSent",
    "SessionMessageText",
    "SessionStarted",
    "Severity",
    "StopReason",
    "SubagentChanged",
    "SystemPromptGiven",
    "SystemPromptWritten",
    "ThoughtEnded",
    "TitleChanged",
    "ToolCalled",
    "ToolEnded",
    "ToolKind",
    "ToolOutput",
    "ToolShown",
    "ToolStarted",
    "TurnEnded",
    "TurnInterrupted",
    "TurnStarted",
    "Usage",
    "UsageReported",
    "UserMessage",
    "agent_message",
    "agent_notice",
    "of_a_child",
]


class ChildWorked(Event, frozen=True, kw_only=True, tag="child_worked"):
    """Something happened in a child session; `call` is the one of this session that it works for.

    A child has no journal of its own: what it did belongs to the call that asked for it.
    """

    session: SessionId
    call: CallId
    did: AnyEvent


AnyEvent = (
    SessionStarted
    | SessionForked
    | DirectoriesChanged
    | ConfigChanged
    | TurnStarted
    | UserMessage
    | PromptRepeated
    | SystemPromptWritten
    | SystemPromptGiven
    | ModelAsked
    | AgentText
    | AgentThought
    | ThoughtEnded
    | ModelAnswered
    | UsageReported
    | ToolCalled
    | ToolStarted
    | ToolOutput
    | ToolShown
    | ToolEnded
    | BackgroundCommandChanged
    | PermissionAsked
    | PermissionDecided
    | PlanChanged
    | PlanRemoved
    | TitleChanged
    | NoticeShown
    | CompactionChanged
    | CompactionSummaryText
    | ContextTrimmed
    | PicturesDescribed
    | CheckpointMade
    | Rewound
    | LoopNoticed
    | SubagentChanged
    | SessionMessageSent
    | SessionMessageText
    | TurnEnded
    | TurnInterrupted
    | ChildWorked
)


# Events with words that a model, a server or a file chose and that are shown as they are.
OTHERS_WORDS = (
    NoticeShown,
    PermissionDecided,
    PlanChanged,
    SubagentChanged,
    ToolCalled,
    ToolShown,
)

T = TypeVar("T")


def of_a_child(event: T) -> T | AnyEvent:
    """What an event of a child session tells; anything else as it is."""
    return event.did if isinstance(event, ChildWorked) else event
