"""A session and the child sessions that work for it, as one client is shown them."""

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


class Target(NamedTuple):
    """A session that the client is shown, and one of its calls.

    `call` is None where the client is not shown it. `of` is the title of the child whose call it
    is, where that is shown as one of the parent's.
    """

    session: SessionId
    call: CallId | None
    of: str = ""


def child_call_title(child: str, title: str) -> str:
    """The title of a child's call among those of its parent; "" for a call of the parent's own."""
    return f"{child} › {title}" if child else title


UpdateT_co = TypeVar("UpdateT_co", covariant=True)

ParentEvent = (
    SubagentChanged | SessionMessageSent | SessionMessageText
)  # what a parent has of children


class SessionProjector(Protocol[UpdateT_co]):
    """What turns the events of one session into updates."""

    def project(self, event: AnyEvent) -> Sequence[UpdateT_co]:
        """The updates that show `event`."""
        ...

    def cut_off(self) -> Sequence[UpdateT_co]:
        """The updates that end what was shown as under way."""
        ...


class ChildrenProjector(Protocol[UpdateT_co]):
    """What turns the events of a session's children into updates, each with its session."""

    def project(
        self, parent: SessionId, event: ParentEvent | ChildWorked
    ) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """The updates that show `event`."""
        ...

    def place(self, parent: SessionId, call: CallId) -> Target:
        """Where the user is asked about a call, of the parent or of a child."""
        ...

    def announced(self, parent: SessionId) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """What a client that missed the beginning has to know of the children at work."""
        ...

    def turn_over(self, parent: SessionId) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """The parent's turn ended: what is open still is what could not be written."""
        ...


_OF_CHILDREN = frozenset({ChildWorked, SubagentChanged, SessionMessageSent, SessionMessageText})

UpdateT = TypeVar("UpdateT")


class SessionTree(Generic[UpdateT]):
    """Turns the events of a session into updates. Feed it every event from the first one on.

    Args:
        session: whose events they are.
        own: shows what it does itself.
        children: makes what shows its children; most sessions have none.
    """

    def __init__(
        self,
        session: SessionId,
        own: SessionProjector[UpdateT],
        children: Callable[[], ChildrenProjector[UpdateT]],
    ) -> None:
        self._session = session
        self._own = own
        self._make_children = children
        self._children: ChildrenProjector[UpdateT] | None = None

    def updates(self, event: AnyEvent) -> Iterable[tuple[SessionId, UpdateT]]:
        """The updates that show `event`, each with the session that it belongs to."""
        if type(event) in _OF_CHILDREN:
            if self._children is None:
                self._children = self._make_children()
            return self._children.project(self._session, cast("ParentEvent | ChildWorked", event))
        shown = self._own.project(event)
        if self._children is not None and isinstance(event, TurnEnded | TurnInterrupted):
            own = ((self._session, update) for update in shown)
            return [*self._children.turn_over(self._session), *own]
        if len(shown) == 1:  # nearly always, and a replay has thousands
            return ((self._session, shown[0]),)
        return [(self._session, update) for update in shown] if shown else ()

    def place(self, call: CallId | None) -> Target:
        """Where the user is asked about a call, or (None) about something else."""
        if self._children is None or call is None:
            return Target(self._session, call)
        return self._children.place(self._session, call)

    def announced(self) -> Iterable[tuple[SessionId, UpdateT]]:
        """What a client that missed the beginning has to know of the children at work."""
        return () if self._children is None else self._children.announced(self._session)
