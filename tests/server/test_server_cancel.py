"""Stopping a turn, at every moment at which a user can."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent.context import CANCELLED_NOTE
from tests.server.server_session import DEMO, EDIT, READ, OpenSession, calls_by_id, messages
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, Pause, Stall, Status, Thought, answer

CANCELLED = "cancelled"


def line(method: str, params: dict[str, Any], request: object = None) -> bytes:
    """A request, or a notification where it has no id."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if request is None else message | {"id": request}).encode() + b"\n"


def prompt_line(session: str, text: str, request: object) -> bytes:
    """A prompt as bytes."""
    blocks = [{"type": "text", "text": text}]
    return line("session/prompt", {"sessionId": session, "prompt": blocks}, request)


def updates_after(running: AgentProcess, request: object) -> list[dict[str, Any]]:
    """The updates that came after the response to a request."""
    at = next(i for i, message in enumerate(running.messages) if message.get("id") == request)
    return [m for m in running.messages[at:] if m.get("method") == "session/update"]


@pytest.mark.covers("P7")
async def test_a_cancel_during_an_answer_closes_the_stream_and_keeps_its_text(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(Thought("Hm.", "seal"), "Half an ", Stall()), answer("Go on."))
    running, session = await opened()
    prompt = running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_message_chunk")
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == CANCELLED
    async with asyncio.timeout(60):
        await model_server.requests[0].closed_early.wait()
    assert (await running.prompt(session, "go on"))["stopReason"] == "end_turn"
    assert running.text(session) == "Half an Go on."
    assert "Half an " in str(messages(model_server)[1])
    assert CANCELLED_NOTE in str(messages(model_server)[2])


