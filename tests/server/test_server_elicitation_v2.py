"""Forms and pages in version 2: the same as in version 1, and the state that goes with them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acp_agent.config.secrets import Secrets
from tests.cli.cli_process import provider
from tests.server.server_session import MODELS, OPENAI, messages
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import constant
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_client import AnswerError

ASK = Call("ask_user", {"question": "How many?", "kind": "integer", "preset": "2"})
FORMS: Any = frozenset({"elicitation"})


@pytest.fixture
async def browser() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=20) as client:
        yield client


async def asking(
    agent: StartAgent, home: Path, repository: Path, server: ModelServer, editor: EditorV2
) -> tuple[AgentProcess, V2Client, str]:
    config_file(home, MODELS)
    server.add(answer(ASK), answer("Thanks."))
    running = await agent(*OPENAI, editor=editor, environ=server.environ())
    client = V2Client(running)
    await client.initialize()
    return running, client, await client.new_session(repository)


def states(running: AgentProcess, session: str) -> list[str]:
    return [update["state"] for update in running.updates(session, "state_update")]


@pytest.mark.covers("P12")
async def test_a_question_is_a_form_and_the_session_waits_for_the_user_meanwhile(
    agent: StartAgent, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    editor = EditorV2(offers=FORMS)
    editor.answer = lambda _: {"action": "accept", "content": {"answer": 3}}
    running, client, session = await asking(agent, home, workspace_repo, model_server, editor)
    assert (await client.prompt(session, "count"))["stopReason"] == "end_turn"
    (form,) = editor.questions
    assert form["mode"] == "form"
    assert form["sessionId"] == session
    field = form["requestedSchema"]["properties"]["answer"]
    assert field == {"type": "integer", "title": "Answer", "default": 2}
    assert "The user answered: 3" in str(messages(model_server)[-1]["content"])
    assert states(running, session) == ["running", "requires_action", "running", "idle"]


@pytest.mark.covers("P12")
async def test_an_invalid_answer_reaches_the_model_as_no_answer(
    agent: StartAgent, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    editor = EditorV2(offers=FORMS)
    editor.well_behaved = False
    _, client, session = await asking(agent, home, workspace_repo, model_server, editor)
    responses: list[Json] = [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "_later"},
        {"action": "accept"},
        {"action": "accept", "content": {"answer": "three"}},
        {"action": "accept", "content": {"answer": 2.5}},
        {"action": "accept", "content": []},
    ]
    for response in responses:
        editor.answer = constant(response)
        assert (await client.prompt(session, "count"))["stopReason"] == "end_turn"
        assert "does not want to answer" in str(messages(model_server)[-1]["content"])
        model_server.add(answer(ASK), answer("Thanks."))


@pytest.mark.covers("P12", "I6")
async def test_a_client_without_forms_is_asked_in_text(
    agent: StartAgent, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    editor = EditorV2()
    running, client, session = await asking(agent, home, workspace_repo, model_server, editor)
    await client.prompt(session, "count")
    assert editor.questions == []
    assert "How many? (a whole number; by default: 2)" in client.view(session).text()
    assert "requires_action" not in states(running, session)


@pytest.mark.covers("P12", "I4")
async def test_a_login_by_the_page_works_as_in_version_1(
    agent: StartAgent, home: Path, workspace_repo: Path, browser: httpx2.AsyncClient
) -> None:
    key = "sk-test-0123456789-of-the-page"
    with provider(key) as served:
        config_file(
            home,
            f'[providers.mine]\napi = "openai"\nbase_url = "{served.url}/v1"\n'
            'api_key_env = "MINE_KEY"\n',
        )
        editor = EditorV2(offers=FORMS)
        editor.answer = lambda _: {"action": "accept"}
        running = await agent("--model", "mine/any", editor=editor)
        client = V2Client(running)
        methods = (await client.initialize())["authMethods"]
        offered = {method["methodId"]: method["type"] for method in methods}
        assert offered["login-page"] == "agent"
        with pytest.raises(AnswerError) as caught:
            await client.new_session(workspace_repo)
        assert caught.value.code == -32000
        login = running.post("auth/login", {"methodId": "login-page"}, checked=True)
        question = await running.expect(lambda m: m.get("method") == "elicitation/create")
        assert question["params"]["mode"] == "url"
        assert question["params"]["requestId"] == login
        url = question["params"]["url"]
        word = re.search(r'name="word" value="([^"]+)"', (await browser.get(url)).text)
        assert word is not None
        form = {"word": word[1], "provider": "mine", "key": key}
        assert (await browser.post(url, data=form)).status_code == 200
        assert await running.result(login) == {}
        complete = await running.expect(lambda m: m.get("method") == "elicitation/complete")
        assert complete["params"] == {"elicitationId": question["params"]["elicitationId"]}
        assert Secrets(home / "acp-agent" / "secrets.json", {}).stored() == ["mine"]
        assert await client.new_session(workspace_repo)
        assert key.encode() not in b"".join(running.lines)
