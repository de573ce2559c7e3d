"""Child sessions for clients of version 1 that advertise `subagents`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    PermissionAsked,
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnInterrupted,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.child_sessions import ChildSessions
from acp_agent.server.errors import turn_error
from acp_agent.server.session_tree import OfParent, Place, in_child
from acp_agent.server.v1.conversion import to_acp
from acp_agent.session.localize import localize
from protocol.v1 import types as acp, unstable_subagents as unstable

if TYPE_CHECKING:
    from acp_agent.server.v1.projection import Projector


class Children(ChildSessions[acp.SessionUpdate]):
    """The children of a session.

    Args:
        projector: makes what shows the events of one child.
        translate: translates texts for the user.
    """

    def __init__(self, projector: Callable[[], Projector], translate: Translator = ENGLISH) -> None:
        super().__init__(translate)
        self._make = projector
        self._projectors: dict[SessionId, Projector] = {}

    def _tell(self, event: OfParent) -> Sequence[acp.SessionUpdate]:
        return shown(event)

    def _session(self, child: SessionId) -> Projector:
        projector = self._projectors.get(child)
        if projector is None:
            projector = self._projectors[child] = self._make()
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
        acp.SubagentUpdate(
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
        acp.SessionMessage(
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
    return [
        acp.SessionMessageChunk(message_id=event.message, content=acp.TextContent(text=event.text))
    ]


def _capabilities(can_cancel: bool) -> acp.SubagentSessionCapabilities | None:
    if not can_cancel:
        return None
    return acp.SubagentSessionCapabilities(cancel=acp.SessionCancelCapabilities())


def _state(event: SubagentChanged) -> acp.StateUpdate:
    match event.state:
        case "running":
            return unstable.RunningStateUpdate()
        case "requires_action":
            return unstable.RequiresActionStateUpdate()
        case "idle" if event.error:
            error = turn_error(event.error, event.error_kind)
            return unstable.ErrorIdleStateUpdate(error=error)
        case "idle":
            return unstable.IdleStateUpdate(stop_reason=event.stop_reason)
        case _:
            return unstable.UnknownStateUpdate()


TITLE = 60  # characters of a child's title in front of its call's
_QUESTION = "ask_user"  # the tool that asks the user by itself


class AskedCalls:
    """Shows calls of children as the parent's. Feed it every event that is of them.

    Args:
        projector: shows the calls.
        translate: translates texts for the user.
    """

    def __init__(self, projector: Projector, translate: Translator = ENGLISH) -> None:
        self._projector = projector
        self._translate = translate
        self._titles: dict[SessionId, str] = {}
        # Those that are open and not shown, with what shows them until they run.
        self._hidden: dict[CallId, list[ToolCalled | ToolShown]] = {}
        self._shown: dict[CallId, SessionId] = {}  # those that are open, and whose they are

    def project(
        self, parent: SessionId, event: OfParent | ChildWorked
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """The updates that show `event`, each with the session that it belongs to."""
        if isinstance(event, SubagentChanged) and event.title is not None:
            self._titles[event.session] = event.title
        if not isinstance(event, ChildWorked):
            return
        for one in self._due(event.session, event.did):
            for update in self._projector.project(self._titled(event.session, one)):
                yield parent, update
        if isinstance(event.did, TurnInterrupted):
            for call in event.did.calls:
                if self._shown.pop(call, None) is not None:
                    yield parent, self._projector.cut(call)

    def place(self, parent: SessionId, call: CallId) -> Place:
        """Where the user is asked about a call."""
        if call in self._hidden:
            return Place(parent, None)
        child = self._shown.get(call)
        return Place(parent, call, "" if child is None else self._title(child))

    def announced(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Nothing: of children, such a client knows nothing."""
        del parent
        yield from ()

    def turn_over(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """The parent's turn ended. What is open still is what could not be written."""
        for call in self._shown:
            yield parent, self._projector.cut(call)
        self._hidden.clear()
        self._shown.clear()

    def _due(self, child: SessionId, did: AnyEvent) -> Iterator[AnyEvent]:
        """What is to be shown now."""
        match did:
            case ToolCalled() if did.name == _QUESTION:
                self._shown[did.call] = child
                yield did
            case ToolCalled():
                self._hidden[did.call] = [did]
            case PermissionAsked() if did.call in self._hidden:
                self._shown[did.call] = child
                yield from self._hidden.pop(did.call)
            case ToolStarted() | ToolShown() | ToolOutput() | ToolEnded():
                if did.call in self._shown:
                    yield did
                else:
                    self._keep(did)
                if isinstance(did, ToolEnded):
                    self._shown.pop(did.call, None)
            case _:
                pass

    def _keep(self, did: ToolStarted | ToolShown | ToolOutput | ToolEnded) -> None:
        """An event of a call that is not shown: what a card would have to begin with."""
        match did:
            case ToolShown() if self._hidden.get(did.call):
                self._hidden[did.call].append(did)
            case ToolStarted() if did.call in self._hidden:
                self._hidden[did.call].clear()  # nobody is asked any more whether it may run
            case ToolEnded():
                self._hidden.pop(did.call, None)
            case _:
                pass

    def _titled(self, child: SessionId, event: AnyEvent) -> AnyEvent:
        """An event of a call, whose title says in which child it is."""
        event = localize(event, self._translate)
        if isinstance(event, ToolCalled | ToolShown) and event.title is not None:
            return replace(event, title=in_child(self._title(child), event.title))
        return event

    def _title(self, child: SessionId) -> str:
        title = self._titles.get(child, "")
        return title if len(title) <= TITLE else f"{title[: TITLE - 1]}…"
