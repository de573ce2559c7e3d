"""A session and its children, as a client of version 2 is shown them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from acp_agent.config.message_catalog import ENGLISH, Words
from acp_agent.ids import CallId, SessionId
from acp_agent.server.family import Family
from acp_agent.server.v2.projection import Projector
from protocol.v2 import types as acp

if TYPE_CHECKING:
    from acp_agent.server.v2.children import Children

Addressed = Iterable[tuple[SessionId, acp.SessionUpdate]]


class SessionFamily(Family[acp.SessionUpdate]):
    """Turns the events of a session into updates. Feed it every event from the first one on.

    Args:
        session: whose events they are.
        words: what is said to the user, in the user's language.
    """

    def __init__(self, session: SessionId, words: Words = ENGLISH) -> None:
        self._words = words
        self._projector = Projector(words)
        self._shown_children: Children | None = None
        super().__init__(session, self._projector, self._begin_children)

    def _begin_children(self) -> Children:
        from acp_agent.server.v2.children import Children  # noqa: PLC0415 - few sessions have any

        self._shown_children = Children(self._projector.activity, self._words)
        return self._shown_children

    @property
    def waits_for_user(self) -> bool:
        """Whether the session can do nothing before the user answers."""
        return self._projector.activity.waits_for_user

    def asks(self, call: CallId, *, answered: bool = False) -> Addressed:
        """A call waits for the user, of which the journal says nothing, or does so no more."""
        if self._shown_children is not None:
            return self._shown_children.asks(self._session, call, answered=answered)
        activity = self._projector.activity
        told = activity.answered(call) if answered else activity.asks(call)
        return [(self._session, update) for update in told]

    def moved(self) -> Addressed:
        """Another client has the session from now on, with what it is doing."""
        return [(self._session, update) for update in self._projector.activity.moves()]

    def announced(self) -> Addressed:
        """What a client that missed the beginning has to know of before it is told a state."""
        own = [(self._session, update) for update in self._projector.announced()]
        return [*own, *super().announced()]

    def states(self) -> Addressed:
        """What the session is doing now, and its children that are at work."""
        own = [(self._session, self._projector.activity.now())]
        children = self._shown_children
        return own if children is None else [*own, *children.states()]
