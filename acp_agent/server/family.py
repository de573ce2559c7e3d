"""A session and the child sessions that work for it, as one client is shown them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar, cast

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

if TYPE_CHECKING:
    from acp_agent.server.place import Place
    from acp_agent.server.showing import OfParent, ShowsChildren, ShowsSession

_OF_CHILDREN = frozenset({ChildWorked, SubagentChanged, SessionMessageSent, SessionMessageText})

UpdateT = TypeVar("UpdateT")


class Family(Generic[UpdateT]):
    """Turns the events of a session into updates. Feed it every event from the first one on.

    Args:
        session: whose events they are.
        own: shows what it does itself.
        children: makes what shows its children; most sessions have none.
    """

    def __init__(
        self,
        session: SessionId,
        own: ShowsSession[UpdateT],
        children: Callable[[], ShowsChildren[UpdateT]],
    ) -> None:
        self._session = session
        self._own = own
        self._make_children = children
        self._children: ShowsChildren[UpdateT] | None = None

    def updates(self, event: AnyEvent) -> Iterable[tuple[SessionId, UpdateT]]:
        """The updates that show `event`, each with the session that it belongs to."""
        if type(event) in _OF_CHILDREN:
            if self._children is None:
                self._children = self._make_children()
            return self._children.project(self._session, cast("OfParent | ChildWorked", event))
        shown = self._own.project(event)
        if self._children is not None and isinstance(event, TurnEnded | TurnInterrupted):
            own = ((self._session, update) for update in shown)
            return [*self._children.turn_over(self._session), *own]
        if len(shown) == 1:  # nearly always, and a replay has thousands
            return ((self._session, shown[0]),)
        return [(self._session, update) for update in shown] if shown else ()

    def place(self, call: CallId | None) -> Place:
        """Where the user is asked about a call, or (None) about something else."""
        from acp_agent.server.place import Place  # noqa: PLC0415 - for prompts only

        if self._children is None or call is None:
            return Place(self._session, call)
        return self._children.place(self._session, call)

    def announced(self) -> Iterable[tuple[SessionId, UpdateT]]:
        """What a client that missed the beginning has to know of the children at work."""
        return () if self._children is None else self._children.announced(self._session)
