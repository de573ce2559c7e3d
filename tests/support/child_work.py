"""The events of a call that a child session works for, as a session writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ChildWorked,
    ModelAnswered,
    ModelAsked,
    PermissionAsked,
    PermissionDecided,
    SessionMessageSent,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    ToolShown,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId

PARENT = SessionId("sess_parent")
CHILD = SessionId("sess_child")
TASK = CallId("call_task")  # the parent's call
INNER = CallId("call_inner")  # the child's
TITLE = "explore: find the parser"
ASKED, ANSWERED = MessageId("msg_asked"), MessageId("msg_answered")  # between the two
READ = MessageId("msg_read")  # what the child was asked, in its own conversation
SAID = MessageId("msg_said")  # by the child's model


def begun(call: CallId = TASK) -> list[AnyEvent]:
    """A turn in which a call for a child runs."""
    return [
        TurnStarted(turn=TurnId("turn_1")),
        UserMessage(message=MessageId("msg_user"), content=(TextBlock(text="Where is it?"),)),
        called(call, "task", title=TITLE),
        ToolStarted(call=call),
    ]


def called(call: CallId, name: str = "shell", **more: Any) -> ToolCalled:
    """A call of a tool."""
    given = {"message": MessageId("msg_1"), "arguments": "{}", "title": f"Do {name}"}
    return ToolCalled(call=call, name=name, **(given | more))


def did(*events: AnyEvent, child: SessionId = CHILD, call: CallId = TASK) -> list[AnyEvent]:
    """What a child did."""
    return [ChildWorked(session=child, call=call, did=event) for event in events]


def announced(child: SessionId = CHILD, call: CallId = TASK, title: str = TITLE) -> list[AnyEvent]:
    """A child begins with its task."""
    return [
        SubagentChanged(
            session=child, title=title, description="Looks", can_cancel=True, state="running"
        ),
        SessionMessageSent(
            message=ASKED, sender=PARENT, recipient=child, content=(TextBlock(text="Find it"),)
        ),
        *did(
            TurnStarted(turn=TurnId(f"turn_{child}")),
            UserMessage(message=READ, content=(TextBlock(text="Find it"),)),
            ModelAsked(message=SAID, model="openai/small"),
            child=child,
            call=call,
        ),
    ]


def asks(call: CallId = INNER) -> list[AnyEvent]:
    """The user is asked about a call of the child's."""
    return [
        *did(PermissionAsked(call=call, options=("yes", "no"))),
        SubagentChanged(session=CHILD, state="requires_action"),
    ]


def decided(call: CallId = INNER, *, allowed: bool = True) -> list[AnyEvent]:
    """The user decided."""
    return [
        SubagentChanged(session=CHILD, state="running"),
        *did(PermissionDecided(call=call, allowed=allowed, by="user", known=True)),
    ]


def ran(call: CallId = INNER) -> list[AnyEvent]:
    """A call of the child's runs and ends."""
    return did(ToolStarted(call=call), ToolShown(call=call, title="Done"), ToolEnded(call=call))


def answered(*pieces: str, usage: Usage | None = None) -> list[AnyEvent]:
    """The child's model says something."""
    return did(
        *(AgentText(message=SAID, text=piece) for piece in pieces),
        ModelAnswered(
            message=SAID, model="openai/small", usage=usage or Usage(input=70, output=7), cost=0.25
        ),
    )


def done(child: SessionId = CHILD, call: CallId = TASK, answer: str = "There.") -> list[AnyEvent]:
    """The child is done, and so is the call."""
    return [
        *did(
            TurnEnded(turn=TurnId(f"turn_{child}"), stop_reason="end_turn"), child=child, call=call
        ),
        SubagentChanged(session=child, state="idle", stop_reason="end_turn"),
        SessionMessageSent(
            message=ANSWERED, sender=child, recipient=PARENT, content=(TextBlock(text=answer),)
        ),
        ToolEnded(call=call, result=answer),
    ]


def ended() -> list[AnyEvent]:
    """The end of the parent's turn."""
    return [TurnEnded(turn=TurnId("turn_1"), stop_reason="end_turn")]


def whole(*, allowed: bool = True) -> Sequence[AnyEvent]:
    """A turn with a child that calls a tool, for which it needs the user."""
    return [
        *begun(),
        *announced(),
        *did(called(INNER, "shell", title="`touch a`")),
        *answered("It ", "is "),
        *asks(),
        *decided(allowed=allowed),
        *(ran() if allowed else did(ToolEnded(call=INNER, failed=True))),
        *did(AgentText(message=SAID, text="there.")),
        *done(),
        *ended(),
    ]
