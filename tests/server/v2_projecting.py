"""What the projection of version 2 makes of events, held against the protocol's schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from acp_agent.events import AnyEvent, ToolCalled
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.server.v2.projection import Projector
from acp_agent.server.v2.replay import replay
from protocol.codec import typed_json
from tests.support.v2_view import SessionView
from tests.support.wire_schema import wire_schema

Json = dict[str, Any]

CALL = CallId("call_1")
MESSAGE = MessageId("msg_1")
TURN = TurnId("turn_1")


def as_json(updates: Iterable[object]) -> list[Json]:
    """Updates as they go out; each is one that the protocol's schema allows."""
    encoded = [typed_json.encode(one) for one in updates]
    for update in encoded:
        assert not problem(update), (problem(update), update)
    return [msgspec.json.decode(update) for update in encoded]


@cache
def problem(update: bytes) -> str | None:
    """What the protocol's schema says against an update."""
    schema = wire_schema("v2")
    params = {"sessionId": "sess_1", "update": msgspec.json.decode(update)}
    return (
        None
        if schema is None
        else schema.problem("session/update", "client", "Notification", params)
    )


def live(events: Sequence[AnyEvent], projector: Projector | None = None) -> list[Json]:
    projector = projector or Projector()
    return as_json(update for event in events for update in projector.project(event))


def replayed(events: Sequence[AnyEvent]) -> list[Json]:
    return as_json(update for _, update in replay(SessionId("sess_1"), events))


def of(updates: Iterable[Json], kind: str) -> list[Json]:
    """The updates of one kind, without their kind."""
    return [
        {key: value for key, value in update.items() if key != "sessionUpdate"}
        for update in updates
        if update["sessionUpdate"] == kind
    ]


def states(updates: Iterable[Json]) -> list[str]:
    return [update["state"] for update in of(updates, "state_update")]


def assert_same_replay(events: Sequence[AnyEvent]) -> None:
    """Whoever saw the session live knows what whoever saw the replay knows, at any moment."""
    for end in range(1, len(events) + 1):
        live_view, updates = (
            SessionView.of(live(events[:end])),
            SessionView.of(replayed(events[:end])),
        )
        assert updates.conversation() == live_view.conversation()
        assert updates.usage == live_view.usage
    # And whoever comes in the middle and stays.
    for middle in range(len(events)):
        projector = Projector()
        for event in events[:middle]:
            projector.project(event)
        view = SessionView.of(replayed(events[:middle]) + live(events[middle:], projector))
        assert view.conversation() == SessionView.of(live(events)).conversation()


def called(
    name: str = "read", arguments: str = '{"path":"a"}', call: CallId = CALL, **more: Any
) -> ToolCalled:
    return ToolCalled(
        call=call, message=MESSAGE, name=name, arguments=arguments, title=f"Do {name}", **more
    )
