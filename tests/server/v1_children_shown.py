"""What version 1 shows of a session with children, as it goes out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from acp_agent.events import AnyEvent
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.v1.editor import make_session_tree
from protocol.codec import typed_json
from tests.support.child_work import PARENT
from tests.support.wire_schema import wire_schema

Json = dict[str, Any]

KNOWS = ClientProfile(subagents=True)
KNOWS_NOT = ClientProfile()


@cache
def problem(update: bytes) -> str | None:
    """What the protocol's schema says against an update."""
    schema = wire_schema("v1")
    params = {"sessionId": PARENT, "update": msgspec.json.decode(update)}
    if schema is None:
        return None
    return schema.problem("session/update", "client", "Notification", params)


def project_updates(
    client: ClientProfile, events: Sequence[AnyEvent], *, replay: bool = False
) -> list[tuple[str, Json]]:
    """What goes out, each with the session that it is of."""
    family = make_session_tree(PARENT, client, replay=replay)
    updates: list[tuple[str, Json]] = []
    for event in events:
        for session, update in family.updates(event):
            encoded = typed_json.encode(update)
            assert not problem(encoded), (problem(encoded), encoded)
            updates.append((session, msgspec.json.decode(encoded)))
    return updates


def kinds(updates: Sequence[tuple[str, Json]], session: str) -> list[str]:
    return [update["sessionUpdate"] for of, update in updates if of == session]


def cards(updates: Sequence[tuple[str, Json]], session: str) -> dict[str, list[Json]]:
    """The updates of each call."""
    result: dict[str, list[Json]] = {}
    for of, update in updates:
        if of == session and update["sessionUpdate"].startswith("tool_call"):
            result.setdefault(update["toolCallId"], []).append(update)
    return result
