"""Several children at work, their steps in any order, cut off anywhere: what clients are shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from acp_agent.content import TextBlock, text_part
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    PermissionAsked,
    PermissionDecided,
    SessionMessageSent,
    SubagentChanged,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.v1.editor import make_session_tree
from acp_agent.server.v2.replay import replay
from acp_agent.server.v2.session_tree import SessionTreeV2
from acp_agent.session.history.interruption import close_open_turn
from protocol.codec import typed_json
from tests.support.child_work import called, did
from tests.support.oracle import Oracle
from tests.support.v2_view import SessionView

Updates = list[tuple[str, dict[str, Any]]]
Lane = list[list[AnyEvent]]  # what comes in this order, each step whole

PARENT = SessionId("s")
WORDS = (TextBlock(text="go"),)
SHELL = '{"command":"true"}'

seeds = pytest.mark.parametrize("seed", range(15))


def mixed(rng: Random, lanes: Iterable[Lane]) -> Iterator[AnyEvent]:
    """The steps of all lanes, each lane in its order."""
    left = [lane for lane in lanes if lane]
    while left:
        lane = rng.choice(left)
        yield from lane.pop(0)
        left = [lane for lane in left if lane]


def call_lane(rng: Random, call: CallId) -> Lane:
    """A call, asked about or not, allowed or not, with output or without."""
    steps: Lane = []
    allowed = True
    if rng.random() < 0.5:
        allowed = rng.random() < 0.6
        steps.append([PermissionAsked(call=call, options=("a",))])
        steps.append([PermissionDecided(call=call, allowed=allowed, by="user")])
    if not allowed:
        return [*steps, [ToolEnded(call=call, failed=True)]]
    runs_command = rng.random() < 0.5
    steps.append([ToolStarted(call=call, cwd="/w" if runs_command else None)])
    for number in range(rng.randint(0, 2)):
        event = ToolShown(call=call, title=f"Now {number}", content=(text_part(str(number)),))
        steps.append([ToolOutput(call=call, text="out\n") if runs_command else event])
    return [*steps, [ToolEnded(call=call, exit_code=0 if runs_command else None)]]


def child_lane(rng: Random, number: int, task: CallId) -> Lane:
    """A child's work from its beginning to the end of its call."""
    child, turn = SessionId(f"child{number}"), TurnId(f"turn{number}")
    steps: Lane = [
        [ToolStarted(call=task)],
        [SubagentChanged(session=child, title=f"explore: {number}", state="running")],
        [
            SessionMessageSent(
                message=MessageId(f"asked{number}"), sender=PARENT, recipient=child, content=WORDS
            )
        ],
    ]
    work: Lane = [
        [TurnStarted(turn=turn), UserMessage(message=MessageId(f"read{number}"), content=WORDS)]
    ]
    for request in range(rng.randint(1, 3)):
        message_id = MessageId(f"said{number}_{request}")
        calls = [CallId(f"call{number}_{request}_{index}") for index in range(rng.randint(0, 3))]
        kinds = [rng.choice((AgentText, AgentThought)) for _ in range(rng.randint(0, 3))]
        work.append([ModelAsked(message=message_id, model="m")])
        for kind in kinds:
            work.append([kind(message=message_id, text="word ")])
        for call in calls:
            work.append([called(call, message=message_id, arguments=SHELL)])
        work.append([ModelAnswered(message=message_id, model="m")])
        work += [[event] for event in mixed(rng, [call_lane(rng, call) for call in calls])]
    work.append([TurnEnded(turn=turn, stop_reason="end_turn")])
    steps += [did(*events, child=child, call=task) for events in work]
    idle = SubagentChanged(session=child, state="idle", stop_reason="end_turn")
    return [*steps, [idle], [ToolEnded(call=task, result="done")]]


