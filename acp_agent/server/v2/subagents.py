"""Child sessions and messages between sessions (v2 unstable, SubagentUpdate, SessionMessage)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from acp_agent.events import SessionMessageSent, SessionMessageText, SubagentChanged
from acp_agent.server.errors import turn_error
from acp_agent.server.v2.conversion import text, to_acp
from protocol.v2 import types as acp, unstable_types as unstable


def shown(
    event: SubagentChanged | SessionMessageSent | SessionMessageText,
) -> Sequence[acp.SessionUpdate]:
    """What shows an event."""
    match event:
        case SubagentChanged():
            return subagent_update(event)
        case SessionMessageSent():
            return session_message(event)
        case SessionMessageText():
            return session_message_chunk(event)


def subagent_update(event: SubagentChanged) -> Sequence[acp.SessionUpdate]:
    """A child of the session. What the event leaves as it was is left out."""
    return [
        unstable.SubagentUpdate(
            session_id=event.session,
            title=UNSET if event.title is None else event.title or None,
            description=UNSET if event.description is None else event.description or None,
            capabilities=UNSET if event.can_cancel is None else _capabilities(event.can_cancel),
            state=UNSET if event.state is None else _state(event),
            cwd=UNSET if event.cwd is None else event.cwd or None,
            additional_directories=UNSET if event.directories is None else list(event.directories),
        )
    ]


def session_message(event: SessionMessageSent) -> Sequence[acp.SessionUpdate]:
    """A message that this session sent or received: which of the two, its participants say."""
    return [
        unstable.SessionMessage(
            message_id=event.message,
            sender_session_id=UNSET if event.sender is None else event.sender,
            recipient_session_id=UNSET if event.recipient is None else event.recipient,
            sender_message_id=UNSET if event.sender_message is None else event.sender_message,
            recipient_message_id=(
                UNSET if event.recipient_message is None else event.recipient_message
            ),
            content=UNSET if event.content is None else [to_acp(one) for one in event.content],
        )
    ]


def session_message_chunk(event: SessionMessageText) -> Sequence[acp.SessionUpdate]:
    """A piece of such a message."""
    return [unstable.SessionMessageChunk(message_id=event.message, content=text(event.text))]


def _capabilities(can_cancel: bool) -> unstable.SubagentSessionCapabilities | None:
    if not can_cancel:
        return None
    return unstable.SubagentSessionCapabilities(cancel=unstable.SessionCancelCapabilities())


def _state(event: SubagentChanged) -> acp.StateUpdate:
    match event.state:
        case "running":
            return acp.RunningStateUpdate()
        case "requires_action":
            return acp.RequiresActionStateUpdate()
        case "idle" if event.error:
            error = turn_error(event.error, event.error_kind)
            return acp.ErrorIdleStateUpdate(error=error)
        case "idle":
            return acp.IdleStateUpdate(stop_reason=event.stop_reason)
        case _:
            return acp.UnknownStateUpdate()
