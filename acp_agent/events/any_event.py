"""All events, and the one that holds what happened in a child session."""

from __future__ import annotations

from typing import TypeVar

from acp_agent.events.base import Event
from acp_agent.events.calls import (
    BackgroundCommandChanged,
    PermissionAsked,
    PermissionDecided,
    PlanChanged,
    PlanRemoved,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
)
from acp_agent.events.session import (
    ConfigChanged,
    DirectoriesChanged,
    NoticeShown,
    PromptRepeated,
    SessionForked,
    SessionStarted,
    SystemPromptGiven,
    SystemPromptWritten,
    TitleChanged,
    UserMessage,
)
from acp_agent.events.subagents import (
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
)
from acp_agent.events.turns import (
    AgentText,
    AgentThought,
    LoopNoticed,
    ModelAnswered,
    ModelAsked,
    ThoughtSealed,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UsageReported,
)
from acp_agent.events.upkeep import (
    CheckpointMade,
    CompactionChanged,
    CompactionSummaryText,
    ContextTrimmed,
    PicturesDescribed,
    Rewound,
)
from acp_agent.ids import CallId, SessionId


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
    | ThoughtSealed
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
