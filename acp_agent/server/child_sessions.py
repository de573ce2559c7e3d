"""The child sessions of a session, for a client that knows of such sessions.

What a child does goes out under the child's id, as any session's does. That there is one, what it
is doing, and what it and its parent say to each other, goes out under the parent's.

Source: Agent Client Protocol v1 and v2 (unstable), SubagentUpdate, SessionMessage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from msgspec.structs import replace

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    SessionForked,
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    TurnInterrupted,
    UserMessage,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.session_tree import OfParent, Place, ShowsSession

UpdateT = TypeVar("UpdateT")


class ChildSessions(ABC, Generic[UpdateT]):
    """What a client was told of a session's children. Feed it every event that is of them.

    Args:
        translate: translates texts for the user.
    """

    def __init__(self, translate: Translator = ENGLISH) -> None:
        self._translate = translate
        self._told: dict[SessionId, SubagentChanged] = {}  # all that was told of each, in one
        self._calls: dict[CallId, SessionId] = {}  # whose the open calls are
        self._sent: dict[SessionId, SessionMessageSent] = {}  # to each, and not yet read by it

    @abstractmethod
    def _tell(self, event: OfParent) -> Sequence[UpdateT]:
        """The updates of the parent that show an event."""

    @abstractmethod
    def _session(self, child: SessionId) -> ShowsSession[UpdateT]:
        """What shows the child's events."""

    def project(
        self, parent: SessionId, event: OfParent | ChildWorked
    ) -> Iterator[tuple[SessionId, UpdateT]]:
        """The updates that show `event`, each with the session that it belongs to."""
        if isinstance(event, ChildWorked):
            if event.session not in self._told:  # a client must know of it before anything else
                yield from self.project(parent, SubagentChanged(session=event.session))
            yield from self._worked(parent, event)
            return
        if isinstance(event, SubagentChanged):
            self._told[event.session] = _together(self._told.get(event.session), event)
        elif isinstance(event, SessionMessageSent) and event.recipient in self._told:
            self._sent[event.recipient] = event
        yield from self._of_parent(parent, event)

    def place(self, parent: SessionId, call: CallId) -> Place:
        """Where the user is asked about a call."""
        return Place(self._calls.get(call, parent), call)

    def announced(self, parent: SessionId) -> Iterator[tuple[SessionId, UpdateT]]:
        """What a client that missed the beginning has to know of the children at work."""
        for child, told in self._told.items():
            if self._goes_on(child):
                yield from self._of_parent(parent, told)

    def turn_over(self, parent: SessionId) -> Iterator[tuple[SessionId, UpdateT]]:
        """The parent's turn ended. What is open still is what could not be written."""
        for child in tuple(self._told):
            for update in self._session(child).cut_off():
                yield child, update
            if self._works(child):
                ended = SubagentChanged(session=child, state="idle", stop_reason="cancelled")
                yield from self.project(parent, ended)
        self._calls.clear()

    def _goes_on(self, child: SessionId) -> bool:
        """Whether more of a child is to be shown."""
        return self._works(child)

    def _works(self, child: SessionId) -> bool:
        return self._told[child].state in {"running", "requires_action"}

    def _worked(self, parent: SessionId, event: ChildWorked) -> Iterator[tuple[SessionId, UpdateT]]:
        match event.did:
            case UserMessage():
                yield from self._read(parent, event.session, event.did)
                return
            case ToolCalled():
                self._calls[event.did.call] = event.session
            case ToolEnded():
                self._calls.pop(event.did.call, None)
            case TurnInterrupted():
                for call in event.did.calls:
                    self._calls.pop(call, None)
            case _:
                pass
        for update in self._session(event.session).project(event.did):
            yield event.session, update

    def _read(
        self, parent: SessionId, child: SessionId, task: UserMessage
    ) -> Iterator[tuple[SessionId, UpdateT]]:
        """The child's view of what its parent said to it; each view names the other."""
        sent = self._sent.pop(child, None)
        view = SessionMessageSent(
            message=task.message,
            sender=parent,
            recipient=child,
            sender_message=None if sent is None else sent.message,
            content=task.content,
        )
        yield from self._of_parent(child, view)
        if sent is not None:
            known = SessionMessageSent(message=sent.message, recipient_message=task.message)
            yield from self._of_parent(parent, known)

    def _of_parent(
        self, session: SessionId, event: OfParent
    ) -> Iterator[tuple[SessionId, UpdateT]]:
        if self._translate is not ENGLISH and isinstance(event, SubagentChanged):
            from acp_agent.session.localize import localize  # noqa: PLC0415 - not in English

            translated = localize(event, self._translate)
            assert isinstance(translated, SubagentChanged)
            event = translated
        for update in self._tell(event):
            yield session, update


def _together(before: SubagentChanged | None, event: SubagentChanged) -> SubagentChanged:
    """What is known of a child after an event: what the event leaves out stays."""
    if before is None:
        return event
    changed = {
        name: value
        for name in ("title", "description", "cwd", "directories", "can_cancel")
        if (value := getattr(event, name)) is not None
    }
    if event.state is not None:
        for name in ("state", "stop_reason", "error", "error_kind"):
            changed[name] = getattr(event, name)
    return replace(before, **changed)


def without_inherited(events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
    """A session's events without those of the children that belong to what it was forked from.

    A child has one parent: the session that started it. What the child did for a call is seen in
    what that call shows.
    """
    fork = next(
        (at for at in reversed(range(len(events))) if isinstance(events[at], SessionForked)), 0
    )
    others = {event.session for event in events[:fork] if isinstance(event, SubagentChanged)}
    if not others:
        return events
    messages = {
        event.message
        for event in events
        if isinstance(event, SessionMessageSent) and {event.sender, event.recipient} & others
    }
    return [
        event
        for event in events
        if not (
            (isinstance(event, SubagentChanged | ChildWorked) and event.session in others)
            or (
                isinstance(event, SessionMessageSent | SessionMessageText)
                and event.message in messages
            )
        )
    ]
