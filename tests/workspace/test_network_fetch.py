"""Fetching pages from real servers on this machine, which the test has to allow one by one."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.workspace import page_reader
from tests.support.orphans import child_processes
from tests.support.web_site import Server, response
from tests.workspace.fetching import fetch, network


async def test_text_comes_as_it_is_with_its_status_and_address(server: Server) -> None:
    server.pages["/a?b=1"] = response(b"h\xc3\xa9llo <b>\n", "text/plain; charset=utf-8")
    page = await fetch(server, "/a?b=1#part")
    assert (page.text, page.status, page.media_type, page.truncated) == (
        "héllo <b>\n",
        200,
        "text/plain",
        False,
    )
    assert page.url.startswith(f"http://site.test:{server.port}/a?b=1")


async def test_the_request_names_the_host_and_not_its_address(server: Server) -> None:
    server.pages["/"] = response(b"x")
    await fetch(server, "/")
    lines = server.requests[0].split("\r\n")
    assert lines[0] == "GET / HTTP/1.1"
    assert [line for line in lines if line.lower().startswith("host:")] == [
        f"Host: site.test:{server.port}"
    ]
    assert "127.0.0.1" not in server.requests[0]


async def test_html_comes_as_markdown_with_absolute_links_and_without_scripts(
    server: Server,
) -> None:
    server.pages["/docs/"] = response(
        b"<html><head><title>Guide</title><style>p{}</style></head><body><script>evil()</script>"
        b"<h2>Start</h2><p>Read <a href='../more?x=1'>more</a> <b>now</b>.</p>"
        b"<pre><code>a = 1\n\nb</code></pre><img src='data:image/png;base64,AAAA'>"
        b"<ul><li>one</li></ul></body></html>",
        "text/html",
    )
    page = await fetch(server, "/docs/")
    assert page.text.startswith("# Guide\n")
    assert "## Start" in page.text
    assert f"[more](http://site.test:{server.port}/more?x=1) **now**" in page.text
    assert "a = 1" in page.text
    assert not any(word in page.text for word in ("evil", "p{}", "base64", "<"))


async def test_invisible_elements_of_a_page_are_removed(server: Server) -> None:
    hidden = ("noscript", "template", "svg", "iframe", "object")
    elements = "".join(f"<{name}>unseen {name}</{name}>" for name in hidden)
    server.pages["/"] = response(
        f"<html><body>{elements}<p>Seen.</p></body></html>".encode(), "text/html"
    )
    assert (await fetch(server, "/")).text.strip() == "Seen."


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html; charset=gbk", "<p>中文</p>".encode("gbk")),
        ("text/html", "<meta charset=gbk><p>中文</p>".encode("gbk")),
        ("text/plain; charset=gbk", "中文".encode("gbk")),
        ("text/plain; charset=no-such", "中文".encode()),
        ("text/plain; charset=hex", "中文".encode()),
    ],
)
async def test_a_page_is_read_in_the_charset_it_has(server: Server, kind: str, body: bytes) -> None:
    server.pages["/"] = response(body, kind)
    assert (await fetch(server, "/")).text == "中文"


@pytest.mark.parametrize("kind", ["application/json", "application/ld+json", "application/xml"])
async def test_data_formats_that_are_text_come_as_they_are(server: Server, kind: str) -> None:
    server.pages["/"] = response(b'{"a": 1}', kind)
    assert (await fetch(server, "/")).text == '{"a": 1}'


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream"])
async def test_content_that_is_not_text_is_refused_by_its_type(server: Server, kind: str) -> None:
    server.pages["/"] = response(b"\x89PNG", kind)
    with pytest.raises(WorkspaceError, match=f"is {kind}, which cannot be read as text"):
        await fetch(server, "/")


async def test_the_content_decides_the_type_of_a_page_without_one(server: Server) -> None:
    server.pages["/html"] = b"HTTP/1.1 200 OK\r\n\r\n <!DOCTYPE html><p>Hi</p>"
    server.pages["/binary"] = b"HTTP/1.1 200 OK\r\n\r\n\x00\x01\x02"
    assert (await fetch(server, "/html")).text == "Hi"
    with pytest.raises(WorkspaceError, match="cannot be read as text"):
        await fetch(server, "/binary")


async def test_an_error_page_is_read_with_its_status(server: Server) -> None:
    page = await fetch(server, "/missing")
    assert (page.status, page.text) == (404, "no")


async def test_a_page_over_the_limit_is_cut_and_says_so(server: Server) -> None:
    server.pages["/"] = response(b"x" * 1000)
    page = await fetch(server, "/", limit=100)
    assert (page.text, page.truncated) == ("x" * 100, True)


async def test_reading_an_endless_body_stops_at_the_limit(server: Server) -> None:
    sent_bytes = 0

    async def endless(head: str, writer: asyncio.StreamWriter) -> None:
        nonlocal sent_bytes
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"y" * 65_536)
            sent_bytes += 65_536
            await writer.drain()

    server.special["/"] = endless
    page = await fetch(server, "/")
    assert page.truncated
    assert sent_bytes < 20_000_000


async def test_a_compressed_page_that_unpacks_to_200_megabytes_takes_little_memory(
    server: Server,
) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(b"\0" * 1_000_000) for _ in range(200)) + packer.flush()
    server.pages["/"] = response(packed, more="Content-Encoding: gzip\r\n")
    tracemalloc.start()
    try:
        page = await fetch(server, "/")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert page.truncated
    assert peak < 50_000_000


async def test_a_compressed_page_is_unpacked(server: Server) -> None:
    server.pages["/"] = response(gzip.compress(b"packed"), more="Content-Encoding: gzip\r\n")
    assert (await fetch(server, "/")).text == "packed"


@pytest.mark.parametrize(
    "response_start", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbegun"]
)
async def test_a_stalled_response_ends_at_the_timeout(
    server: Server, response_start: bytes
) -> None:
    ended = asyncio.Event()

    async def stall(head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(response_start)
        await ended.wait()

    server.special["/"] = stall
    with pytest.raises(WorkspaceError, match=r"no complete answer .* within 0\.4 s"):
        await fetch(server, "/", timeout=0.4)
    ended.set()


async def test_a_broken_connection_is_reported_in_one_line(server: Server) -> None:
    server.pages["/"] = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: text/plain\r\n\r\nx"
    )
    with pytest.raises(WorkspaceError, match=r"cannot fetch http://site\.test") as error:
        await fetch(server, "/")
    assert "\n" not in str(error.value)


async def test_a_page_nested_without_end_still_gives_its_text(server: Server) -> None:
    server.pages["/"] = response(b"<div>" * 20_000 + b"deep", "text/html")
    assert "deep" in (await fetch(server, "/")).text


async def test_certificates_that_cannot_be_read_are_named_and_http_needs_none(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    server.pages["/"] = response(b"x")
    site = network(server)
    page = await site.fetch(f"http://site.test:{server.port}/", limit=100, timeout=20)
    assert page.text == "x"
    with pytest.raises(WorkspaceError, match=r"SSL_CERT_FILE names /nowhere/certificates\.pem"):
        await site.fetch("https://site.test/", limit=100, timeout=20)


# Each takes some HTML parsers the square of its length, or keeps them busy in another way. Newer
# versions of Python read most of them at once.
TRAPS = {
    "comments": b"<!--",
    "tags": b"<a ",
    "slashes": b"<a /",
    "quotes": b"<a '",
    "ends": b"</",
    "instructions": b"<?",
    "conditions": b"<![if",
}


@pytest.mark.parametrize("trap", TRAPS)
async def test_a_page_that_keeps_the_parser_busy_ends_with_the_call(
    server: Server, trap: str
) -> None:
    server.pages["/"] = response(TRAPS[trap] * (2_000_000 // len(TRAPS[trap])), "text/html")
    before = child_processes()
    async with asyncio.timeout(15):  # a slow parser alone takes 20 seconds
        (result,) = await asyncio.gather(fetch(server, "/", timeout=1), return_exceptions=True)
    assert isinstance(result, WorkspaceError | page_reader.Page), result
    assert isinstance(result, page_reader.Page) or "within 1 s" in result.shown
    assert child_processes() == before, "nothing goes on behind the call"


async def test_a_page_that_takes_too_long_to_parse_is_abandoned(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_reader, "_MAX_PARSE_SECONDS", 0.01)  # no process starts that fast
    server.pages["/"] = response(b"<p>text", "text/html")
    with pytest.raises(WorkspaceError, match="is too complicated"):
        await fetch(server, "/")


async def test_a_cancelled_fetch_ends_the_parser(server: Server) -> None:
    server.pages["/"] = response(b"<!--" * 500_000, "text/html")
    before = child_processes()
    call = asyncio.create_task(fetch(server, "/"))
    async with asyncio.timeout(60):
        while child_processes() == before:
            await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert child_processes() == before
