"""A session and its children, as a client of version 1 is shown them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_agent.config.message_catalog import ENGLISH, Words
from acp_agent.ids import SessionId
from acp_agent.server.client import ClientProfile
from acp_agent.server.family import Family
from acp_agent.server.v1.projection import Projector
from protocol.v1 import types as acp

if TYPE_CHECKING:
    from acp_agent.server.v1.asked_calls import AskedCalls
    from acp_agent.server.v1.children import Children


def family_of(
    session: SessionId, client: ClientProfile, *, replay: bool, words: Words = ENGLISH
) -> Family[acp.SessionUpdate]:
    """What shows the events of `session` to a client; `replay` as in `Projector`."""

    def projector() -> Projector:
        return Projector(client, replay=False, words=words)

    def children() -> Children | AskedCalls:
        if client.subagents:
            from acp_agent.server.v1.children import Children  # noqa: PLC0415 - few sessions have any

            return Children(projector, words)
        from acp_agent.server.v1.asked_calls import AskedCalls  # noqa: PLC0415 - likewise

        return AskedCalls(projector(), words)

    return Family(session, Projector(client, replay=replay, words=words), children)
