"""Prompts that wait for the turn that runs instead of steering it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.server_session import OpenSession, messages
from tests.server.v2_session import OpenV2, user_texts
from tests.support.agent_process import config_file
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.wire_client import AnswerError

QUEUES = 'steering = "queue"\n'


async def test_with_the_queue_setting_prompts_run_in_their_order(
    opened: OpenSession, model_server: ModelServer, home: Path
) -> None:
    config_file(home, QUEUES)
    stall = Stall()
    model_server.add(answer("One ", stall, "done."), answer("Two."), answer("Three."))
    running, session = await opened()
    request_ids = [running.post_prompt(session, "the first")]
    await running.expect_update(session, "agent_message_chunk")
    request_ids += [
        running.post_prompt(session, "the second"),
        running.post_prompt(session, "a third"),
    ]
    await running.request("session/list", {})
    await running.request("session/list", {})
    await_status = running.post_prompt(session, "/status")  # is answered at once all the same
    await running.expect(lambda _: "Queued prompts: 2" in running.text(session))
    stall.release()
    for request in (*request_ids, await_status):
        assert (await running.result(request))["stopReason"] == "end_turn"
    assert running.text(session).endswith("Two.Three.")
    texts = [message["content"] for message in messages(model_server) if message["role"] == "user"]
    assert [
        next(word for word in ("the first", "the second", "a third") if word in json.dumps(message))
        for message in texts
    ] == ["the first", "the second", "a third"]


@pytest.mark.covers("P1")
async def test_an_empty_prompt_is_refused_at_once_and_waits_for_nothing(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, QUEUES)
    running, session = await opened()
    model_server.add(answer("begun", Stall()))
    running.post_prompt(session, "one")
    await running.expect_update(session, "agent_message_chunk")
    with pytest.raises(AnswerError, match="it is empty"):
        await running.prompt(session, " \n")
    running.cancel(session)


async def test_a_prompt_may_steer_all_the_same(
    opened: OpenSession, model_server: ModelServer, home: Path
) -> None:
    config_file(home, QUEUES)
    stall = Stall()
    model_server.add(answer("One ", stall, "done."), answer("Steered."))
    running, session = await opened()
    first = running.post_prompt(session, "the first")
    await running.expect_update(session, "agent_message_chunk")
    meta = {"acp-agent": {"whileRunning": "steer"}}
    words = {"sessionId": session, "prompt": [{"type": "text", "text": "now"}], "_meta": meta}
    second = running.post("session/prompt", words)
    await running.request("session/list", {})
    stall.release()
    await running.result(first)
    await running.result(second)
    assert running.text(session) == "One done.Steered."


@pytest.mark.covers("P7", "P9")
async def test_version_2_withdraws_waiting_prompts_when_the_session_is_cancelled(
    opened_v2: OpenV2, model_server: ModelServer, home: Path
) -> None:
    config_file(home, QUEUES)
    model_server.add(answer("begun", Stall()))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "the first"))
    await client.expect_update(session, "agent_message_chunk")
    waiting = [client.post_prompt(session, "the second"), client.post_prompt(session, "a third")]
    await client.wire.request("session/list", {})
    client.cancel(session)
    for request in waiting:
        with pytest.raises(AnswerError) as caught:
            await client.said(request)
        assert caught.value.code == -32800
    assert (await client.idle(session, first))["stopReason"] == "cancelled"
    assert user_texts(client, session) == [first]
    model_server.add(answer("Hello."))
    assert (await client.prompt(session, "hi"))["stopReason"] == "end_turn"


@pytest.mark.covers("P9")
async def test_version_2_takes_a_withdrawn_prompt_out_of_the_queue_and_runs_the_next(
    opened_v2: OpenV2, model_server: ModelServer, home: Path
) -> None:
    config_file(home, QUEUES)
    stall = Stall()
    model_server.add(answer("begun", stall), answer("Third."))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "the first"))
    await client.expect_update(session, "agent_message_chunk")
    second = client.post_prompt(session, "the second")
    third = client.post_prompt(session, "a third")
    await client.wire.request("session/list", {})
    client.wire.notify("$/cancel_request", {"requestId": second})
    with pytest.raises(AnswerError) as caught:
        await client.said(second)
    assert caught.value.code == -32800
    stall.release()
    message = await client.said(third)
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    assert user_texts(client, session) == [first, message]
