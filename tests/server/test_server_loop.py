"""`/loop N prompt`: the same prompt again until the model says that it is done."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.server.server_session import OpenSession, messages
from tests.server.v2_session import OpenV2, states
from tests.support.model_server import Call, ModelServer, Stall, answer

FINISH = Call("finish_loop", {})


async def test_a_prompt_is_repeated_until_the_model_says_that_it_is_done(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(
        answer("Mended one."), answer("Mended another."), answer(FINISH), answer("All are mended.")
    )
    ended = await running.prompt(session, "/loop 9 mend a test")
    assert ended["stopReason"] == "end_turn"
    text = running.text(session)
    positions = [text.index(f"Round {number} of 9") for number in (1, 2, 3)]
    assert positions == sorted(positions)
    assert "Round 4" not in text
    assert len(model_server.requests) == 4
    assert "mend a test" in json.dumps(messages(model_server, 1)[-1])
    before, after = messages(model_server, 2), messages(model_server, 3)
    assert after[: len(before)] == before


async def test_a_loop_ends_after_the_requested_rounds_and_says_so(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(answer("One."), answer("Two."))
    await running.prompt(session, "/loop 2 mend a test")
    assert len(model_server.requests) == 2
    assert "ended after 2 rounds" in running.text(session)


async def test_every_request_begins_with_the_one_before_whether_a_prompt_is_repeated_or_not(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(
        answer("Hello."),
        answer("Mended one."),
        answer(FINISH),
        answer("All are mended."),
        answer(FINISH),
        answer("I see."),
    )
    for words in ("hi", "/loop 5 mend a test", "and now?"):
        await running.prompt(session, words)
    bodies = [request.json for request in model_server.requests]
    assert len(bodies) == 6
    for number, (before, after) in enumerate(pairwise(bodies)):
        more = [] if number else [FINISH.name]  # from the first repetition on
        new = after["tools"][len(before["tools"]) :]
        assert after["tools"][: len(before["tools"])] == before["tools"]
        assert [tool["function"]["name"] for tool in new] == more
        assert after["messages"][: len(before["messages"])] == before["messages"]
    assert "no prompt is being repeated" in str(bodies[-1]["messages"][-1])


@pytest.mark.covers("P7")
async def test_cancelling_ends_all_rounds(opened_v2: OpenV2, model_server: ModelServer) -> None:
    client, session = await opened_v2()
    model_server.add(answer("One."), answer("begun", Stall()))
    message = await client.said(client.post_prompt(session, "/loop 5 mend a test"))
    await client.expect_view(session, lambda view: "begun" in view.text())
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    assert len(model_server.requests) == 2
    assert states(client, session) == ["running", "idle: cancelled"]


async def test_an_incomplete_round_is_the_last(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.otherwise = answer("Half", stop="length")
    ended = await running.prompt(session, "/loop 5 mend a test")
    assert ended["stopReason"] == "max_tokens"
    assert "Round 2" not in running.text(session)


async def test_an_invalid_loop_is_explained_and_not_sent(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    wrong = ("", "3", "0 go", "101 go", "x go", "-1 go", "٣ go", "1" * 5000)
    for number, arguments in enumerate(wrong, start=1):
        await running.prompt(session, f"/loop {arguments}")
        assert running.text(session).count("`/loop N prompt`") == number
    assert model_server.requests == []


async def test_a_loop_does_not_start_during_a_turn(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    stall = Stall()
    model_server.add(answer("begun", stall))
    running.post_prompt(session, "go")
    await running.expect_update(session, "agent_message_chunk")
    second = running.post_prompt(session, "/loop 3 mend a test")
    await running.expect(lambda _: "starts its own turn" in running.text(session))
    running.notify("session/cancel", {"sessionId": session})
    assert (await running.result(second))["stopReason"] == "cancelled"
    assert len(model_server.requests) == 1
