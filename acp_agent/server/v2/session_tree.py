"""Turns the events of a session and its child sessions into the updates of version 2."""

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
    """Turns the events of a session and its children into updates. Needs every event."""

    def __init__(self, session: SessionId, translate: Translator = ENGLISH) -> None:
        self._translate = translate
        self._projector = Projector(translate)
        self._tree_children: Children | None = None
        super().__init__(session, self._projector, self._create_children)

    def _create_children(self) -> Children:
        from acp_agent.server.v2.child_sessions import Children  # noqa: PLC0415 - few sessions have any

        self._tree_children = Children(self._projector, self._translate)
        return self._tree_children

    @property
    def waits_for_user(self) -> bool:
        """Whether nothing continues before the user answers."""
        return self._projector.activity.waits_for_user

    def waiting_updates(self, call: CallId, *, answered: bool = False) -> TreeUpdates:
        """Show that a call waits for a form or page, which is not in the journal, or has ended."""
        if self._tree_children is not None:
            return self._tree_children.waiting_updates(self._session, call, answered=answered)
        activity = self._projector.activity
        updates = activity.call_answered(call) if answered else activity.call_waits(call)
        return [(self._session, update) for update in updates]

    def move_away(self) -> TreeUpdates:
        """Move the session, with its running turn, to another client."""
        return [(self._session, update) for update in self._projector.activity.moved_away()]

    def missed_updates(self) -> TreeUpdates:
        """Return what a client must know before a state, if it did not see the start."""
        updates = [(self._session, update) for update in self._projector.missed_updates()]
        return [*updates, *super().missed_updates()]

    def states(self) -> TreeUpdates:
        """Return the states of the session and of its working children."""
        updates = [(self._session, self._projector.activity.now())]
        children = self._tree_children
        return updates if children is None else [*updates, *children.states()]
