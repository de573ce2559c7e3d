"""A provider that is silent, cut off, or talks nonsense: an error, and a session that goes on."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import Editor, Offer
from tests.support.hostile import KEY, MODEL, OpenSession, assert_goes_on, key_environ, one_line
from tests.support.model_server import (
    Answer,
    Api,
    Call,
    Cut,
    Drop,
    ModelServer,
    Raw,
    Stall,
    Status,
    answer,
)
from tests.support.replays import conversation, without_user
from tests.support.wire_client import AnswerError

HASTY = "[limits]\nmax_retries = 0\nfirst_byte_timeout = 0.4\nstall_timeout = 0.4\n"
NOTICES: frozenset[Offer] = frozenset({"notices"})


async def assert_loads_as_shown(
    agent: StartAgent,
    server: ModelServer,
    session: str,
    cwd: Path,
    shown: Sequence[dict[str, Any]],
) -> None:
    """Another process replays what was shown, and goes on with it."""
    other = await agent(*MODEL, editor=Editor(offers=NOTICES), environ=key_environ(server))
    await other.initialize()
    await other.request("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
    assert without_user(conversation(other.updates(session))) == conversation(shown)
    await assert_goes_on(other, session, server)


@pytest.mark.parametrize("begun", [False, True], ids=["silent", "stalled"])
async def test_a_provider_that_never_answers_times_out_and_the_shown_text_is_saved(
    agent: StartAgent,
    opened: OpenSession,
    model_server: ModelServer,
    workspace_repo: Path,
    begun: bool,
) -> None:
    stall = Stall()
    reply = answer("It begins ", stall) if begun else Status(code=500, hold=stall)
    model_server.add(reply, reply)
    running, session = await opened(
        editor=Editor(offers=NOTICES), config=HASTY.replace("max_retries = 0", "max_retries = 1")
    )
    with pytest.raises(AnswerError) as caught:
        await running.prompt(session, "hello")
    assert one_line(caught.value.message)
    expected = "paused its answer for more than" if begun else "did not begin to answer within"
    setting = "limits.stall_timeout" if begun else "limits.first_byte_timeout"
    assert f"{expected} 0.4 seconds (set by {setting}). Try again." in caught.value.message
    (notice,) = running.updates(session, "notice")
    assert "trying again" in notice["title"]  # the user sees why it takes so long
    assert len(model_server.requests) == 2
    await model_server.requests[-1].closed_early.wait()  # no connection is left open
    await assert_goes_on(running, session, model_server)
    await running.request("session/close", {"sessionId": session})
    await assert_loads_as_shown(
        agent, model_server, session, workspace_repo, running.updates(session)
    )


async def test_a_silent_provider_can_be_cancelled_at_once(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(Status(code=500, hold=Stall()))
    agent, session = await opened()
    prompt = agent.post_prompt(session, "hello")
    await model_server.arrived(1)
    agent.cancel(session)
    assert (await agent.result(prompt))["stopReason"] == "cancelled"
    await model_server.requests[0].closed_early.wait()
    await assert_goes_on(agent, session, model_server)


def event(value: object) -> Raw:
    return Raw(b"data: " + json.dumps(value).encode() + b"\n\n")


def chunk(delta: object, **more: object) -> Raw:
    return event({"choices": [{"index": 0, "delta": delta, **more}]})


def whole(body: bytes, kind: str) -> Status:
    return Status(code=200, body=body, headers={"Content-Type": kind})


GARBAGE: dict[str, Answer | Status | Drop] = {
    "no json": answer(Raw(b"data: {not json\n\n")),
    "half a character": answer("", Raw(b'data: {"choices":[{"delta":{"content": "\xe5'), Cut()),
    "invalid utf-8": answer(Raw(b'data: {"choices": [{"delta": {"content": "\xff\xfe"}}]}\n\n')),
    "null bytes": answer(Raw(b"\0" * 5_000 + b"\n\n")),
    "nothing but comments": answer(Raw(b": ping\n\n" * 100), ended=False),
    "an array": answer(event([1, 2, 3])),
    "a number": answer(event(7)),
    "null": answer(event(None)),
    "choices are text": answer(event({"choices": "none"})),
    "a delta is a list": answer(chunk(["text"])),
    "content is a number": answer(chunk({"content": 7})),
    "calls are an object": answer(chunk({"tool_calls": {"0": {}}})),
    "a call without a name": answer(
        chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": "{}"}}]})
    ),
    "a call with a strange index": answer(
        chunk({"tool_calls": [{"index": "x", "id": 5, "function": {"name": ["read"]}}]})
    ),
    "a call that is cut off": answer(
        chunk({"tool_calls": [{"index": 0, "function": {"name": "read", "arguments": '{"pa'}}]}),
        Cut(),
    ),
    "an unknown reason to stop": answer("ok", stop="bored"),
    "strange usage": answer("ok ", event({"choices": [], "usage": {"prompt_tokens": -5}})),
    "usage without end": answer("ok ", event({"choices": [], "usage": {"prompt_tokens": 1e300}})),
    "nesting": answer(Raw(b"data: " + b"[" * 100_000 + b"\n\n")),
    "a huge event": answer(chunk({"content": "", "padding": "x" * 5_000_000}), "ok"),
    "a line without end": answer(Raw(b"data: " + b"x" * 5_000_000), ended=False),
    "lone surrogates": answer(
        Raw(rb'data: {"choices": [{"index": 0, "delta": {"content": "a\ud800b"}}]}' + b"\n\n"), "ok"
    ),
    "a web page": whole(b"<html><body>Log in to the hotel's network</body></html>", "text/html"),
    "json, not a stream": whole(b'{"choices": []}', "application/json"),
    "an empty body": whole(b"", "text/event-stream"),
    "nothing at all": Drop(),
    "a code of its own": Status(code=799, body=b"\xff\xfe\0"),
    "an error that is a list": Status(code=400, body=b'{"error": [["deep"]]}'),
    "an error that nests": Status(code=400, body=b"[" * 100_000),
    "an error of 5 MB": Status(code=400, message="x" * 5_000_000),
    "an error in lines": Status(code=400, message="one\ntwo\r\nthree\x1b[31m\x00 four"),
}  # fmt: skip


async def test_garbage_from_a_provider_ends_a_turn_at_most_and_nothing_that_was_shown_is_lost(
    agent: StartAgent, opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened(editor=Editor(offers=NOTICES), config=HASTY)
    for what, reply in GARBAGE.items():
        model_server.add(reply)
        model_server.otherwise = answer("I see.")
        answered = await running.answer(running.post_prompt(session, f"now: {what}"))
        if "error" in answered:
            assert answered["error"]["message"].isprintable(), what
            assert len(answered["error"]["message"].splitlines()) == 1, what
            assert len(answered["error"]["message"]) < 600, what
        else:
            assert answered["result"]["stopReason"] == "end_turn", what
    await assert_goes_on(running, session, model_server)
    await running.request("session/close", {"sessionId": session})
    await assert_loads_as_shown(
        agent, model_server, session, workspace_repo, running.updates(session)
    )


async def test_a_provider_that_is_not_there_is_named_with_its_address(
    opened: OpenSession, model_server: ModelServer
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    agent, session = await opened(environ={"OPENAI_BASE_URL": nowhere}, config=HASTY)
    with pytest.raises(AnswerError) as caught:
        await agent.prompt(session, "hello")
    assert nowhere in caught.value.message
    assert "Check the network" in caught.value.message
    with pytest.raises(AnswerError):  # and the session still takes prompts
        await agent.prompt(session, "again")


@pytest.mark.parametrize(
    ("api", "model"), [("openai", "openai/gpt-5"), ("anthropic", "anthropic/claude-sonnet-4-5")]
)
async def test_a_redirect_carries_neither_the_key_nor_the_conversation_to_another_host(
    agent: StartAgent,
    home: Path,
    unharmed: list[AgentProcess],
    model_server: ModelServer,
    workspace_repo: Path,
    api: Api,
    model: str,
) -> None:
    config_file(home, HASTY)
    key = {f"{api.upper()}_API_KEY": KEY}
    running = await agent("--model", model, environ=model_server.environ(api) | key)
    unharmed.append(running)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    async with ModelServer() as other:
        other.otherwise = answer("Thank you for the key.")
        target = f"{other.url.replace('127.0.0.1', 'localhost')}/v1/messages"
        for code in (301, 302, 307, 308):
            model_server.add(Status(code=code, headers={"Location": target}, body=b""))
            with pytest.raises(AnswerError) as caught:
                await running.prompt(session, "the plan is secret")
            assert one_line(caught.value.message)
            assert f"HTTP {code}" in caught.value.message
            assert target in caught.value.message
        assert other.requests == []
    assert KEY in str(model_server.requests[0].headers)  # it is sent where it belongs


async def test_calls_without_end_stop_at_the_limit_of_requests(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer(Call("read", {"path": "README.md"}))
    agent, session = await opened(config="[limits]\nmax_model_requests = 5\nloop_ask_after = 0\n")
    assert (await agent.prompt(session, "loop"))["stopReason"] == "max_turn_requests"
    assert len(model_server.requests) == 5
    await assert_goes_on(agent, session, model_server)


async def test_hundreds_of_calls_in_one_answer_all_end(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(*[Call("read", {"path": "README.md"})] * 200), answer("Done."))
    agent, session = await opened()
    assert (await agent.prompt(session, "many"))["stopReason"] == "end_turn"
    ended = [
        update
        for update in agent.updates(session, "tool_call_update")
        if update.get("status") == "completed"
    ]
    assert len({update["toolCallId"] for update in ended}) == 200
