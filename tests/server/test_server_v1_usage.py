"""What a turn took is in the response to the prompt that began it."""

from __future__ import annotations

import pytest

from tests.server.server_session import READ, OpenSession, say_meanwhile
from tests.support.model_server import ModelServer, Stall, Status, answer
from tests.support.wire_client import AnswerError


@pytest.mark.covers("P10")
async def test_the_response_has_the_sum_of_the_turns_requests_once(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer(READ), answer("Half", stall), answer("And so."), answer("Anew."))
    running, session = await opened()
    first, second = await say_meanwhile(running, session, stall, "look", "use tabs")
    usage = (await running.result(first))["usage"]
    assert usage == {"totalTokens": 45, "inputTokens": 30, "outputTokens": 15}
    assert await running.result(second) == {"stopReason": "end_turn"}
    repeated = await running.prompt(session, "again")
    assert repeated["usage"] == {"totalTokens": 15, "inputTokens": 10, "outputTokens": 5}


@pytest.mark.covers("P10")
async def test_a_turn_without_an_answer_of_a_model_tells_no_usage(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    assert await running.prompt(session, "/help") == {"stopReason": "end_turn"}
    model_server.add(Status(code=400, message="no"))
    with pytest.raises(AnswerError, match=r"400.*: no"):
        await running.prompt(session, "go")