@pytest.mark.covers("P7")
async def test_a_cancel_while_the_provider_says_nothing_ends_the_wait(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(Status(code=500, hold=Stall()))
    running, session = await opened()
    prompt = running.post_prompt(session, "talk")
    await model_server.arrived(1)
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == CANCELLED
    async with asyncio.timeout(60):
        await model_server.requests[0].closed_early.wait()


@pytest.mark.covers("P7", "P8")
async def test_a_cancel_while_a_retry_is_waited_for_ends_the_wait(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(Status(code=429, headers={"Retry-After": "60"}))
    running, session = await opened()
    prompt = running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_thought_chunk")
    running.cancel(session)
    assert (await running.result(prompt, timeout=50))["stopReason"] == CANCELLED
    assert len(model_server.requests) == 1


@pytest.mark.covers("P7", "P3")
async def test_a_cancel_ends_a_running_command_and_everything_it_started(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    command = "(sleep 1000; touch too-late) & echo begun; sleep 1000"
    model_server.add(
        answer(Call("shell", {"command": command}), Call("read", {"path": "README.md"})),
        answer("Stopped."),
    )
    running, session = await opened()
    prompt = running.post_prompt(session, "run")
    await running.expect_update(
        session, "tool_call_update", lambda update: "begun" in json.dumps(update.get("content"))
    )
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == CANCELLED
    assert updates_after(running, prompt) == []
    for call in calls_by_id(running.updates(session)).values():
        assert call[-1]["status"] == "failed"
    assert (await running.prompt(session, "what now?"))["stopReason"] == "end_turn"
    # That no process is left is what the end of every test with an agent looks at.


@pytest.mark.covers("P7", "P6")
async def test_a_cancel_withdraws_an_open_question(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(READ), answer(EDIT))
    running, session = await opened(editor=Editor(permission="never"))
    prompt = running.post_prompt(session, "edit")
    question = await running.expect(lambda m: m.get("method") == "session/request_permission")
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == CANCELLED
    withdrawn = await running.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"] == {"requestId": question["id"]}
    call = list(calls_by_id(running.updates(session)).values())[-1]
    assert call[-1]["status"] == "failed"
    assert "Hello" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P7")
async def test_a_cancel_before_its_prompt_is_processed_still_cancels_it(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.otherwise = answer("Too late.")
    running, session = await opened()
    cancel = line("session/cancel", {"sessionId": session})
    await running.send(prompt_line(session, "never mind", "plain") + cancel)
    assert (await running.result("plain"))["stopReason"] == CANCELLED

    # A linked file is read before the turn begins, so the cancel finds no turn to stop.
    running, session = await opened()
    cancel = line("session/cancel", {"sessionId": session})
    link = {
        "type": "resource_link",
        "name": "README.md",
        "uri": (workspace_repo / "README.md").as_uri(),
    }
    linked = line("session/prompt", {"sessionId": session, "prompt": [link]}, "linked")
    await running.send(linked + cancel)
    assert (await running.result("linked"))["stopReason"] == CANCELLED

    # So does one that comes while its prompt waits for the replay before it.
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    behind = prompt_line(session, "nor this", "behind")
    await running.send(line("session/load", load, "load") + behind + cancel)
    assert (await running.result("behind"))["stopReason"] == CANCELLED

    await running.send(prompt_line(session, "but this", "meant"))
    assert (await running.result("meant"))["stopReason"] == "end_turn"
    assert len(model_server.requests) == 1
    assert "but this" in str(messages(model_server))


@pytest.mark.covers("P7")
async def test_a_cancel_when_idle_is_silent_and_does_not_touch_the_next_prompt(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    for name in (session, "no-such-session"):
        running.cancel(name)
    cancel = line("session/cancel", {"sessionId": session})
    await running.send(cancel + prompt_line(session, "hello", "p"))
    assert (await running.result("p"))["stopReason"] == "end_turn"
    for _ in range(3):
        running.cancel(session)
    await running.request("session/list", {})
    answers = [message for message in running.messages if "method" not in message]
    assert len(answers) == 4  # initialize, new, prompt, list
    assert updates_after(running, "p") == []


@pytest.mark.covers("P7")
async def test_many_cancels_make_one_response(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("begun", Stall()))
    running, session = await opened()
    prompt = running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_message_chunk")
    await running.send(line("session/cancel", {"sessionId": session}) * 50)
    assert (await running.result(prompt))["stopReason"] == CANCELLED
    await running.request("session/list", {})
    assert [m.get("id") for m in running.messages].count(prompt) == 1
    assert updates_after(running, prompt) == []


@pytest.mark.covers("T5", "P7")
async def test_cancelling_the_request_of_a_prompt_ends_the_turn_like_a_cancel(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("begun", Stall()), answer("Going on."))
    running, session = await opened()
    prompt = running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_message_chunk")
    running.notify("$/cancel_request", {"requestId": prompt})
    reply = await running.answer(prompt)
    assert reply["result"]["stopReason"] == CANCELLED
    async with asyncio.timeout(60):
        await model_server.requests[0].closed_early.wait()
    assert (await running.prompt(session, "go on"))["stopReason"] == "end_turn"
    assert updates_after(running, prompt)[0]["params"]["update"]["sessionUpdate"] != "tool_call"


@pytest.mark.covers("T5")
async def test_cancelling_an_unknown_session_request_is_silent(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    for wrong in (12345, "nobody", None, {"a": 1}):
        running.notify("$/cancel_request", {"requestId": wrong})
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"
    assert not [message for message in running.messages if "error" in message]


@pytest.mark.covers("P7", "P2")
async def test_a_cancel_in_the_middle_of_a_fast_stream_loses_and_adds_nothing(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    words: list[Any] = []
    for number in range(2000):
        words += [f"{number} ", Pause(0.0005)] if number % 20 == 0 else [f"{number} "]
    model_server.add(answer(*words))
    running, session = await opened()
    prompt = running.post_prompt(session, "count")
    await running.expect(lambda _: len(running.updates(session, "agent_message_chunk")) > 5)
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == CANCELLED
    text = running.text(session)
    full_text = "".join(f"{number} " for number in range(2000))
    assert full_text.startswith(text)
    assert text
    before = len(running.messages)
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await running.request("session/load", load)
    replayed = [
        message["params"]["update"]["content"]["text"]
        for message in running.messages[before:]
        if message.get("method") == "session/update"
        and message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
    ]
    assert "".join(replayed) == text


@pytest.mark.covers("T6", "P7")
async def test_a_cancel_of_one_session_leaves_the_other_alone(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    stalls = [Stall(), Stall()]
    model_server.add(answer("one ", stalls[0], "end"), answer("two ", stalls[1], "end"))
    running, first = await opened()
    second = await running.new_session(workspace_repo)
    request_ids = []
    for session in (first, second):
        request_ids.append(running.post_prompt(session, "talk"))
        await running.expect_update(session, "agent_message_chunk")
    running.cancel(first)
    assert (await running.result(request_ids[0]))["stopReason"] == CANCELLED
    stalls[1].release()
    assert (await running.result(request_ids[1]))["stopReason"] == "end_turn"
    assert running.text(second) == "two end"


@pytest.mark.covers("T5", "S4")
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_session_whose_opening_is_cancelled_is_free_for_others(
    agent: StartAgent, home: Path, workspace_repo: Path, method: str
) -> None:
    first, second_client = await agent(*DEMO), await agent(*DEMO)
    await first.initialize()
    await second_client.initialize()
    session = await second_client.new_session(workspace_repo)
    await second_client.request("session/close", {"sessionId": session})
    params = {"sessionId": session, "cwd": str(workspace_repo / "src"), "mcpServers": []}
    with closing(sqlite3.connect(home / "acp-agent" / "sessions.db")) as locked:
        locked.execute("BEGIN IMMEDIATE")  # so that the other folder cannot be written down
        opening = first.post(method, params)
        assert (await first.request("session/list", {})) is not None
        await first.send(line("$/cancel_request", {"requestId": opening}))
        assert (await first.answer(opening))["error"]["code"] == -32800
        locked.rollback()
    async with asyncio.timeout(60):
        while "error" in await second_client.answer(second_client.post(method, params)):
            await asyncio.sleep(0.01)  # until it is closed again
