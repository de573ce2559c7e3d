"""A client that lost its connection comes back, and finds the work where it is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.remote.conftest import StartListening
from tests.server.remote.counted_steps import Counted, until_still
from tests.server.remote.http_messages import request
from tests.server.remote.remote_agent import DEMO, RemoteAgent
from tests.server.remote.remote_clients import (
    EVERY_WAY,
    HttpClient,
    Open,
    RemoteClient,
    WebSocketClient,
    http_client,
    websocket_client,
)
from tests.support.agent_process import config_file
from tests.support.editor import Editor, Offer
from tests.support.model_server import Answer, Call, ModelServer, Stall, Text, Thought, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.waiting import until

MODEL = ("--model", "openai/gpt-5")


async def abort(client: RemoteClient) -> None:
    """Lose the connection without any goodbye."""
    if isinstance(client, WebSocketClient):
        client.abort()
        return
    assert isinstance(client, HttpClient)
    for session in list(client.streams):
        await client.close_stream(session)
    client.connection = ""  # which it will not end


async def load(client: RemoteClient, session: str, project: Path) -> None:
    await client.initialize()
    params = {"sessionId": session, "cwd": str(project), "mcpServers": []}
    await client.request("session/load", params, checked=True)


@EVERY_WAY
async def test_a_turn_continues_without_its_client_which_sees_all_of_it_later(
    listening: StartListening, model_server: ModelServer, project: Path, open_client: Open
) -> None:
    first, second = Stall(), Stall()
    model_server.add(answer("One, ", first, "two, ", second, "three."))
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    async with open_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        client.post_prompt(session, "Count.")
        await client.expect_update(session, "agent_message_chunk")
        await abort(client)
    first.release()
    async with open_client(agent, joins=True) as client:
        await load(client, session, project)
        await client.expect_update(
            session, "agent_message_chunk", lambda u: "two" in message_text(u)
        )
        second.release()
        await client.expect_update(
            session, "agent_message_chunk", lambda u: "three" in message_text(u)
        )
        assert client.text(session) == "One, two, three."
        assert len(client.updates(session, "user_message_chunk")) == 1


async def test_a_turn_continues_when_the_lost_connection_of_its_client_has_ended(
    listening: StartListening, model_server: ModelServer, project: Path, home: Path
) -> None:
    stall = Stall()
    model_server.add(answer("One, ", stall, "two."))
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    async with websocket_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        client.post_prompt(session, "Count.")
        await client.expect_update(session, "agent_message_chunk")
        client.abort()
    log = home / "acp-agent" / "logs" / "agent.log"
    await until(lambda: "a client disconnected" in log.read_text())
    stall.release()
    async with websocket_client(agent, joins=True) as client:
        await load(client, session, project)
        await client.expect_update(
            session, "agent_message_chunk", lambda u: "two" in message_text(u)
        )


def message_text(update: dict[str, Any]) -> str:
    return str(update["content"]["text"])


@EVERY_WAY
async def test_an_open_question_is_asked_again_when_a_client_returns(
    listening: StartListening, project: Path, open_client: Open
) -> None:
    agent = listening(*DEMO)
    async with open_client(agent, editor=Editor(permission="never")) as client:
        await client.initialize()
        session = await client.new_session(project)
        client.post_prompt(session, "$ touch made.txt")
        await client.expect(lambda m: m.get("method") == "session/request_permission")
        await abort(client)
    async with open_client(agent, editor=Editor(permission="allow_once"), joins=True) as client:
        await load(client, session, project)
        await client.expect_update(
            session, "tool_call_update", lambda u: u.get("status") == "completed"
        )
    assert (project / "made.txt").exists()


@pytest.mark.parametrize("version", [1, 2])
async def test_a_question_is_asked_again_behind_the_call_that_it_is_about(
    listening: StartListening, project: Path, version: int
) -> None:
    """A client that is told of the call after its question would take the question away again."""
    agent = listening(*DEMO)
    async with websocket_client(agent, editor=Editor(permission="never")) as client:
        await client.initialize()
        session = await client.new_session(project)
        client.post_prompt(session, "$ touch made.txt")
        await client.expect(lambda m: m.get("method") == "session/request_permission")
        client.abort()
    editor = Editor(permission="never") if version == 1 else EditorV2(permission="never")
    async with websocket_client(agent, editor=editor, joins=True) as client:
        if version == 1:
            await load(client, session, project)
        else:
            await V2Client(client).initialize()
            params = {"sessionId": session, "cwd": str(project), "replayFrom": {"type": "start"}}
            await client.request("session/resume", params, checked=True)
        question = await client.expect(lambda m: m.get("method") == "session/request_permission")
        before = client.messages[: client.messages.index(question)]
        updates = [
            message["params"]["update"]
            for message in before
            if message.get("method") == "session/update"
        ]
        subject = question["params"].get("toolCall") or question["params"]["subject"]
        assert subject["toolCallId"] in {update.get("toolCallId") for update in updates}


async def test_a_session_goes_from_a_websocket_to_http_and_back(
    listening: StartListening, model_server: ModelServer, project: Path
) -> None:
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    model_server.add(answer("First."), answer("Second."), answer("Third."))
    async with websocket_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        await client.prompt(session, "One.")
        async with http_client(agent) as second:
            await load(second, session, project)
            await second.prompt(session, "Two.")
            assert second.text(session) == "First.Second."
        params = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        client.messages.clear()
        await client.request("session/load", params, checked=True)
        await client.prompt(session, "Three.")
        assert client.text(session) == "First.Second.Third."


async def test_a_reopened_stream_sends_the_waiting_messages(
    listening: StartListening, model_server: ModelServer, project: Path
) -> None:
    stall = Stall()
    model_server.add(answer("One, ", stall, "two."))
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    async with http_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        prompt = client.post_prompt(session, "Count.")
        await client.expect_update(session, "agent_message_chunk")
        await client.close_stream(session)
        stall.release()
        await model_server.requests[0].answered.wait()
        await client.open(session)
        assert (await client.result(prompt))["stopReason"] == "end_turn"
        assert client.text(session) == "One, two."


@pytest.mark.covers("T9")
async def test_a_reopened_stream_continues_a_turn_that_waited_for_the_old_reader(
    listening: StartListening, model_server: ModelServer, project: Path
) -> None:
    steps = Counted([*(Text("word " * 400) for _ in range(6000)), Text("The end.")])
    model_server.add(Answer(steps=steps))
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    async with http_client(agent, joins=True) as client:
        await client.initialize()
        session = await client.new_session(project)
        await client.open(session)
        client.may_receive.clear()
        prompt = client.post_prompt(session, "Talk.")
        await until_still(steps)  # the buffers of the system are full
        unread = client.streams.pop(session)
        client.may_receive = asyncio.Event()
        client.may_receive.set()
        await client.open(session)
        assert (await client.result(prompt))["stopReason"] == "end_turn"
        assert client.text(session).endswith("The end.")
        unread.cancel()
        await asyncio.gather(unread, return_exceptions=True)


async def test_a_question_asked_while_no_stream_is_open_is_not_lost(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO)
    async with http_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        await client.open(session)
        await client.close_stream(session)
        prompt = json.loads(request("session/prompt", {"sessionId": session}, 50))
        prompt["params"]["prompt"] = [{"type": "text", "text": "$ touch made.txt"}]
        line = json.dumps(prompt).encode()
        client.oracle.sent(line)
        assert (await client.post_line(line, session)).status_code == 202
        await client.open(session)
        assert (await client.result(50))["stopReason"] == "end_turn"
    assert (project / "made.txt").exists()


async def test_a_client_that_missed_too_much_must_load_and_then_has_everything(
    listening: StartListening, model_server: ModelServer, project: Path
) -> None:
    stall = Stall()
    flood = [f"{number:05d} " for number in range(6_000)]
    steps_in_messages = [
        step for text in flood for step in (Thought("Hm. "), text)
    ]  # a message for each piece
    model_server.add(answer("Begun. ", stall, *steps_in_messages), answer("After."))
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    async with http_client(agent, joins=True) as client:
        await client.initialize()
        session = await client.new_session(project)
        prompt = client.post_prompt(session, "Flood.")
        await client.expect_update(session, "agent_message_chunk")
        await client.close_stream(session)
        stall.release()
        await model_server.requests[0].answered.wait()
        await asyncio.wait_for(conflict(client, session), 60)
        await client.open(session)
        assert (await client.result(prompt))["stopReason"] == "end_turn"
        full_text = "Begun. " + "".join(flood)
        assert len(client.text(session)) < len(full_text) / 2
        client.messages.clear()
        params = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        await client.request("session/load", params, checked=True)
        await client.expect(lambda message: flood[-1] in json.dumps(message))
        assert client.text(session) == full_text
        await client.prompt(session, "Go on.")
        assert client.text(session) == full_text + "After."
        assert 409 not in client.statuses


async def conflict(client: HttpClient, session: str) -> None:
    """Wait until a message of the session is refused with 409."""
    harmless = request("session/set_mode", {"sessionId": session, "modeId": "ask"}, 90)
    while True:
        client.oracle.sent(harmless)
        response = await client.post_line(harmless, session)
        if response.status_code == 409:
            assert "load it again" in response.json()["error"]
            return
        assert response.status_code == 202
        await asyncio.sleep(0.02)


async def test_a_connection_without_stream_and_requests_is_ended_in_time(
    listening: StartListening, home: Path, project: Path
) -> None:
    agent = listening(*DEMO, "--idle-timeout", "1")
    async with http_client(agent) as stays, http_client(agent) as client:
        await stays.initialize()  # and has a stream open from now on
        await client.initialize()
        session = await client.new_session(project)
        for stream in list(client.streams):
            await client.close_stream(stream)
        log = home / "acp-agent" / "logs" / "agent.log"
        await until(lambda: "closed a connection that had no open stream" in log.read_text())
        listing = request("session/list", {}, 90)
        assert (await client.post_line(listing, None)).status_code == 404
        assert await stays.request("session/list", {}) is not None
    async with http_client(agent) as client:
        await load(client, session, project)


async def test_two_clients_do_not_hear_each_other(remote: RemoteAgent, project: Path) -> None:
    async with websocket_client(remote) as one, http_client(remote) as other:
        await one.initialize()
        await other.initialize()
        first, second = await one.new_session(project), await other.new_session(project)
        await asyncio.gather(one.prompt(first, "hi"), other.prompt(second, "hello"))
        assert {m["params"]["sessionId"] for m in one.messages if "params" in m} == {first}
        assert {m["params"]["sessionId"] for m in other.messages if "params" in m} == {second}


AGENT = "---\nname: explore\ndescription: Finds its way.\n---\nYou look around.\n"
TASK = Call("task", {"agent": "explore", "title": "look", "task": "Where is it?"})


@EVERY_WAY
async def test_a_childs_question_is_asked_again_of_who_comes_back_where_the_parents_are(
    listening: StartListening,
    model_server: ModelServer,
    project: Path,
    open_client: Open,
    home: Path,
) -> None:
    config_file(home, f'trusted_folders = ["{project}"]\n')
    agents = project / ".agents" / "agents"
    agents.mkdir(parents=True)
    (agents / "explore.md").write_text(AGENT)
    touch = Call("shell", {"command": "touch made.txt"})
    model_server.add(answer(TASK), answer(touch), answer("There."), answer("It is there."))
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    offers: frozenset[Offer] = frozenset(("subagents",))
    async with open_client(agent, editor=Editor(offers=offers, permission="never")) as client:
        await client.initialize()
        session = await client.new_session(project)
        client.post_prompt(session, "Where?")
        first = await client.expect(lambda m: m.get("method") == "session/request_permission")
        await abort(client)
    editor = Editor(offers=offers, permission="allow_once")
    async with open_client(agent, editor=editor, joins=True) as client:
        await load(client, session, project)
        await client.expect_update(
            session, "agent_message_chunk", lambda u: "there" in message_text(u)
        )
        (question,) = editor.asked
        assert question["sessionId"] == first["params"]["sessionId"] != session
        assert client.text(question["sessionId"]) == "There."
    assert (project / "made.txt").exists()
