"""Fetching pages from real servers on this machine, which the test has to allow one by one."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ssl
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.contract import Page
from acp_agent.workspace.network import GuardedNetwork

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


def response(
    body: bytes, kind: str = "text/plain", status: str = "200 OK", more: str = ""
) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


class Server:
    """An HTTP server that answers each path with prepared bytes, and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.pages: dict[str, bytes] = {}
        self.special: dict[str, Answer] = {}
        self.server_names: list[str | None] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        if tls is not None:
            tls.sni_callback = lambda _socket, name, _context: self.server_names.append(name)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            path = head.split(" ")[1]
            if path in self.special:
                await self.special[path](head, writer)
            else:
                writer.write(self.pages.get(path, response(b"no", status="404 Not Found")))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class Names:
    """A resolver that answers as it is told, one answer after the other; the last one stays."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self.answers = {name.replace("_", "."): [list(found)] for name, found in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError(-2, "Name or service not known")
        answers = self.answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    await one.start()
    yield one
    await one.stop()


def network(server: Server, names: Names | None = None) -> GuardedNetwork:
    names = names or Names(site_test=["127.0.0.1"], localhost=["127.0.0.1"])
    return GuardedNetwork(resolve=names, allow=[("127.0.0.1", server.port)])


async def fetch(server: Server, path: str, *, limit: int = 50_000, timeout: float = 20) -> Page:
    url = f"http://site.test:{server.port}{path}"
    return await network(server).fetch(url, limit=limit, timeout=timeout)


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


async def test_the_server_is_asked_for_the_name_and_not_for_its_address(server: Server) -> None:
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
async def test_what_is_not_text_is_refused_by_its_type(server: Server, kind: str) -> None:
    server.pages["/"] = response(b"\x89PNG", kind)
    with pytest.raises(WorkspaceError, match=f"is {kind}, which cannot be read as text"):
        await fetch(server, "/")


async def test_a_page_without_a_type_is_looked_at(server: Server) -> None:
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


async def test_an_endless_body_is_read_only_as_far_as_it_is_wanted(server: Server) -> None:
    sent = 0

    async def endless(head: str, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"y" * 65_536)
            sent += 65_536
            await writer.drain()

    server.special["/"] = endless
    page = await fetch(server, "/")
    assert page.truncated
    assert sent < 20_000_000


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
    "begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbegun"]
)
async def test_a_server_that_does_not_go_on_ends_in_time(server: Server, begun: bytes) -> None:
    ended = asyncio.Event()

    async def stall(head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        await ended.wait()

    server.special["/"] = stall
    began = time.monotonic()
    with pytest.raises(WorkspaceError, match=r"no complete answer .* within 0\.4 s"):
        await fetch(server, "/", timeout=0.4)
    assert time.monotonic() - began < 5
    ended.set()


async def test_a_connection_that_is_cut_is_said_in_one_line(server: Server) -> None:
    server.pages["/"] = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: text/plain\r\n\r\nx"
    )
    with pytest.raises(WorkspaceError, match=r"cannot fetch http://site\.test") as error:
        await fetch(server, "/")
    assert "\n" not in str(error.value)


async def test_a_page_nested_without_end_still_gives_its_text(server: Server) -> None:
    server.pages["/"] = response(b"<div>" * 20_000 + b"deep", "text/html")
    assert "deep" in (await fetch(server, "/")).text


async def test_redirects_on_the_same_host_are_followed(server: Server) -> None:
    def moved(to: str) -> bytes:
        return response(b"", status="302 Found", more=f"Location: {to}\r\n")

    server.pages["/1"] = moved("/2")
    server.pages["/2"] = moved(f"http://site.test:{server.port}/3")
    server.pages["/3"] = response(b"here")
    page = await fetch(server, "/1")
    assert (page.text, page.url) == ("here", f"http://site.test:{server.port}/3")


async def test_redirects_that_never_end_do(server: Server) -> None:
    server.pages["/"] = response(b"", status="302 Found", more="Location: /\r\n")
    with pytest.raises(WorkspaceError, match="redirects more than 5 times"):
        await fetch(server, "/")
    assert len(server.requests) == 6


async def test_a_redirect_to_another_host_is_handed_back_and_not_followed(server: Server) -> None:
    names = Names(site_test=["127.0.0.1"], other_test=["127.0.0.1"])
    to = f"http://other.test:{server.port}/secret"
    server.pages["/"] = response(b"", status="301 Moved", more=f"Location: {to}\r\n")
    page = await network(server, names).fetch(
        f"http://site.test:{server.port}/", limit=100, timeout=20
    )
    assert (page.status, page.url, page.text) == (301, to, "")
    assert names.asked == ["site.test"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("http://2130706433/", "unusual form"),
        ("file:///etc/passwd", "only http and https"),
        ("http://user:pw@site.test/", "user name or password"),
        ("http://a%20b/", "no usable host"),
        ("http://[::1", "no address"),
    ],
)
async def test_a_redirect_to_what_may_not_be_asked_for_is_refused(
    server: Server, to: str, why: str
) -> None:
    server.pages["/"] = response(b"", status="302 Found", more=f"Location: {to}\r\n")
    with pytest.raises(WorkspaceError, match=why):
        await fetch(server, "/")


async def test_a_redirect_to_a_private_port_of_the_same_name_is_refused(server: Server) -> None:
    # The server's own address is allowed here, other ports of it are not.
    server.pages["/"] = response(b"", status="302 Found", more="Location: http://site.test:1/\r\n")
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await fetch(server, "/")


async def test_a_private_server_is_not_reached_by_any_name_or_address(server: Server) -> None:
    names = Names(site_test=["127.0.0.1"], mixed_test=["8.8.8.8", "127.0.0.1"], six_test=["::1"])
    guarded = GuardedNetwork(resolve=names)
    for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "site.test", "mixed.test", "six.test"):
        with pytest.raises(WorkspaceError, match="private or reserved"):
            await guarded.fetch(f"http://{host}:{server.port}/", limit=100, timeout=10)
    assert server.requests == []


async def test_the_systems_own_name_for_this_machine_is_refused(server: Server) -> None:
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await GuardedNetwork().fetch(f"http://localhost:{server.port}/", limit=100, timeout=10)
    assert server.requests == []


async def test_a_name_that_changes_its_address_after_the_check_gains_nothing(
    server: Server,
) -> None:
    names = Names(site_test=["127.0.0.1"])
    names.answers["site.test"] = [["127.0.0.1"], ["10.0.0.1"]]
    server.pages["/"] = response(b"first")
    guarded = network(server, names)
    url = f"http://site.test:{server.port}/"
    assert (await guarded.fetch(url, limit=100, timeout=10)).text == "first"
    assert names.asked == ["site.test"]  # connected to what was checked, without asking again
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await guarded.fetch(url, limit=100, timeout=10)


async def test_a_name_is_checked_again_when_a_redirect_asks_for_it_again(server: Server) -> None:
    names = Names(site_test=["127.0.0.1"])
    names.answers["site.test"] = [["127.0.0.1"], ["169.254.169.254"]]
    server.pages["/"] = response(b"", status="302 Found", more="Location: /latest/meta-data\r\n")
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await network(server, names).fetch(
            f"http://site.test:{server.port}/", limit=100, timeout=10
        )
    assert len(server.requests) == 1


async def test_the_next_address_is_tried_when_one_takes_no_connection(server: Server) -> None:
    names = Names(site_test=["127.0.0.2", "127.0.0.1"])
    server.pages["/"] = response(b"second")
    guarded = GuardedNetwork(
        resolve=names, allow=[("127.0.0.1", server.port), ("127.0.0.2", server.port)]
    )
    page = await guarded.fetch(f"http://site.test:{server.port}/", limit=100, timeout=10)
    assert page.text == "second"


async def test_an_unknown_name_is_said(server: Server) -> None:
    with pytest.raises(WorkspaceError, match=r"the name nowhere\.test cannot be resolved"):
        await network(server).fetch("http://nowhere.test/", limit=100, timeout=10)


async def test_a_trailing_dot_and_other_alphabets_change_nothing(server: Server) -> None:
    names = Names(**{"site_test": ["127.0.0.1"], "xn--bcher-kva_test": ["127.0.0.1"]})
    server.pages["/"] = response(b"x")
    guarded = network(server, names)
    for host in ("site.test.", "SITE.test", "bücher.test"):
        await guarded.fetch(f"http://{host}:{server.port}/", limit=10, timeout=10)
    assert names.asked == ["site.test", "site.test", "xn--bcher-kva.test"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "site.test",
        "ftp://site.test/",
        "javascript:alert(1)",
        "http:///path",
        "http://exa mple.test/",
        "http://site.test:99999/",
        "http://site.test:0/",
        "http://a\nb/",
        "http://[::1",
        "http://%31%32%37.0.0.1/",
        "http://user@site.test/",
        "http://site.test/" + "x" * 9_000,
    ],
)
async def test_what_is_no_usable_address_is_refused_in_one_line(server: Server, url: str) -> None:
    with pytest.raises(WorkspaceError) as error:
        await network(server).fetch(url, limit=100, timeout=10)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
    assert server.requests == []


async def test_an_error_does_not_repeat_what_may_be_secret_in_an_address(server: Server) -> None:
    with pytest.raises(WorkspaceError) as error:
        await network(server).fetch("ftp://me:pass1@site.test/?token=abc", limit=1, timeout=5)
    assert "pass1" not in str(error.value)
    assert "abc" not in str(error.value)


async def test_proxies_of_the_environment_are_not_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.pages["/"] = response(b"direct")
    assert (await fetch(server, "/")).text == "direct"


class Authority:
    """A certificate authority of this test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        self.certificate = self._sign(self.name, self.key, host=None)

    def client(self) -> ssl.SSLContext:
        pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def server(self, host: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        path = self.folder / f"{host}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + self._sign(name, key, host).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, host: str | None
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        )
        if host is not None:
            names = x509.SubjectAlternativeName([x509.DNSName(host)])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self.key, hashes.SHA256())


@pytest.mark.parametrize("certified", ["site.test", "other.test"])
async def test_a_certificate_is_held_against_the_name_although_the_address_is_pinned(
    tmp_path: Path, certified: str
) -> None:
    authority = Authority(tmp_path)
    server = Server()
    await server.start(authority.server(certified))
    server.pages["/"] = response(b"safe")
    guarded = GuardedNetwork(
        resolve=Names(site_test=["127.0.0.1"]),
        allow=[("127.0.0.1", server.port)],
        tls=authority.client(),
    )
    url = f"https://site.test:{server.port}/"
    try:
        if certified == "site.test":
            assert (await guarded.fetch(url, limit=100, timeout=10)).text == "safe"
        else:
            with pytest.raises(WorkspaceError, match="certificate is not trusted"):
                await guarded.fetch(url, limit=100, timeout=10)
            assert server.requests == []
        assert server.server_names == ["site.test"]
    finally:
        await server.stop()
