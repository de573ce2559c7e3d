"""A session and its child sessions, as a client of version 2 is shown them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.ids import CallId, SessionId
from acp_agent.server.session_tree import SessionTree
from acp_agent.server.v2.projection import Projector
from protocol.v2 import types as acp

if TYPE_CHECKING:
    from acp_agent.server.v2.child_sessions import Children

TreeUpdates = Iterable[tuple[SessionId, acp.SessionUpdate]]


class SessionTreeV2(SessionTree[acp.SessionUpdate]):
    """Turns the events of a session into updates. Feed it every event from the first one on.

    Args:
        session: whose events they are.
        translate: translates texts for the user.
    """

    def __init__(self, session: SessionId, translate: Translator = ENGLISH) -> None:
        self._translate = translate
        self._projector = Projector(translate)
        self._shown_children: Children | None = None
        super().__init__(session, self._projector, self._begin_children)

    def _begin_children(self) -> Children:
        from acp_agent.server.v2.child_sessions import Children  # noqa: PLC0415 - few sessions have any

        self._shown_children = Children(self._projector.activity, self._translate)
        return self._shown_children

    @property
    def waits_for_user(self) -> bool:
        """Whether the session can do nothing before the user answers."""
        return self._projector.activity.waits_for_user

    def asks(self, call: CallId, *, answered: bool = False) -> TreeUpdates:
        """A call waits for the user, of which the journal says nothing, or does so no more."""
        if self._shown_children is not None:
            return self._shown_children.asks(self._session, call, answered=answered)
        activity = self._projector.activity
        told = activity.answered(call) if answered else activity.asks(call)
        return [(self._session, update) for update in told]

    def moved(self) -> TreeUpdates:
        """Another client has the session from now on, with what it is doing."""
        return [(self._session, update) for update in self._projector.activity.moves()]

    def announced(self) -> TreeUpdates:
        """What a client that missed the beginning has to know of before it is told a state."""
        own = [(self._session, update) for update in self._projector.announced()]
        return [*own, *super().announced()]

    def states(self) -> TreeUpdates:
        """What the session is doing now, and its children that are at work."""
        own = [(self._session, self._projector.activity.now())]
        children = self._shown_children
        return own if children is None else [*own, *children.states()]
