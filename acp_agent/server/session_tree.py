"""Turns the events of a session and its child sessions into the updates for one client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
    TurnEnded,
    TurnInterrupted,
)
from acp_agent.ids import CallId, SessionId

UpdateT_co = TypeVar("UpdateT_co", covariant=True)
# The events about children that are shown in the parent.
ParentEvent = SubagentChanged | SessionMessageSent | SessionMessageText
_CHILD_EVENTS = frozenset({ChildWorked, SubagentChanged, SessionMessageSent, SessionMessageText})
UpdateT = TypeVar("UpdateT")


class Target(NamedTuple):
    """Where the user is asked: a session that the client is shown, and one of its calls.

    `call` is None if the client is not shown the call. `child_title` is the title of the child
    session, if its call is shown as one of the parent's.
    """

    session: SessionId
    call: CallId | None
    child_title: str = ""


def child_call_title(child: str, title: str) -> str:
    """Return the title of a child's call among its parent's; `child` is "" for the parent's own."""
    return f"{child} › {title}" if child else title


class SessionProjector(Protocol[UpdateT_co]):
    """Turns the events of one session into updates."""

    def project(self, event: AnyEvent) -> Sequence[UpdateT_co]:
        """Return the updates that show `event`."""

    def cut_off(self) -> Sequence[UpdateT_co]:
        """Return the updates that end what was shown as running."""

    def refer(self, call: CallId, child: SessionId) -> Sequence[UpdateT_co]:
        """Return the updates that show a reference to a child session in an open call."""


class ChildrenProjector(Protocol[UpdateT_co]):
    """Turns the events of a session's children into updates, each with its session."""

    def project(
        self, parent: SessionId, event: ParentEvent | ChildWorked
    ) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """Return the updates that show `event`."""

    def target(self, parent: SessionId, call: CallId) -> Target:
        """Return where the user is asked about a call of the parent or of a child."""

    def missed_updates(self, parent: SessionId) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """Return the updates about working children for a client that did not see them start."""

    def end_turn(self, parent: SessionId) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """End what is still open, as the parent's turn ended."""


class SessionTree(Generic[UpdateT]):
    """Turns the events of a session and its children into updates. Needs every event.

    Args:
        children: makes what shows its children; most sessions have none.
    """

    def __init__(
        self,
        session: SessionId,
        projector: SessionProjector[UpdateT],
        children: Callable[[], ChildrenProjector[UpdateT]],
    ) -> None:
        self._session = session
        self._session_projector = projector
        self._make_children = children
        self._children: ChildrenProjector[UpdateT] | None = None

    def updates(self, event: AnyEvent) -> Iterable[tuple[SessionId, UpdateT]]:
        """Return the updates that show `event`, each with its session."""
        if type(event) in _CHILD_EVENTS:
            if self._children is None:
                self._children = self._make_children()
            return self._children.project(self._session, cast("ParentEvent | ChildWorked", event))
        updates = self._session_projector.project(event)
        if self._children is not None and isinstance(event, TurnEnded | TurnInterrupted):
            session_updates = ((self._session, update) for update in updates)
            return [*self._children.end_turn(self._session), *session_updates]
        if len(updates) == 1:  # nearly always, and a replay has thousands
            return ((self._session, updates[0]),)
        return [(self._session, update) for update in updates] if updates else ()

    def target(self, call: CallId | None) -> Target:
        """Return where the user is asked about a call, or about something else (None)."""
        if self._children is None or call is None:
            return Target(self._session, call)
        return self._children.target(self._session, call)

    def missed_updates(self) -> Iterable[tuple[SessionId, UpdateT]]:
        """Return the updates about working children for a client that did not see them start."""
        return () if self._children is None else self._children.missed_updates(self._session)
