"""A session and its child sessions, as a client of version 1 is shown them."""

from __future__ import annotations

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.ids import SessionId
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.session_tree import ChildrenProjector, SessionTree
from acp_agent.server.v1.projection import Projector
from protocol.v1 import types as acp


def make_session_tree(
    session: SessionId, client: ClientProfile, *, replay: bool, translate: Translator = ENGLISH
) -> SessionTree[acp.SessionUpdate]:
    """Return what shows a session to a client; `replay` is as in `Projector`."""

    def projector() -> Projector:
        return Projector(client, replay=False, translate=translate)

    own = Projector(client, replay=replay, translate=translate)

    def children() -> ChildrenProjector[acp.SessionUpdate]:
        if client.subagents:
            from acp_agent.server.child_sessions import ChildSessions  # noqa: PLC0415 - few have any
            from acp_agent.server.v1.child_sessions import CHILD_UPDATES  # noqa: PLC0415 - likewise

            return ChildSessions(CHILD_UPDATES, own, projector, translate)
        from acp_agent.server.v1.child_sessions import AskedCalls  # noqa: PLC0415 - likewise

        return AskedCalls(projector(), translate)

    return SessionTree(session, own, children)
