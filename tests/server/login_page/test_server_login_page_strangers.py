"""SocketSlots of the login page who are not its user get nothing and hold nobody up."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acp_agent.server.login_page import server
from acp_agent.server.login_page.page import style_hash
from tests.cli.cli_process import Provider
from tests.server.login_page.page_login import KEY, Login, begin, form, kept
from tests.support.agent_process import StartAgent


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


async def raw(login: Login, data: bytes, *, until_end: bool = True) -> bytes:
    """What the page's server answers to bytes."""
    port = int(login.origin.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(60):
            return await reader.read() if until_end else await reader.read(100)
    finally:
        writer.close()


@pytest.mark.covers("P12")
async def test_an_invalid_or_huge_request_is_refused_at_once(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    host = login.origin.removeprefix("http://").encode()
    path = login.url.removeprefix(login.origin).encode()
    post = b"POST " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n"
    form_type = b"Content-Type: application/x-www-form-urlencoded\r\n"
    chunked = post + form_type + b"Transfer-Encoding: chunked\r\n\r\n"
    huge = chunked + (b"8000\r\n" + b"a" * 0x8000 + b"\r\n") * 8
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
    for data, expected in cases:
        answered = await raw(login, data, until_end=b"\x16" not in data)
        assert answered.count(b"HTTP/1.1 ") <= 1
        assert answered.removeprefix(b"HTTP/1.1 ").startswith(expected), (data[:40], answered[:80])
    assert (await browser.get(login.url)).status_code == 200


@pytest.mark.covers("P12")
async def test_silent_visitors_do_not_block_the_user(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    port = int(login.origin.rpartition(":")[2])
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
    try:
        page = await browser.post(login.url, data=await form(browser, login.url))
        assert page.status_code == 200
        assert await login.running.result(login.request) == {}
        for reader, _ in idle:  # the page is gone, and so are they
            async with asyncio.timeout(60):
                assert await reader.read() == b""
    finally:
        for _, writer in idle:
            writer.close()


@pytest.mark.covers("P12", "T7")
async def test_a_slow_visitor_is_disconnected_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch, browser: httpx2.AsyncClient
) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.2)

    class NeverAsked:
        async def check(self, provider: object, key: str) -> Any:
            raise AssertionError

        async def save(self, provider: object, key: str) -> None:
            raise AssertionError

    async with server.login_page([], NeverAsked()) as page:
        crowd = [await asyncio.open_connection("127.0.0.1", page.port) for _ in range(20)]
        reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
        writer.write(b"GET / HTTP/1.1\r\n")
        async with asyncio.timeout(60):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            for visitor, _ in crowd:
                with contextlib.suppress(ConnectionError):
                    await visitor.read()
        assert (await browser.get(page.url)).status_code == 200
        for _, connection_writer in [(reader, writer), *crowd]:
            connection_writer.close()


@pytest.mark.covers("P12")
async def test_of_two_forms_sent_at_once_one_is_accepted(
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
async def test_the_page_is_complete_and_cannot_be_framed_read_or_cached_by_others(
    agent: StartAgent, home: Path, served: Provider, browser: httpx2.AsyncClient
) -> None:
    login = await begin(agent, home, served)
    page = await browser.get(login.url)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert f"'sha256-{style_hash()}'" in policy
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "server" not in page.headers
    assert not re.search(r"<script|<img|<link|https?://|url\(|@import| style=", page.text)
    assert 'type="password"' in page.text
    assert "color-scheme: light dark" in page.text
