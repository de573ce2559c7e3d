"""Stopping the work of a session of version 2, at every moment at which a client can.

Source: Agent Client Protocol v2, Prompt Lifecycle, Cancellation; the schema's `session/cancel`.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from acp_agent.agent.context import CANCELLED_NOTE
from tests.server.server_session import EDIT, READ, messages
from tests.server.v2_session import OpenV2, connect, prompt_params, states, user_texts
from tests.support.agent_process import StartAgent
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, Stall, Status, Thought, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import ALL_OF_V2
from tests.support.wire_client import AnswerError

CANCELLED = -32800
WRITE = Call("write", {"path": "new.txt", "content": "x"})
SLEEP = Call("shell", {"command": "echo begun; sleep 300"})


def lines(*messages: Json) -> bytes:
    """Messages that arrive in one piece."""
    return b"".join(
        json.dumps({"jsonrpc": "2.0"} | message, separators=(",", ":")).encode() + b"\n"
        for message in messages
    )


def prompt_line(session: str, text: str, request: str) -> Json:
    return {"id": request, "method": "session/prompt", "params": prompt_params(session, text)}


def cancel_line(session: str) -> Json:
    return {"method": "session/cancel", "params": {"sessionId": session}}


def withdraw_line(request: str | int) -> Json:
    return {"method": "$/cancel_request", "params": {"requestId": request}}


async def is_idle_and_well(client: V2Client, session: str, server: ModelServer) -> None:
    """The session takes a next prompt."""
    server.add(answer("Well."))
    assert (await client.prompt(session, "and now?"))["stopReason"] == "end_turn"


@pytest.mark.covers("P7")
async def test_a_cancel_in_mid_answer_closes_the_stream_and_ends_in_idle_cancelled(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(Thought("Hm.", "seal"), "Half an ", Stall()))
    client, session = await opened_v2(api="anthropic")
    message = await client.said(client.post_prompt(session, "talk"))
    await client.expect_view(session, lambda view: view.text() == "Half an ")
    client.cancel(session)
    ended = await client.idle(session, message)
    assert ended["stopReason"] == "cancelled"
    assert "error" not in ended
    async with asyncio.timeout(60):
        await model_server.requests[0].closed_early.wait()
    await is_idle_and_well(client, session, model_server)
    assert states(client, session)[:2] == ["running", "idle: cancelled"]
    assert "Half an " in str(messages(model_server)[1])
    assert CANCELLED_NOTE in str(messages(model_server)[2])


@pytest.mark.covers("P7")
async def test_a_cancel_while_the_provider_says_nothing_ends_the_wait(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(Status(code=500, hold=Stall()))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "talk"))
    await model_server.arrived(1)
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    async with asyncio.timeout(60):
        await model_server.requests[0].closed_early.wait()


@pytest.mark.covers("P7")
async def test_a_cancel_while_a_retry_is_waited_for_ends_the_wait(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(Status(code=429, headers={"Retry-After": "60"}))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "talk"))
    await client.expect_update(session, "notice")
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"


@pytest.mark.covers("P7", "P3", "P5")
async def test_a_cancel_ends_a_command_and_its_terminal_before_idle(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    waiting = Call("write", {"path": "new.py", "content": "x = 1\n"})
    model_server.add(answer(SLEEP, waiting))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "Go"))
    await client.expect_update(session, "terminal_output_chunk")
    client.cancel(session)
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    view = client.view(session)
    assert [call["status"] for call in view.calls.values()] == ["cancelled", "cancelled"]
    assert all(call["capabilities"] is None for call in view.calls.values())
    (terminal,) = view.terminals.values()
    assert terminal.exit_status is not None
    assert terminal.capabilities is None
    assert states(client, session) == ["running", "idle: cancelled"]
    await is_idle_and_well(client, session, model_server)


@pytest.mark.covers("P7", "P6")
async def test_a_cancel_while_permission_is_asked_withdraws_the_question(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(READ), answer(EDIT))
    client, session = await opened_v2(permission="never")
    message = await client.said(client.post_prompt(session, "Go"))
    question = await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
    await client.expect_view(session, lambda view: view.state == "requires_action")
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    withdrawn = await client.wire.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == question["id"]
    assert states(client, session) == ["running", "requires_action", "idle: cancelled"]
    assert [call["status"] for call in client.view(session).calls.values()][-1] == "cancelled"
    # An answer that comes too late changes nothing.
    option = question["params"]["options"][0]["optionId"]
    outcome = {"outcome": {"outcome": "selected", "optionId": option}}
    await client.wire.send({"jsonrpc": "2.0", "id": question["id"], "result": outcome})
    await is_idle_and_well(client, session, model_server)
    assert "Hello" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P7", "P12")
async def test_a_cancel_while_a_form_is_open_withdraws_it(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    async def never(**_: Json) -> object:
        await asyncio.Event().wait()
        return None

    model_server.add(answer(Call("ask_user", {"question": "Which colour?"})))
    client, session = await opened_v2(offers=ALL_OF_V2)
    client.wire.editor._methods["elicitation/create"] = never
    message = await client.said(client.post_prompt(session, "Go"))
    question = await client.wire.expect(lambda m: m.get("method") == "elicitation/create")
    await client.expect_view(session, lambda view: view.state == "requires_action")
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    withdrawn = await client.wire.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == question["id"]
    assert states(client, session) == ["running", "requires_action", "idle: cancelled"]


@pytest.mark.covers("P7")
async def test_a_client_that_dismisses_the_question_with_the_cancel_sees_one_idle(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(WRITE), answer("Never asked for."))
    client, session = await opened_v2(permission="never")
    message = await client.said(client.post_prompt(session, "Go"))
    question = await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
    dismissed = {"id": question["id"], "result": {"outcome": {"outcome": "cancelled"}}}
    await client.wire.send(lines(cancel_line(session), dismissed))
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    assert states(client, session) == ["running", "requires_action", "idle: cancelled"]
    assert len(model_server.requests) == 1


@pytest.mark.covers("P7", "T2")
async def test_a_cancel_when_idle_and_one_of_an_unknown_session_are_silent(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    await client.wire.request("session/list", {})
    before = len(client.wire.messages)
    client.cancel(session)
    client.cancel("sess_nobody_made")
    client.cancel(session)
    await client.wire.request("session/list", {})
    assert len(client.wire.messages) == before + 1
    await is_idle_and_well(client, session, model_server)


@pytest.mark.covers("P7")
async def test_a_cancel_right_behind_a_prompt_ends_its_work_before_the_model_is_asked(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    await client.wire.send(lines(prompt_line(session, "one", "first"), cancel_line(session)))
    message = (await client.wire.result("first"))["messageId"]
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    assert model_server.requests == []
    assert states(client, session) == ["running", "idle: cancelled"]
    await is_idle_and_well(client, session, model_server)
    assert "one" in json.dumps(messages(model_server))


@pytest.mark.covers("P7", "T5")
@pytest.mark.parametrize("by", ["session/cancel", "$/cancel_request"])
async def test_a_prompt_cancelled_before_its_turn_is_never_recorded(
    opened_v2: OpenV2, model_server: ModelServer, by: str
) -> None:
    model_server.add(answer("Begun", Stall()))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "one"))
    await client.expect_view(session, lambda view: view.text() == "Begun")
    # The second waits for the end of the first's work.
    second = prompt_line(session, "two", "second")
    cancel = cancel_line(session) if by == "session/cancel" else withdraw_line("second")
    await client.wire.send(lines(cancel_line(session), second, cancel))
    with pytest.raises(AnswerError) as caught:
        await client.wire.result("second")
    assert caught.value.code == CANCELLED
    assert (await client.idle(session, first))["stopReason"] == "cancelled"
    await is_idle_and_well(client, session, model_server)
    assert len(user_texts(client, session)) == 2
    assert states(client, session) == ["running", "idle: cancelled", "running", "idle: end_turn"]
    assert "two" not in json.dumps(messages(model_server))


@pytest.mark.covers("P7", "T6")
async def test_a_prompt_that_waits_for_the_session_to_be_resumed_is_cancelled_there(
    opened_v2: OpenV2, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("One."))
    client, session = await opened_v2()
    await client.prompt(session, "one")
    await client.wire.stop()
    second_client = await connect(agent, model_server)
    resume = {"sessionId": session, "cwd": str(workspace_repo), "replayFrom": {"type": "start"}}
    await second_client.wire.send(
        lines(
            {"id": "resume", "method": "session/resume", "params": resume},
            prompt_line(session, "two", "second"),
            cancel_line(session),
        )
    )
    assert "configOptions" in await second_client.wire.result("resume")
    with pytest.raises(AnswerError) as caught:
        await second_client.wire.result("second")
    assert caught.value.code == CANCELLED
    assert states(second_client, session) == ["idle"]
    await is_idle_and_well(second_client, session, model_server)


@pytest.mark.covers("P7")
async def test_a_prompt_behind_the_cancel_is_not_meant_by_it(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer("Begun", Stall()), answer("New."))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "one"))
    await client.expect_view(session, lambda view: view.text() == "Begun")
    await client.wire.send(lines(cancel_line(session), prompt_line(session, "two", "second")))
    second = (await client.wire.result("second"))["messageId"]
    assert (await client.idle(session, second))["stopReason"] == "end_turn"
    assert (await client.idle(session, first))["stopReason"] == "cancelled"
    assert states(client, session) == ["running", "idle: cancelled", "running", "idle: end_turn"]


@pytest.mark.covers("P7", "P9")
async def test_a_cancel_ends_the_work_and_the_prompt_that_was_to_join_it(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer("Begun", Stall()))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "one"))
    await client.expect_view(session, lambda view: view.text() == "Begun")
    await client.wire.send(lines(prompt_line(session, "two", "second"), cancel_line(session)))
    assert (await client.idle(session, first))["stopReason"] == "cancelled"
    response = await client.wire.answer("second")
    if "result" in response:  # it was in time
        assert user_texts(client, session) == [first, response["result"]["messageId"]]
    else:
        assert response["error"]["code"] == CANCELLED
        assert user_texts(client, session) == [first]
    assert states(client, session) == ["running", "idle: cancelled"]
    await is_idle_and_well(client, session, model_server)


@pytest.mark.covers("T5", "P9")
async def test_cancelling_a_request_that_steers_never_stops_the_work_it_would_steer(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Begun", stall, " and done."), answer("Two, too."))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "one"))
    await client.expect_view(session, lambda view: view.text() == "Begun")
    await client.wire.send(lines(prompt_line(session, "two", "second"), withdraw_line("second")))
    response = await client.wire.answer("second")
    stall.release()
    assert (await client.idle(session, first))["stopReason"] == "end_turn"
    if "result" in response:  # the words were in the conversation already
        assert len(user_texts(client, session)) == 2
        assert client.view(session).text() == "Begun and done.Two, too."
    else:
        assert response["error"]["code"] == CANCELLED
        assert user_texts(client, session) == [first]


@pytest.mark.covers("T5")
async def test_cancelling_a_request_that_was_answered_is_nothing_to_the_work(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Begun", stall, " and done."))
    client, session = await opened_v2()
    request = client.post_prompt(session, "one")
    message = await client.said(request)
    await client.expect_view(session, lambda view: view.text() == "Begun")
    await client.wire.send(lines(withdraw_line(request), withdraw_line("nobody asked")))
    await client.wire.request("session/list", {})
    stall.release()
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    assert client.view(session).text() == "Begun and done."


@pytest.mark.covers("P7")
async def test_a_cancel_of_one_session_leaves_the_other_alone(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    stall = Stall()
    model_server.add(answer("One", Stall()), answer("Two", stall, " done."))
    client, one = await opened_v2()
    two = await client.new_session(workspace_repo)
    first = await client.said(client.post_prompt(one, "a"))
    await client.expect_view(one, lambda view: view.text() == "One")
    second = await client.said(client.post_prompt(two, "b"))
    await client.expect_view(two, lambda view: view.text() == "Two")
    client.cancel(one)
    assert (await client.idle(one, first))["stopReason"] == "cancelled"
    stall.release()
    assert (await client.idle(two, second))["stopReason"] == "end_turn"
