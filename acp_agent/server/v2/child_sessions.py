"""Child sessions for clients of version 2, which all know of them."""

from __future__ import annotations

from collections.abc import Iterator

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import ChildWorked
from acp_agent.ids import CallId, SessionId
from acp_agent.server.child_sessions import ChildSessions, ChildUpdates
from acp_agent.server.v2.conversion import to_acp
from acp_agent.server.v2.projection import Projector
from protocol.v2 import types as acp, unstable_subagents as unstable

CHILD_UPDATES = ChildUpdates(
    subagent=unstable.SubagentUpdate,
    can_cancel=unstable.SubagentSessionCapabilities(cancel=unstable.SessionCancelCapabilities()),
    running=acp.RunningStateUpdate,
    requires_action=acp.RequiresActionStateUpdate,
    idle=acp.IdleStateUpdate,
    failed=acp.ErrorIdleStateUpdate,
    unknown=acp.UnknownStateUpdate,
    message=unstable.SessionMessage,
    chunk=unstable.SessionMessageChunk,
    content=to_acp,
)


class Children(ChildSessions[acp.SessionUpdate, Projector]):
    """The children of a session.

    Args:
        projector: shows the session's own events. It waits for the user while a child does.
    """

    def __init__(self, projector: Projector, translate: Translator = ENGLISH) -> None:
        super().__init__(CHILD_UPDATES, projector, lambda: Projector(translate), translate)
        self._activity = projector.activity
        self._calls_by_child: dict[SessionId, CallId] = {}  # the call of each child

    def missed_updates(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Return what a client must know of working children whose start it did not see.

        This includes children with commands in the background, and the terminals of these.
        """
        yield from super().missed_updates(parent)
        for child, projector in self._projectors.items():
            for update in projector.missed_updates():
                yield child, update

    def states(self) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Return the states of the working children."""
        for child, projector in self._projectors.items():
            if self._is_active(child):
                yield child, projector.activity.now()

    def waiting_updates(
        self, parent: SessionId, call: CallId, *, answered: bool = False
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Show that a call waits for a form or page, which is not in the journal, or has ended."""
        child = self.target(parent, call).session
        activity = self._activity if child == parent else self._session(child).activity
        for update in activity.call_answered(call) if answered else activity.call_waits(call):
            yield child, update
        if child != parent:
            yield from self._mirror_waiting(parent, child)

    def _is_active(self, child: SessionId) -> bool:
        return self._is_working(child) or not self._session(child).activity.is_at_rest

    def _project_work(
        self, parent: SessionId, event: ChildWorked
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        self._calls_by_child[event.session] = event.call
        yield from super()._project_work(parent, event)
        yield from self._mirror_waiting(parent, event.session)

    def _mirror_waiting(
        self, parent: SessionId, child: SessionId
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Show the call that a child works for as waiting for the user while the child waits."""
        call = self._calls_by_child[child]
        waits = self._session(child).activity.waits_for_user
        for update in (
            self._activity.call_waits(call) if waits else self._activity.call_answered(call)
        ):
            yield parent, update
