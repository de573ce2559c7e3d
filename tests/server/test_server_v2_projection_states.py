"""The states of a session that a client of version 2 is told: running, waiting, idle and why."""

from __future__ import annotations

import pytest

from acp_agent.events import (
    AnyEvent,
    ModelAsked,
    PermissionAsked,
    PermissionDecided,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
)
from acp_agent.ids import CallId
from acp_agent.server.v2.projection import Projector
from tests.server.v2_projecting import CALL, MESSAGE, TURN, Json, as_json, called, live, of, states


def test_a_question_is_a_state_unless_other_work_continues() -> None:
    second_call = CallId("call_2")
    question = PermissionAsked(call=CALL, options=("a",))
    projector = Projector()
    assert states(
        live([TurnStarted(turn=TURN), called(), called(call=second_call)], projector)
    ) == ["running"]
    assert states(live([ToolStarted(call=second_call)], projector)) == []
    assert states(live([question], projector)) == []
    assert states(live([ToolEnded(call=second_call)], projector)) == ["requires_action"]
    decided = PermissionDecided(call=CALL, allowed=True, by="user")
    assert states(live([decided, ToolStarted(call=CALL)], projector)) == ["running"]
    assert states(as_json(projector.activity.call_waits(CALL))) == ["requires_action"]
    assert states(as_json([projector.activity.now()])) == ["requires_action"]
    assert states(as_json(projector.activity.call_answered(CALL))) == ["running"]
    assert states(live([ToolEnded(call=CALL)], projector)) == []


def test_a_call_that_is_stopped_while_the_user_is_asked_does_not_wait_any_more() -> None:
    question = PermissionAsked(call=CALL, options=("a",))
    ended = ToolEnded(call=CALL, failed=True, cancelled=True)
    events: list[AnyEvent] = [TurnStarted(turn=TURN), called(), question, ended]
    updates = live([*events, ModelAsked(message=MESSAGE, model="m")])
    assert states(updates) == ["running", "requires_action", "running"]
    stopped = live([*events, TurnEnded(turn=TURN, stop_reason="cancelled")])
    assert states(stopped) == ["running", "requires_action", "idle"]
    assert of(updates, "tool_call_update")[-1] == {
        "toolCallId": CALL,
        "status": "cancelled",
        "capabilities": None,
    }


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (TurnEnded(turn=TURN, stop_reason="max_tokens"), {"stopReason": "max_tokens"}),
        (
            TurnEnded(turn=TURN, stop_reason="end_turn", usage=Usage(input=10, output=2)),
            {
                "stopReason": "end_turn",
                "usage": {"totalTokens": 12, "inputTokens": 10, "outputTokens": 2},
            },
        ),
        (
            TurnEnded(turn=TURN, error="openai failed", error_kind="model"),
            {
                "stopReason": "error",
                "error": {"code": -32603, "message": "openai failed"},
            },
        ),
        (
            TurnEnded(turn=TURN, error="no key", error_kind="auth_required"),
            {
                "stopReason": "error",
                "error": {"code": -32000, "message": "no key"},
            },
        ),
        (
            TurnEnded(turn=TURN, error="of an older journal"),
            {"stopReason": "error", "error": {"code": -32603, "message": "of an older journal"}},
        ),
    ],
)
def test_the_end_of_a_turn_has_its_reason_and_usage(ended: TurnEnded, expected: Json) -> None:
    updates = live([TurnStarted(turn=TURN), ended])
    states = [{"state": "running"}, {"state": "idle"} | expected]
    assert of(updates, "state_update") == [state | {"background": []} for state in states]


def test_idle_is_sent_once_and_only_after_running() -> None:
    ended = TurnEnded(turn=TURN, stop_reason="end_turn")
    assert live([ended]) == []
    assert states(live([TurnStarted(turn=TURN), ended, ended])) == ["running", "idle"]
