"""Logging in with a key that the user gives in a browser."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acp_agent.config.paths import find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.server.core import Core
from acp_agent.server.link import ClientLink
from acp_agent.server.login_page import flow, html, server
from protocol.transports.stdio import StdioTransport
from tests.cli.cli_process import Provider, provider
from tests.server.server_session import config_file
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor, Json
from tests.support.wire_client import AnswerError

KEY = "sk-test-0123456789-of-the-page"
PAGES: Any = frozenset({"elicitation"})


@pytest.fixture
def served() -> Iterator[Provider]:
    """A provider that takes KEY alone."""
    with provider(KEY) as one:
        yield one


@pytest.fixture
async def browser() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=20) as client:
        yield client


class Login:
    """An `authenticate` that waits for the user, and the page that they were sent to."""

    def __init__(self, running: AgentProcess, request: int, asked: Json) -> None:
        self.running = running
        self.request = request
        self.asked = asked
        self.url: str = asked["params"]["url"]

    @property
    def origin(self) -> str:
        return self.url.partition("/login/")[0]

    async def error(self) -> AnswerError:
        with pytest.raises(AnswerError) as caught:
            await self.running.result(self.request)
        return caught.value

    async def closed(self, browser: httpx2.AsyncClient) -> bool:
        """Whether nobody listens there any more."""
        try:
            await browser.get(self.url)
        except httpx2.ConnectError:
            return True
        return False


async def begin(
    agent: StartAgent, home: Path, served: Provider, answer: Any = None, *flags: str
) -> Login:
    """Start an agent without a key, and a login by the page. `answer` is the editor's."""
    config_file(
        home,
        '[log]\nlevel = "debug"\n[providers.mine]\napi = "openai"\n'
        f'base_url = "{served.url}/v1"\nkey_env = "MINE_KEY"\n',
    )
    editor = Editor(offers=PAGES)
    editor.answer = lambda _: {"action": "accept"} if answer is None else answer
    running = await agent("--model", "mine/any", *flags, editor=editor)
    await running.initialize()
    request = running.post("authenticate", {"methodId": "login-page"}, checked=True)
    asked = await running.expect(lambda message: message.get("method") == "elicitation/create")
    return Login(running, request, asked)


async def form(browser: httpx2.AsyncClient, url: str, **headers: str) -> dict[str, str]:
    """The fields of the page's form, filled in with the right key."""
    page = await browser.get(url, headers=headers)
    assert page.status_code == 200
    word = re.search(r'name="word" value="([^"]+)"', page.text)
    assert word is not None
    return {"word": word[1], "provider": "mine", "key": KEY}


