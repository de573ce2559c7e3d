"""Child sessions for clients of version 2, which all know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import ChildWorked, SessionMessageSent, SessionMessageText, SubagentChanged
from acp_agent.ids import CallId, SessionId
from acp_agent.server.child_sessions import ChildSessions
from acp_agent.server.errors import turn_error
from acp_agent.server.session_tree import OfParent
from acp_agent.server.v2.conversion import text, to_acp
from acp_agent.server.v2.projection import Projector
from protocol.v2 import types as acp, unstable_subagents as unstable

if TYPE_CHECKING:
    from acp_agent.server.v2.activity import Activity


class Children(ChildSessions[acp.SessionUpdate]):
    """The children of a session.

    Args:
        activity: what the session itself is doing: it waits for the user where a child does.
        translate: translates texts for the user.
    """

    def __init__(self, activity: Activity, translate: Translator = ENGLISH) -> None:
        super().__init__(translate)
        self._activity = activity
        self._projectors: dict[SessionId, Projector] = {}
        self._work_for: dict[SessionId, CallId] = {}  # which call each works for

    def announced(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """What a client that missed the beginning has to know of the children at work.

        Those whose commands go on behind their calls are among them, with the terminals of these.
        """
        yield from super().announced(parent)
        for child, projector in self._projectors.items():
            for update in projector.announced():
                yield child, update

    def states(self) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """What the children are doing that are at work."""
        for child, projector in self._projectors.items():
            if self._goes_on(child):
                yield child, projector.activity.now()

    def asks(
        self, parent: SessionId, call: CallId, *, answered: bool = False
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """A call waits for the user, of which the journal says nothing, or does so no more."""
        child = self.place(parent, call).session
        activity = self._activity if child == parent else self._session(child).activity
        for update in activity.answered(call) if answered else activity.asks(call):
            yield child, update
        if child != parent:
            yield from self._mirrored(parent, child)

    def _goes_on(self, child: SessionId) -> bool:
        return self._works(child) or not self._session(child).activity.at_rest

    def _worked(
        self, parent: SessionId, event: ChildWorked
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        self._work_for[event.session] = event.call
        yield from super()._worked(parent, event)
        yield from self._mirrored(parent, event.session)

    def _mirrored(
        self, parent: SessionId, child: SessionId
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """The call that a child works for waits for the user as long as the child does."""
        call = self._work_for[child]
        waits = self._session(child).activity.waits_for_user
        for update in self._activity.asks(call) if waits else self._activity.answered(call):
            yield parent, update

    def _tell(self, event: OfParent) -> Sequence[acp.SessionUpdate]:
        return shown(event)

    def _session(self, child: SessionId) -> Projector:
        projector = self._projectors.get(child)
        if projector is None:
            projector = self._projectors[child] = Projector(self._translate)
        return projector


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
