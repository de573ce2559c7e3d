"""Why a turn stopped, and what the user reads when a provider fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.server.server_session import READ, OpenSession, calls_by_id, messages
from tests.support.agent_process import AgentProcess, config_file
from tests.support.editor import Editor
from tests.support.model_server import (
    Cut,
    Drop,
    ModelServer,
    Raw,
    Reply,
    Request,
    Stall,
    Status,
    answer,
)
from tests.support.wire_client import AnswerError

NO_RETRIES = "[limits]\nmax_retries = 0\n"


async def failure(running: AgentProcess, session: str, text: str = "go") -> AnswerError:
    """The error of a prompt."""
    with pytest.raises(AnswerError) as caught:
        await running.prompt(session, text)
    error = caught.value
    assert error.code == -32603
    assert len(error.message.splitlines()) == 1
    assert "sk-test" not in error.message + json.dumps(error.data)
    return error


FINAL: list[tuple[Status, tuple[str, ...]]] = [
    (Status(code=400, message="bad tool schema"), ("bad tool schema",)),
    (Status(code=401, message="Incorrect key sk-test"), ("API key", "login")),
    (Status(code=403, message="not for you"), ()),
    (Status(code=404, message="no such model"), ("gpt-5",)),
]


@pytest.mark.covers("P8", "T4")
async def test_a_failure_that_a_retry_cannot_fix_is_reported_at_once_with_a_remedy(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    for number, (reply, words) in enumerate(FINAL):
        model_server.add(reply)
        error = await failure(running, session, f"try {number}")
        assert len(model_server.requests) == number + 1
        assert error.data == {"provider": "openai", "status": reply.code}
        for word in ("OpenAI", str(reply.code), *words):
            assert word in error.message
    model_server.add(answer("Better now."))
    assert (await running.prompt(session, "again"))["stopReason"] == "end_turn"
    for number in range(len(FINAL)):  # nothing that was said is lost
        assert f"try {number}" in json.dumps(messages(model_server))


@pytest.mark.covers("P8", "T4")
async def test_a_message_that_the_provider_finds_too_long_fails_at_once_and_is_no_obstacle(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(Status(code=400, message="maximum context length is 10"))
    error = await failure(running, session, "try")
    assert len(model_server.requests) == 1
    assert "too long" in error.message
    model_server.add(answer("Better now."))
    assert (await running.prompt(session, "again"))["stopReason"] == "end_turn"
    assert "again" in json.dumps(messages(model_server))


PASSING: dict[str, tuple[Reply, str]] = {
    "429": (Status(code=429, headers={"Retry-After": "0"}), "429"),
    "500": (Status(code=500, headers={"retry-after-ms": "1"}), "500"),
    "529": (Status(code=529, headers={"Retry-After": "0"}), "529"),
    "a proxy's page": (Status(code=503, body=b"<html>proxy</html>"), "503"),
    "dropped": (Drop(), "No connection"),
    "cut": (answer("Half of ", Cut()), "broke in the middle"),
    "cut in an event": (answer("Half of ", Cut(within=b'data: {"choi')), "broke"),
    "no end": (answer("Half of ", ended=False), "broke"),
}


@pytest.mark.covers("P8")
async def test_a_temporary_failure_is_retried_visibly(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    bodies: dict[str, list[bytes]] = {failure: [] for failure in PASSING}

    def reply(request: Request) -> Reply:
        (failure,) = [w for w in PASSING if f"after {w}." in str(request.json["messages"][1:])]
        bodies[failure].append(request.body)
        return PASSING[failure][0] if len(bodies[failure]) == 1 else answer("Better now.")

    model_server.otherwise = reply
    running, _ = await opened(editor=Editor(offers=frozenset({"notices"})))

    async def goes_well(failure: str) -> None:
        session = await running.new_session(workspace_repo)
        assert (await running.prompt(session, f"after {failure}."))["stopReason"] == "end_turn"
        first, second = bodies[failure]
        assert first == second
        (notice,) = running.updates(session, "notice")
        assert notice["severity"] == "warning"
        assert PASSING[failure][1] in notice["title"]
        assert "trying again" in notice["title"]
        chunks = running.updates(session, "agent_message_chunk")
        assert chunks[-1]["content"]["text"] == "Better now."
        if len(chunks) > 1:  # what the failed attempt had said is another message
            assert chunks[0]["messageId"] != chunks[-1]["messageId"]

    # On a connection that served before, it is asked again at once and without a word.
    await goes_well("dropped")
    async with asyncio.TaskGroup() as all_at_once:  # each waits a second before it tries again
        for failure in PASSING.keys() - {"dropped"}:
            all_at_once.create_task(goes_well(failure))


@pytest.mark.covers("P8", "I6")
async def test_a_retry_is_shown_as_a_thought_where_there_are_no_notices(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(Status(code=429, headers={"Retry-After": "0"}), answer("Better now."))
    running, session = await opened()
    await running.prompt(session, "go")
    (thought,) = running.updates(session, "agent_thought_chunk")
    assert "429" in thought["content"]["text"]
    assert running.updates(session, "notice") == []


@pytest.mark.covers("P8")
async def test_retries_end_and_then_the_failure_is_reported(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, "[limits]\nmax_retries = 2\n")
    model_server.otherwise = Status(code=500, headers={"retry-after-ms": "1"})
    running, session = await opened()
    error = await failure(running, session)
    assert len(model_server.requests) == 3
    assert error.data["status"] == 500
    thoughts = running.updates(session, "agent_thought_chunk")
    assert len(thoughts) == 2
    assert "attempt 2 of 3" in thoughts[0]["content"]["text"]


@pytest.mark.covers("P8")
async def test_text_streamed_before_a_failure_is_saved(
    opened: OpenSession, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, NO_RETRIES)
    running, _ = await opened()
    for ending in (
        Cut(),
        Raw(b"data: {broken\n\n"),
        Raw(b'data: {"error":{"message":"engine fell over"}}\n\n'),
    ):
        stall = Stall()
        model_server.add(answer("Half of ", stall, ending), answer("the rest."))
        session = await running.new_session(workspace_repo)
        prompt = running.post_prompt(session, "go")
        await running.expect_update(session, "agent_message_chunk")
        stall.release()
        with pytest.raises(AnswerError):
            await running.result(prompt)
        assert running.text(session) == "Half of "
        await running.prompt(session, "go on")
        history = messages(model_server)
        assert [message["role"] for message in history] == ["user", "assistant", "user"]
        assert "Half of " in json.dumps(history[1])


@pytest.mark.covers("P8")
async def test_a_provider_that_never_answers_is_a_failure(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, "[limits]\nmax_retries = 0\nfirst_byte_timeout = 0.3\nstall_timeout = 0.3\n")
    model_server.add(Status(code=500, hold=Stall()), answer("Begun ", Stall()))
    running, session = await opened()
    silent = await failure(running, session)
    stalled = await failure(running, session)
    assert "0.3 seconds" in silent.message
    assert "0.3 seconds" in stalled.message
    assert silent.message != stalled.message
    for request in model_server.requests:
        await request.closed_early.wait()


@pytest.mark.covers("P8")
async def test_a_failure_in_the_middle_of_a_turn_keeps_the_calls_that_had_ended(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(READ), Status(code=400, message="no more"), answer("I know it."))
    running, session = await opened()
    await failure(running, session)
    (call,) = calls_by_id(running.updates(session)).values()
    assert call[-1]["status"] == "completed"
    await running.prompt(session, "what did it say?")
    roles = [message["role"] for message in messages(model_server)]
    assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.covers("P8")
async def test_the_limit_of_model_requests_ends_the_turn_and_says_so(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, "[limits]\nmax_model_requests = 3\n")
    model_server.otherwise = answer(READ)
    running, session = await opened()
    assert (await running.prompt(session, "for ever"))["stopReason"] == "max_turn_requests"
    assert len(model_server.requests) == 3
    assert "it reached the limit of 3 model requests" in running.text(session)
    model_server.otherwise = answer("Done.")
    assert (await running.prompt(session, "go on"))["stopReason"] == "end_turn"


@pytest.mark.covers("P8")
async def test_an_answer_that_was_too_long_says_so_and_is_saved(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("As long as it", stop="length")
    running, session = await opened()
    assert (await running.prompt(session, "talk"))["stopReason"] == "max_tokens"
    await running.prompt(session, "go on")
    assert "As long as it" in json.dumps(messages(model_server))


@pytest.mark.covers("P8")
async def test_a_refusal_takes_its_prompt_out_of_what_the_model_is_sent(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    refusal = answer("I would rather not.", stop="refusal")
    model_server.add(answer("Before."), refusal, answer("Gladly."))
    running, session = await opened(api="anthropic")
    await running.prompt(session, "the harmless one")
    assert (await running.prompt(session, "the dangerous one"))["stopReason"] == "refusal"
    assert (await running.prompt(session, "another"))["stopReason"] == "end_turn"
    request_text = json.dumps(messages(model_server))
    assert "the harmless one" in request_text
    assert "the dangerous one" not in request_text
    assert "I would rather not." not in request_text
    # The user still sees all of it in a replay.
    before = len(running.updates(session))
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await running.request("session/load", load)
    assert "the dangerous one" in json.dumps(running.updates(session)[before:])


@pytest.mark.covers("S6", "T4")
async def test_an_error_quotes_a_long_id_or_path_only_in_part(
    opened: OpenSession, workspace_repo: Path
) -> None:
    running, session = await opened()
    long = "x" * 100_000
    folder = {"cwd": str(workspace_repo), "mcpServers": []}
    for method, params in (
        ("session/load", {**folder, "sessionId": long}),
        ("session/new", {**folder, "cwd": f"/{long}"}),
        ("session/set_mode", {"sessionId": session, "modeId": long}),
    ):
        with pytest.raises(AnswerError) as caught:
            await running.request(method, params)
        assert "xxx" in caught.value.message
        assert len(caught.value.message) + len(json.dumps(caught.value.data)) < 10_000
