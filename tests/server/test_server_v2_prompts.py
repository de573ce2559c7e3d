"""What becomes of a prompt of version 2: in the conversation or refused, and how its work ends.

Source: Agent Client Protocol v2, Prompt Lifecycle; the schema's `session/prompt`, PromptResponse.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import messages
from tests.server.v2_session import OpenV2, connect, prompt_params, states, user_texts
from tests.support.agent_process import StartAgent, config_file
from tests.support.framing import Json
from tests.support.model_server import Cut, ModelServer, Stall, Status, answer
from tests.support.v2_client import V2Client
from tests.support.wire_client import AnswerError

# Providers that fail are not tried again, so that no test waits for the next try.
NO_RETRIES = "[limits]\nmax_retries = 0\n"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


@pytest.mark.covers("P1", "S4")
async def test_a_prompt_is_answered_with_the_id_of_its_message_which_is_shown_once_and_stays(
    opened_v2: OpenV2, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("One."), answer("Two."))
    client, session = await opened_v2()
    texts = []
    for words in ("first words", "second words"):
        message = await client.said(client.post_prompt(session, words))
        texts.append(message)
        assert (await client.idle(session, message))["stopReason"] == "end_turn"
    assert user_texts(client, session) == texts
    assert len(set(texts)) == 2
    assert client.view(session).messages[texts[1]].text == "second words"
    assert states(client, session) == ["running", "idle: end_turn"] * 2
    await client.wire.stop()

    second_client = await connect(agent, model_server)
    view = await second_client.resume(session, workspace_repo, replay=True)
    assert user_texts(second_client, session) == texts
    assert [one.text for one in view.messages.values()] == [
        "first words", "One.", "second words", "Two.",
    ]  # fmt: skip


@pytest.mark.covers("P1")
async def test_a_prompt_is_answered_before_the_work_is_done(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and half"))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "Go"))
    view = await client.expect_view(session, lambda view: view.text() == "Half")
    assert view.state == "running"
    stall.release()
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    assert client.view(session).text() == "Half and half"


@pytest.mark.covers("P2", "P10")
async def test_running_is_sent_before_the_answer_and_idle_after_it(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer("a", "b"))
    client, session = await opened_v2()
    ended = await client.prompt(session, "Go")
    assert ended["usage"] == {"totalTokens": 15, "inputTokens": 10, "outputTokens": 5}
    kinds = [update["sessionUpdate"] for update in client.wire.updates(session)]
    kinds = [kind for kind in kinds if kind != "available_commands_update"]
    assert set(kinds[:2]) == {"user_message", "state_update"}
    assert kinds[-1] == "state_update"
    assert kinds.index("agent_message_chunk") > kinds.index("state_update")
    assert "usage_update" in kinds


async def refused(client: V2Client, session: str, blocks: list[Any]) -> AnswerError:
    """Why a prompt is refused."""
    with pytest.raises(AnswerError) as caught:
        await client.wire.request("session/prompt", {"sessionId": session, "prompt": blocks})
    return caught.value


@pytest.mark.covers("P1")
async def test_unsupported_content_is_refused_and_nothing_is_recorded(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer("Yes."))
    client, session = await opened_v2()
    unsupported: list[tuple[list[Any], str]] = [
        ([], "prompt: expected array of length >= 1"),
        ([{"type": "text", "text": " \n"}], "empty"),
        ([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}], "audio"),
        ([{"type": "text", "text": "x"}, {"type": "hologram", "depth": 3}], "hologram"),
        ([{"type": "_ours.sketch", "lines": []}], "_ours.sketch"),
        ([{"type": "text"}], "prompt[0].text"),
        ([{"text": "no type"}], "prompt[0]"),
        (["words"], "prompt[0]"),
    ]
    for blocks, expected in unsupported:
        error = await refused(client, session, blocks)
        assert error.code == -32602
        assert expected in error.message
    assert user_texts(client, session) == []
    assert states(client, session) == []
    assert (await client.prompt(session, "words"))["stopReason"] == "end_turn"
    assert len(messages(model_server)) == 1


@pytest.mark.covers("P1")
async def test_advertised_content_is_accepted_and_shown_unchanged(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("I see."))
    client, session = await opened_v2()
    link = (workspace_repo / "README.md").as_uri()
    resource = {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "in a"}
    blocks: list[Json] = [
        {"type": "text", "text": "look", "annotations": {"priority": 1.0}},
        {"type": "resource_link", "name": "README.md", "uri": link},
        {"type": "resource", "resource": resource, "_meta": {"from": "here"}},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
    ]
    assert (await client.prompt(session, *blocks))["stopReason"] == "end_turn"
    (message,) = user_texts(client, session)
    assert client.view(session).messages[message].content == blocks
    request_text = str(messages(model_server))
    assert "in a" in request_text
    assert "A repository for tests." in request_text
    assert "image/png" in request_text


@pytest.mark.covers("S6")
async def test_a_prompt_to_an_unknown_session_is_refused(opened_v2: OpenV2) -> None:
    client, _ = await opened_v2()
    for session in ("sess_nobody_made", ""):
        with pytest.raises(AnswerError) as caught:
            await client.wire.request("session/prompt", prompt_params(session, "hello"))
        assert caught.value.code == -32002
        assert caught.value.data == {"sessionId": session}
        assert "not found" in caught.value.message


@pytest.mark.covers("I5")
async def test_a_prompt_after_a_logout_is_refused_and_not_recorded(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    await client.wire.request("auth/logout", {}, checked=True)
    with pytest.raises(AnswerError) as caught:
        await client.said(client.post_prompt(session, "hello"))
    assert caught.value.code == -32000
    assert caught.value.data["authMethods"]
    assert client.view(session).messages == {}
    assert states(client, session) == []
    await client.wire.request("auth/login", {"methodId": "configured"}, checked=True)
    model_server.add(answer("Hello."))
    assert (await client.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("P8")
async def test_a_failure_of_the_provider_ends_the_work_with_an_error_that_a_person_understands(
    opened_v2: OpenV2, model_server: ModelServer, home: Path, workspace_repo: Path
) -> None:
    config_file(home, NO_RETRIES)
    client, _ = await opened_v2()
    for status, words in (
        (Status(code=400, message="the request makes no sense"), ("400", "makes no sense")),
        (Status(code=401, message="bad key"), ("401", "key")),
        (Status(code=403, message="not yours"), ("403",)),
        (Status(code=404, message="no such model"), ("404",)),
        (Status(code=429, message="slow down"), ("429",)),
        (Status(code=503, message="overloaded"), ("503",)),
    ):
        model_server.otherwise = status
        session = await client.new_session(workspace_repo)
        message = await client.said(client.post_prompt(session, "Go"))
        ended = await client.idle(session, message)
        assert ended["stopReason"] == "error"
        error = ended["error"]
        for word in ("OpenAI", *words):
            assert word in error["message"]
        assert "\n" not in error["message"]
        assert "sk-test" not in str(ended)
        assert user_texts(client, session) == [message]
        model_server.otherwise = answer("Better now.")
        assert (await client.prompt(session, "Again"))["stopReason"] == "end_turn"


@pytest.mark.covers("P8")
async def test_a_busy_provider_is_retried_visibly_and_then_reported(
    opened_v2: OpenV2, model_server: ModelServer, home: Path
) -> None:
    config_file(home, "[limits]\nmax_retries = 1\n")
    model_server.otherwise = Status(code=429, headers={"Retry-After": "0"}, message="slow down")
    client, session = await opened_v2()
    ended = await client.prompt(session, "Go")
    assert ended["stopReason"] == "error"
    assert "429" in ended["error"]["message"]
    assert len(model_server.requests) == 2
    (notice,) = client.view(session).notices
    assert notice["severity"] == "warning"
    assert "trying again" in notice["title"]


@pytest.mark.covers("P8", "S4")
async def test_a_connection_that_breaks_keeps_what_was_shown(
    opened_v2: OpenV2,
    agent: StartAgent,
    model_server: ModelServer,
    home: Path,
    workspace_repo: Path,
) -> None:
    config_file(home, NO_RETRIES)
    model_server.add(answer("Half of it", Cut()))
    client, session = await opened_v2()
    ended = await client.prompt(session, "Go")
    assert ended["stopReason"] == "error"
    assert client.view(session).text() == "Half of it"
    live = client.view(session).conversation()
    await client.wire.stop()
    second_client = await connect(agent, model_server)
    view = await second_client.resume(session, workspace_repo, replay=True)
    assert view.conversation() == live
    assert states(second_client, session) == ["idle"]


@pytest.mark.covers("P8")
async def test_each_other_stop_reason_is_reported_as_itself(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    for stop, reason in (("length", "max_tokens"), ("content_filter", "refusal")):
        model_server.otherwise = answer("So far", stop=stop)
        assert (await client.prompt(session, "Go"))["stopReason"] == reason


@pytest.mark.covers("P11")
async def test_a_command_that_the_agent_answers_itself_is_work_like_any_other(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    assert (await client.prompt(session, "/help"))["stopReason"] == "end_turn"
    assert len(user_texts(client, session)) == 1
    assert states(client, session) == ["running", "idle: end_turn"]
    assert "/help" in client.view(session).text()
    assert model_server.requests == []


@pytest.mark.covers("P1", "P11")
async def test_two_prompts_at_once_are_two_messages_in_their_order(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    client, session = await opened_v2()
    first = client.post_prompt(session, "first")
    second = client.post_prompt(session, "second")
    message_ids = [await client.said(first), await client.said(second)]
    await client.idle(session, message_ids[1])
    assert user_texts(client, session) == message_ids
    assert [client.view(session).messages[message_id].text for message_id in message_ids] == [
        "first",
        "second",
    ]
    assert states(client, session) == ["running", "idle: end_turn"]