def kept(home: Path) -> list[str]:
    return Secrets(home / "acp-agent" / "secrets.json", {}).stored()


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
async def test_a_key_given_on_the_page_is_tried_kept_and_used(
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
    assert "works and is kept" in page.text
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
    seen = "".join(page.text for page in pages) + log
    seen += b"".join(login.running.lines).decode() + login.running.stderr.decode()
    for key in (KEY, wrong):
        assert key not in seen


@pytest.mark.covers("P12")
async def test_a_key_that_the_provider_refuses_changes_nothing_and_can_be_given_again(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    fields = await form(browser, login.url)
    for key, words in (("sk-another-key", "does not take this key"), ("two words", "no key")):
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
async def test_a_key_that_cannot_be_tried_is_kept_as_in_a_terminal_and_the_page_says_so(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    served.status = 500
    login = await begin(agent, home, served)
    page = await browser.post(login.url, data=await form(browser, login.url))
    assert page.status_code == 200
    assert "could not be tried" in page.text
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
async def test_a_user_who_does_not_want_the_page_ends_the_login_and_closes_it(
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
async def test_other_addresses_methods_hosts_and_forms_of_others_get_nothing(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    url = login.url
    fields = await form(browser, url)

    async def status(method: str, target: str, **options: Any) -> int:
        response = await browser.request(method, target, **options)
        assert fields["word"] not in response.text
        return response.status_code

    for target in (login.origin, f"{login.origin}/login/", f"{url}x", f"{url}?a=1", url[:-1]):
        assert await status("GET", target) == 404
    assert await status("PUT", url, content=b"x") == 405
    assert await status("DELETE", url) == 405
    assert await status("GET", url, headers={"Host": "evil.example"}) == 421
    port = login.origin.rpartition(":")[2]
    assert await status("GET", url, headers={"Host": f"localhost:{port}"}) == 421
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert await status("POST", url, data=fields, headers=headers) == 403
    assert await status("POST", url, data={**fields, "word": "guessed"}) == 403
    assert await status("POST", url, data={"provider": "mine", "key": KEY}) == 403
    assert await status("POST", url, json=fields) == 415
    many = "&".join(f"f{number}=1" for number in range(100)).encode()
    as_form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert await status("POST", url, content=many, headers=as_form) == 400
    assert await status("POST", url, content=b"key=\xff\xfe", headers=as_form) == 400
    assert served.asked == []
    assert kept(home) == []
    assert (await browser.post(url, data=fields)).status_code == 200  # it still works


async def raw(login: Login, sent: bytes, *, until_end: bool = True) -> bytes:
    """What the page's server answers to bytes."""
    port = int(login.origin.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        async with asyncio.timeout(20):
            return await reader.read() if until_end else await reader.read(100)
    finally:
        writer.close()


@pytest.mark.covers("P12")
async def test_what_is_no_request_or_far_too_large_is_refused_at_once(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    host = login.origin.removeprefix("http://").encode()
    path = login.url.removeprefix(login.origin).encode()
    post = b"POST " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n"
    form_type = b"Content-Type: application/x-www-form-urlencoded\r\n"
    chunked = post + form_type + b"Transfer-Encoding: chunked\r\n\r\n"
    huge = chunked + (b"8000\r\n" + b"a" * 0x8000 + b"\r\n") * 2
    both = post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    long_head = b"GET " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\nX: " + b"a" * 40_000
    cases: list[tuple[bytes, bytes]] = [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET " + path + b" HTTP/1.1\r\n\r\n", b"400"),  # without a host
        (b"GET " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\nHost: evil\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b""),  # TLS; it is closed, whatever it says
        (huge, b"413"),
        (long_head, b"431"),
        (both + b"GET /smuggled HTTP/1.1\r\n\r\n", b"4"),
    ]
    for sent, expected in cases:
        answered = await raw(login, sent, until_end=b"\x16" not in sent)
        assert answered.count(b"HTTP/1.1 ") <= 1
        assert answered.removeprefix(b"HTTP/1.1 ").startswith(expected), (sent[:40], answered[:80])
    assert (await browser.get(login.url)).status_code == 200


@pytest.mark.covers("P12")
async def test_visitors_who_send_nothing_do_not_keep_the_user_out_for_ever(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    port = int(login.origin.rpartition(":")[2])
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
    try:
        page = await browser.post(login.url, data=await form(browser, login.url))
        assert page.status_code == 200
        assert await login.running.result(login.request) == {}
        for reader, _ in idle:  # the page is gone, and so are they
            async with asyncio.timeout(5):
                assert await reader.read() == b""
    finally:
        for _, writer in idle:
            writer.close()


@pytest.mark.covers("P12", "T7")
async def test_a_visitor_who_is_slow_to_ask_is_sent_away_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch, browser: httpx2.AsyncClient
) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.2)

    class NeverAsked:
        async def check(self, provider: object, key: str) -> Any:
            raise AssertionError

        async def keep(self, provider: object, key: str) -> None:
            raise AssertionError

    async with server.login_page([], NeverAsked()) as page:
        reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
        writer.write(b"GET / HTTP/1.1\r\n")
        crowd = [await asyncio.open_connection("127.0.0.1", page.port) for _ in range(20)]
        async with asyncio.timeout(10):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            for other, _ in crowd:
                await other.read()
        assert (await browser.get(page.url)).status_code == 200
        for _, one in [(reader, writer), *crowd]:
            one.close()


@pytest.mark.covers("P12")
async def test_of_two_forms_sent_at_once_one_is_taken(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    fields = await form(browser, login.url)

    async def send() -> int:
        try:
            return (await browser.post(login.url, data=fields)).status_code
        except httpx2.TransportError:
            return 0  # the page was closed already

    statuses = await asyncio.gather(*(send() for _ in range(4)))
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 409, 410, 0}
    assert [path for path, _ in served.asked] == ["/v1/models"]


@pytest.mark.covers("P12")
async def test_the_page_needs_no_other_and_nobody_can_frame_read_or_keep_it(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    page = await browser.get(login.url)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert f"'sha256-{html.style_hash()}'" in policy
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "server" not in page.headers
    assert not re.search(r"<script|<img|<link|https?://|url\(|@import| style=", page.text)
    assert 'type="password"' in page.text
    assert "color-scheme: light dark" in page.text


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
    english, chinese = html._texts()["en"], html._texts()["zh"]
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        assert ("{name}" in text) == ("{name}" in chinese[name])


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("", "en"), ("*", "en"), ("zh", "zh"), ("en;q=0, zh;q=0.1", "zh"), ("zh;q=x,en", "en"),
     ("EN-gb,zh", "en"), ("zh-Hant-TW", "zh"), ("," * 5_000, "en")],
)  # fmt: skip
def test_the_language_is_the_one_wished_for_most(accepted: str, language: str) -> None:
    assert html.language_for(accepted) == language


@pytest.mark.covers("P12", "T7")
async def test_a_login_that_nobody_completes_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, browser: httpx2.AsyncClient
) -> None:
    monkeypatch.setattr(flow, "PATIENCE_SECONDS", 0.3)
    environ = {"ACP_AGENT_HOME": str(tmp_path)}
    paths = find_paths(environ)
    secrets = Secrets(paths.secrets_file, environ)
    core = Core(paths, secrets=secrets, environ=environ, model_flag=None)
    ours, theirs = socket.socketpair()
    link = ClientLink(StdioTransport(ours.fileno(), ours.fileno()), core)
    serving = asyncio.create_task(link.run())
    reader, writer = await asyncio.open_connection(sock=theirs)

    async def next_message() -> Json:
        async with asyncio.timeout(20):
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
        ours.close()
