"""All events that the journal can contain.

A session is an ordered list of events. Both the updates for an editor, live or replayed, and the
requests to a model are pure functions of that list. An event contains all that these functions need
and never changes after it is written. New fields always have a default, so that old journals stay
readable. Class names follow the tags in the journal, which never change.
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
    HookAnswered,
    NoticeShown,
    PicturesDescribed,
    PromptRepeated,
    Rewound,
    ServerTool,
    ServerToolsOffered,
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

# Events that show text which a model, a server or a file chose.
EXTERNAL_TEXT_EVENTS = (
    HookAnswered,
    NoticeShown,
    PermissionDecided,
    PlanChanged,
    ServerToolsOffered,
    SubagentChanged,
    ToolCalled,
    ToolShown,
)
T = TypeVar("T")


class ChildWorked(Event, frozen=True, kw_only=True, tag="child_worked"):
    """An event of a child session, which works for `call` of this session.

    A child has no journal; its events are stored in the session that made the call.
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
    | HookAnswered
    | ServerToolsOffered
    | LoopNoticed
    | SubagentChanged
    | SessionMessageSent
    | SessionMessageText
    | TurnEnded
    | TurnInterrupted
    | ChildWorked
)


def unwrap_child_event(event: T) -> T | AnyEvent:
    """Return the event inside a `ChildWorked`; any other value unchanged."""
    return event.did if isinstance(event, ChildWorked) else event