def session_events(rng: Random) -> list[AnyEvent]:
    """A turn with one to three children, now and then cut off and closed."""
    message_id = MessageId("said")
    tasks = [CallId(f"task{number}") for number in range(rng.randint(1, 3))]
    events: list[AnyEvent] = [
        TurnStarted(turn=TurnId("turn")),
        UserMessage(message=MessageId("u1"), content=WORDS),
        ModelAsked(message=message_id, model="m"),
        *(called(task, "task", message=message_id) for task in tasks),
        ModelAnswered(message=message_id, model="m"),
        *mixed(rng, [child_lane(rng, number, task) for number, task in enumerate(tasks)]),
        TurnEnded(turn=TurnId("turn"), stop_reason="end_turn"),
    ]
    if rng.random() < 0.5:
        events = events[: rng.randint(3, len(events) - 1)]
        events += close_open_turn(events)
    assert close_open_turn(events) == []
    return events


def as_json(updates: Iterable[tuple[str, object]]) -> Updates:
    return [(of, msgspec.json.decode(typed_json.encode(update))) for of, update in updates]


INFO = {"name": "test", "version": "1"}
HELLO: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {  # what is asked and answered
    1: (
        {},
        {"protocolVersion": 1, "authMethods": [{"id": "demo", "name": "Demo"}]},
    ),
    2: (
        {"info": INFO, "capabilities": {}},
        {
            "protocolVersion": 2,
            "info": INFO,
            "authMethods": [{"methodId": "demo", "type": "agent", "name": "Demo"}],
        },
    ),
}


def judged(updates: Updates, version: int, **capabilities: Any) -> None:
    """Nothing in it breaks the rules of the protocol, and nothing is left open."""
    oracle = Oracle()
    offer, hello = HELLO[version]
    if version == 1:
        offer = {"clientCapabilities": capabilities}
    prompt = {"sessionId": PARENT, "prompt": [{"type": "text", "text": "go"}]}
    oracle.sent(line(id=0, method="initialize", params={"protocolVersion": version} | offer))
    oracle.received(line(id=0, result=hello))
    oracle.sent(line(id=1, method="session/new", params={"cwd": "/", "mcpServers": []}))
    oracle.received(line(id=1, result={"sessionId": PARENT}))
    oracle.sent(line(id=2, method="session/prompt", params=prompt))
    if version == 2:
        oracle.received(line(id=2, result={"messageId": "u1"}))
    for of, update in updates:
        oracle.received(line(method="session/update", params={"sessionId": of, "update": update}))
    if version == 1:
        oracle.received(line(id=2, result={"stopReason": "end_turn"}))
    oracle.finished()


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"


def views(updates: Updates) -> dict[str, Any]:
    """What a client of version 2 knows of each session."""
    return {
        name: SessionView.of(update for of, update in updates if of == name).conversation()
        for name in {of for of, _ in updates}
    }


@seeds
@pytest.mark.parametrize("subagents", [True, False])
@pytest.mark.covers("P13", "S4")
def test_version_1_shows_no_client_more_or_less_in_a_replay(seed: int, subagents: bool) -> None:
    events = session_events(Random(seed))
    client = ClientProfile(subagents=subagents)
    live = make_session_tree(PARENT, client, replay=False)
    updates = as_json(update for event in events for update in live.updates(event))
    judged(updates, 1, **({"subagents": {}} if subagents else {}))
    again = make_session_tree(PARENT, client, replay=True)
    replayed = as_json(update for event in events for update in again.updates(event))
    assert updates == [
        update for update in replayed if update[1]["sessionUpdate"] != "user_message_chunk"
    ]


@seeds
@pytest.mark.covers("P13", "S4")
def test_version_2_shows_a_late_client_the_current_state(seed: int) -> None:
    rng = Random(seed)
    events = session_events(rng)
    live = SessionTreeV2(PARENT)
    updates = as_json(update for event in events for update in live.updates(event))
    if isinstance(events[-1], TurnEnded):  # what was cut off is closed before anybody sees it
        judged(updates, 2)
    assert views(as_json(replay(PARENT, events))) == views(updates)
    moment = rng.randint(0, len(events))
    joined = SessionTreeV2(PARENT)
    for event in events[:moment]:
        list(joined.updates(event))
    later_updates = as_json(update for event in events[moment:] for update in joined.updates(event))
    assert views(as_json(replay(PARENT, events[:moment])) + later_updates) == views(updates)
