"""Logging in with a key that the user gives in a browser."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path

import httpx2
import pytest

from acp_agent.config.paths import find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.core import Core
from acp_agent.server.login_page import flow
from acp_agent.server.login_page.page import _texts, language_for
from acp_agent.server.stdio import surface_for
from protocol.transports.stdio import StdioTransport
from tests.cli.cli_process import Provider
from tests.server.login_page.page_login import KEY, begin, form, kept
from tests.support.agent_process import StartAgent
from tests.support.editor import Json
from tests.support.wire_client import AnswerError


@pytest.mark.covers("I4", "P12")
async def test_the_method_is_offered_to_clients_that_open_pages(agent: StartAgent) -> None:
    running = await agent("--model", "demo/demo")

    async def offered(elicitation: Json) -> list[str]:
        result = await running.initialize(clientCapabilities={"elicitation": elicitation})
        return [method["id"] for method in result["authMethods"]]

    assert "login-page" in await offered({"url": {}})
    assert "login-page" not in await offered({"form": {}})
    assert "login-page" not in await offered({})
    with pytest.raises(AnswerError) as caught:
        await running.request("authenticate", {"methodId": "login-page"})
    assert caught.value.code == -32602


@pytest.mark.covers("P12", "I4", "I5")
async def test_a_key_entered_on_the_page_is_checked_saved_and_used(
    agent: StartAgent,
    home: Path,
    workspace_repo: Path,
    served: Provider,
    browser: httpx2.AsyncClient,
) -> None:
    login = await begin(agent, home, served)
    params = login.asked["params"]
    assert params["mode"] == "url"
    assert params["requestId"] == login.request
    assert "sessionId" not in params
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login/[\w-]{40,}", login.url)

    fields = await form(browser, login.url)
    page = await browser.post(login.url, data=fields, headers={"Origin": login.origin})
    assert page.status_code == 200
    assert "works and is saved" in page.text
    assert await login.running.result(login.request) == {}
    complete = await login.running.expect(lambda m: m.get("method") == "elicitation/complete")
    assert complete["params"] == {"elicitationId": params["elicitationId"]}
    assert [path for path, _ in served.asked] == ["/v1/models"]
    assert kept(home) == ["mine"]
    assert await login.running.new_session(workspace_repo)
    assert await login.closed(browser)


@pytest.mark.covers("P12", "T4")
async def test_the_key_is_in_no_message_no_log_and_no_page(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    trace = home / "trace"
    login = await begin(agent, home, served, None, "--trace", str(trace))
    fields = await form(browser, login.url)
    wrong = "sk-wrong-9876543210-key"
    pages = [await browser.post(login.url, data={**fields, "key": wrong})]
    pages.append(await browser.post(login.url, data=fields))
    await login.running.result(login.request)
    await login.running.close_stdin()
    await login.running.wait()
    log = find_paths({"ACP_AGENT_HOME": str(home / "acp-agent")}).log_file.read_text()
    assert "login page" in log
    log += trace.read_text()
    all_text = "".join(page.text for page in pages) + log
    all_text += b"".join(login.running.lines).decode() + login.running.stderr.decode()
    for key in (KEY, wrong):
        assert key not in all_text


@pytest.mark.covers("P12")
async def test_a_refused_key_changes_nothing_and_can_be_entered_again(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    fields = await form(browser, login.url)
    for key, words in (("sk-another-key", "rejected this key"), ("two words", "not a key")):
        page = await browser.post(login.url, data={**fields, "key": key})
        assert page.status_code == 422
        assert words in page.text
        assert key not in page.text
    page = await browser.post(login.url, data={**fields, "provider": "nobody"})
    assert page.status_code == 422
    assert kept(home) == []
    page = await browser.post(login.url, data=fields)
    assert page.status_code == 200
    assert await login.running.result(login.request) == {}


@pytest.mark.covers("P12")
async def test_a_key_that_cannot_be_checked_is_saved_and_the_page_says_so(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    served.status = 500
    login = await begin(agent, home, served)
    page = await browser.post(login.url, data=await form(browser, login.url))
    assert page.status_code == 200
    assert "Saved without testing the key" in page.text
    await login.running.result(login.request)
    assert kept(home) == ["mine"]


@pytest.mark.covers("P12")
@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ({"action": "decline"}, "declined"),
        ({"action": "cancel"}, "cancelled"),
        ({"action": "_later"}, "cancelled"),
    ],
)
async def test_declining_the_page_ends_the_login_and_closes_it(
    agent: StartAgent,
    home: Path,
    served: Provider,
    browser: httpx2.AsyncClient,
    answer: Json,
    word: str,
) -> None:
    login = await begin(agent, home, served, answer)
    error = await login.error()
    assert error.code == -32000
    assert word in error.message
    assert error.data["authMethods"]
    assert await login.closed(browser)


@pytest.mark.covers("P12", "T5")
async def test_a_cancelled_request_closes_the_page_and_withdraws_the_question(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    await form(browser, login.url)
    login.running.notify("$/cancel_request", {"requestId": login.request})
    assert (await login.error()).code == -32800
    assert await login.closed(browser)


@pytest.mark.covers("P12", "T8")
async def test_a_client_that_leaves_in_the_middle_leaves_no_page_behind(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    await form(browser, login.url)
    await login.running.close_stdin()
    assert await login.running.wait() == 0
    assert await login.closed(browser)


@pytest.mark.covers("P12")
async def test_the_page_speaks_the_language_of_the_browser(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    page = await browser.get(login.url, headers={"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"})
    assert '<html lang="zh">' in page.text
    assert "密钥" in page.text
    page = await browser.get(login.url, headers={"Accept-Language": "de,en;q=0.5,zh;q=0.2"})
    assert '<html lang="en">' in page.text


def test_both_languages_say_the_same_things() -> None:
    english, chinese = _texts()["en"], _texts()["zh"]
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        assert ("{name}" in text) == ("{name}" in chinese[name])


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("", "en"), ("*", "en"), ("zh", "zh"), ("en;q=0, zh;q=0.1", "zh"), ("zh;q=x,en", "en"),
     ("EN-gb,zh", "en"), ("zh-Hant-TW", "zh"), ("," * 5_000, "en")],
)  # fmt: skip
def test_the_page_has_the_most_preferred_language(accepted: str, language: str) -> None:
    assert language_for(accepted) == language


@pytest.mark.covers("P12", "T7")
async def test_an_unfinished_login_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, browser: httpx2.AsyncClient
) -> None:
    monkeypatch.setattr(flow, "USER_SECONDS", 0.3)
    environ = {"ACP_AGENT_HOME": str(tmp_path)}
    paths = find_paths(environ)
    secrets = Secrets(paths.secrets_file, environ)
    core = Core(paths, secrets=secrets, environ=environ, model_flag=None)
    client_socket, server_socket = socket.socketpair()
    link = ClientConnection(
        StdioTransport(client_socket.fileno(), client_socket.fileno()), core, surface_for
    )
    serving = asyncio.create_task(link.run())
    reader, writer = await asyncio.open_connection(sock=server_socket)

    async def next_message() -> Json:
        async with asyncio.timeout(60):
            message: Json = json.loads(await reader.readline())
            return message

    def post(request: int, method: str, params: Json) -> None:
        message = {"jsonrpc": "2.0", "id": request, "method": method, "params": params}
        writer.write(json.dumps(message).encode() + b"\n")

    try:
        able: Json = {"elicitation": {"url": {}}}
        post(1, "initialize", {"protocolVersion": 1, "clientCapabilities": able})
        await next_message()
        post(2, "authenticate", {"methodId": "login-page"})
        asked = await next_message()
        assert asked["params"]["requestId"] == 2
        withdrawn = await next_message()
        assert withdrawn["method"] == "$/cancel_request"
        assert withdrawn["params"] == {"requestId": asked["id"]}
        answered = await next_message()
        assert answered["error"]["code"] == -32000
        assert "log in again" in answered["error"]["message"]
        with pytest.raises(httpx2.ConnectError):
            await browser.get(asked["params"]["url"])
    finally:
        writer.close()
        await serving
        await core.close()
        client_socket.close()
