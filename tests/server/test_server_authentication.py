"""Logging in and out, and when it is asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.secrets import Secrets
from acp_agent.server.initialize import auth_methods
from tests.server.server_session import DEMO
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import Editor
from tests.support.model_server import ModelServer, answer
from tests.support.wire_client import AnswerError

KEY = "sk-test-0123456789"


def keys(home: Path) -> Secrets:
    """The keys that logins kept."""
    return Secrets(home / "acp-agent" / "secrets.json", {})


def keyed_model(home: Path, server: ModelServer) -> tuple[str, ...]:
    """Configure a provider that needs a key; the flags that choose a model of it."""
    config_file(
        home,
        f'[providers.mine]\napi = "openai"\nbase_url = "{server.openai_url}"\n'
        'api_key_env = "MINE_KEY"\n',
    )
    return ("--model", "mine/scripted-model")


async def refused(running: AgentProcess, cwd: Path) -> AnswerError:
    """The error that session/new answers with."""
    with pytest.raises(AnswerError) as caught:
        await running.new_session(cwd)
    return caught.value


async def without_a_model(agent: StartAgent, home: Path, **options: Any) -> AgentProcess:
    """An agent without any key, and without a local server whatever this machine runs."""
    config_file(home, '[providers.local]\nbase_url = "http://127.0.0.1:9/v1"\n')
    running = await agent(**options)
    await running.initialize()
    return running


@pytest.mark.covers("I4")
async def test_the_methods_are_complete_and_the_terminal_one_needs_a_client_that_has_one(
    agent: StartAgent,
) -> None:
    running = await agent(*DEMO)
    plain = (await running.initialize())["authMethods"]
    assert [method["id"] for method in plain] == ["configured", "demo"]
    for method in plain:
        assert set(method) == {"id", "name", "description"}  # no type: that is an agent's
        assert all(isinstance(text, str) and text for text in method.values())

    offered = Editor(offers=frozenset({"terminal_auth"})).capabilities
    login = (await running.initialize(clientCapabilities=offered))["authMethods"][0]
    assert login == {
        "id": "login",
        "name": login["name"],
        "description": login["description"],
        "type": "terminal",
        "args": ["--login"],
        "env": {},
    }
    by_meta = {"_meta": {"terminal-auth": True}}
    repeated = (await running.initialize(clientCapabilities=by_meta))["authMethods"][0]
    mirrored = repeated.pop("_meta")["terminal-auth"]
    assert repeated == login
    assert set(mirrored) == {"label", "command", "args", "env"}
    assert shutil.which(mirrored["command"])


@pytest.mark.covers("I5", "I4")
async def test_without_any_key_a_session_asks_for_a_login_that_then_makes_it_work(
    agent: StartAgent, home: Path, workspace_repo: Path
) -> None:
    running = await without_a_model(agent, home)
    error = await refused(running, workspace_repo)
    assert error.code == -32000
    assert [method["id"] for method in error.data["authMethods"]] == ["configured", "demo"]
    assert await running.request("authenticate", {"methodId": "demo"}) == {}
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"
    assert "demo" in running.text(session).lower()


@pytest.mark.covers("I5")
async def test_the_methods_of_the_error_are_those_of_initialize(
    agent: StartAgent, home: Path, workspace_repo: Path
) -> None:
    editor = Editor(offers=frozenset({"terminal_auth"}))
    running = await without_a_model(agent, home, editor=editor)
    error = await refused(running, workspace_repo)
    advertised = json.loads(running.lines[0])["result"]["authMethods"]
    assert error.data["authMethods"] == advertised
    assert advertised[0]["id"] == "login"


def test_over_ssh_the_terminal_comes_before_the_page_of_this_computer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    everything = {"auth": {"terminal": True}, "elicitation": {"url": {}}}
    methods = auth_methods({"clientCapabilities": everything}, 1)
    assert [method["id"] for method in methods] == ["login", "login-page", "configured", "demo"]


def test_a_login_is_offered_before_what_needs_a_key_already() -> None:
    everything = {"auth": {"terminal": True}, "elicitation": {"url": {}}}
    methods = auth_methods({"clientCapabilities": everything}, 1)
    assert [method["id"] for method in methods] == ["login-page", "login", "configured", "demo"]


@pytest.mark.covers("I4", "I5")
async def test_configured_finds_a_key_that_came_after_the_start(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Logged in."))
    running = await agent(*keyed_model(home, model_server))
    await running.initialize()
    assert (await refused(running, workspace_repo)).code == -32000
    with pytest.raises(AnswerError) as caught:
        await running.request("authenticate", {"methodId": "configured"})
    assert caught.value.code == -32000

    keys(home).set("mine", KEY)  # as a login in a terminal does
    assert await running.request("authenticate", {"methodId": "configured"}) == {}
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    assert model_server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in b"".join(running.lines)


@pytest.mark.covers("I4", "I5")
async def test_configured_reads_the_configuration_again(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Configured."))
    running = await without_a_model(agent, home)
    assert (await refused(running, workspace_repo)).code == -32000
    address = f'api = "openai"\nbase_url = "{model_server.openai_url}"\n'
    config_file(home, f'model = "mine/scripted-model"\n[providers.mine]\n{address}wrong = 1\n')
    with pytest.raises(AnswerError) as caught:
        await running.request("authenticate", {"methodId": "configured"})
    assert caught.value.code == -32603
    assert "wrong" in caught.value.message
    config_file(home, f'model = "mine/scripted-model"\n[providers.mine]\n{address}')
    assert await running.request("authenticate", {"methodId": "configured"}) == {}
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    assert running.text(session) == "Configured."


@pytest.mark.covers("I5")
async def test_a_key_in_the_environment_needs_no_login(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Here."))
    running = await agent(environ=model_server.environ("openai"))
    await running.initialize()
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    assert running.text(session) == "Here."


@pytest.mark.covers("I4", "T4")
async def test_an_unknown_login_method_and_one_that_runs_elsewhere_are_refused_by_name(
    agent: StartAgent,
) -> None:
    running = await agent(*DEMO, editor=Editor(offers=frozenset({"terminal_auth"})))
    await running.initialize()
    for params, word in (
        ({"methodId": "no-such-method"}, "no-such-method"),
        ({"methodId": "login"}, "terminal"),
        ({"methodId": 7}, "methodId"),
        ({}, "methodId"),
    ):
        with pytest.raises(AnswerError) as caught:
            await running.request("authenticate", params)
        assert caught.value.code == -32602
        assert word in caught.value.message


@pytest.mark.covers("I4", "I5")
async def test_after_a_logout_sessions_ask_for_a_login_again_and_saved_keys_are_gone(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.otherwise = answer("Hello.")
    keys(home).set("mine", KEY)
    running = await agent(*keyed_model(home, model_server))
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "hi")
    assert await running.request("logout", {}) == {}
    assert keys(home).stored() == []
    error = await refused(running, workspace_repo)
    assert error.code == -32000
    assert error.data["authMethods"]
    with pytest.raises(AnswerError) as caught:
        await running.request("authenticate", {"methodId": "configured"})
    assert caught.value.code == -32000
    assert len(model_server.requests) == 1
    await running.request("authenticate", {"methodId": "demo"})
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("I5")
async def test_an_error_that_a_login_cannot_fix_requests_none(
    agent: StartAgent, home: Path, workspace_repo: Path
) -> None:
    path = config_file(home, "model = 7\n")
    running = await agent()
    await running.initialize()
    error = await refused(running, workspace_repo)
    assert error.code == -32603
    assert "model" in error.message
    path.write_text('model = "demo/demo"\n')  # mended while the agent runs
    await running.new_session(workspace_repo)
