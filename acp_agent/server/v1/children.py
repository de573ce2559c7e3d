"""Child sessions for clients of version 1 that advertise `subagents`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from acp_agent.config.message_catalog import ENGLISH, Words
from acp_agent.ids import SessionId
from acp_agent.server.children import ChildSessions
from acp_agent.server.showing import OfParent
from acp_agent.server.v1.subagents import shown
from protocol.v1 import types as acp

if TYPE_CHECKING:
    from acp_agent.server.v1.projection import Projector


class Children(ChildSessions[acp.SessionUpdate]):
    """The children of a session.

    Args:
        projector: makes what shows the events of one child.
        words: what is said to the user, in the user's language.
    """

    def __init__(self, projector: Callable[[], Projector], words: Words = ENGLISH) -> None:
        super().__init__(words)
        self._make = projector
        self._projectors: dict[SessionId, Projector] = {}

    def _tell(self, event: OfParent) -> Sequence[acp.SessionUpdate]:
        return shown(event)

    def _session(self, child: SessionId) -> Projector:
        projector = self._projectors.get(child)
        if projector is None:
            projector = self._projectors[child] = self._make()
        return projector
