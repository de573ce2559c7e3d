"""The filtering proxy of the sandbox, spoken to as programs speak to proxies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from acp_agent.sandbox.host_rules import HostRules
from acp_agent.sandbox.proxy import FilteringProxy
from tests.support.waiting import until


class World:
    """A proxy, a web server behind it, and what both saw."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "proxy"
        self.resolved: list[str] = []
        self.refused: list[tuple[str, int]] = []
        self.requests: list[bytes] = []
        self.port = 0
        self.proxy: FilteringProxy

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.resolved.append(host)
        if host == "unknown.test":
            raise OSError(-2, "Name or service not known")
        if host == "hanging.test":
            await asyncio.Event().wait()
        return {"inside.test": ["10.0.0.1"], "mixed.test": ["127.0.0.1", "10.0.0.1"]}.get(
            host, ["127.0.0.1"]
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A server that answers each request with its body, and keeps its head."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head)
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                body = await reader.readexactly(int(length or 0))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % (len(body) + 1))
                writer.write(b"Connection: x-hop\r\nX-Hop: 1\r\nX-End: 1\r\n\r\n!" + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def ask(self, data: bytes) -> bytes:
        """What the proxy answers until it closes the connection."""
        reader, writer = await asyncio.open_unix_connection(str(self.socket))
        writer.write(data.replace(b"PORT", str(self.port).encode()))
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return answer


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    server = await asyncio.start_server(world.serve, "127.0.0.1", 0)
    world.port = server.sockets[0].getsockname()[1]
    names = ["allowed.test", "inside.test", "mixed.test", "unknown.test", "hanging.test"]
    local = [f"127.0.0.1:{world.port}", f"localhost:{world.port}"]
    world.proxy = FilteringProxy(
        HostRules([*names, *local], ["denied.test"]),
        resolve=world.resolve,
        on_refused=lambda host, port: world.refused.append((host, port)),
    )
    await world.proxy.start(world.socket)
    yield world
    await world.proxy.aclose()
    server.close()
    assert not world.socket.exists()


def connect(target: str) -> bytes:
    """The head of a request for a tunnel."""
    return f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def get(target: str) -> bytes:
    """A request for a page."""
    return f"GET {target} HTTP/1.1\r\nHost: allowed.test\r\n\r\n".encode()


def socks(host: bytes, port: int, *, command: int = 1, address_type: int = 3) -> bytes:
    """What a client of SOCKS 5 sends; `host` is packed as its type says."""
    name = bytes([len(host)]) + host if address_type == 3 else host
    request = bytes([5, command, 0, address_type]) + name + port.to_bytes(2, "big")
    return b"\x05\x02\x00\x02" + request


HEAD = b"GET /x HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.parametrize("host", ["allowed.test", "localhost", "127.0.0.1"])
async def test_a_tunnel_to_an_allowed_host_carries_bytes_both_ways(world: World, host: str) -> None:
    # The first bytes for the host may come together with the request.
    answer = await world.ask(connect(f"{host}:PORT") + HEAD + b"ab")
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head == b"HTTP/1.1 200 Connection established"
    assert rest.startswith(b"HTTP/1.1 200 OK")
    assert rest.endswith(b"!ab")
    assert world.requests == [HEAD]
    assert world.resolved == ([] if host == "127.0.0.1" else [host])  # once
    assert not world.refused


@pytest.mark.parametrize(
    ("host", "address_type"), [(b"allowed.test", 3), (bytes([127, 0, 0, 1]), 1)]
)
async def test_socks_leads_to_an_allowed_host(world: World, host: bytes, address_type: int) -> None:
    answer = await world.ask(socks(host, world.port, address_type=address_type) + HEAD + b"ab")
    assert answer.startswith(b"\x05\x00" + b"\x05\x00\x00\x01" + bytes(6) + b"HTTP/1.1 200 OK")
    assert answer.endswith(b"!ab")


async def test_a_plain_request_is_passed_on_alone_and_without_what_is_meant_for_the_proxy(
    world: World,
) -> None:
    first = (
        b"POST http://allowed.test:PORT//p?q=1#f HTTP/1.1\r\nHost: other.test\r\nX-Kept: 1\r\n"
        b"Proxy-Authorization: Basic eA==\r\nConnection: keep-alive, X-Dropped\r\nX-Dropped: 1\r\n"
        b"Content-Length: 3\r\n\r\nabc"
    )
    answer = await world.ask(first + get("http://allowed.test:PORT/second"))
    (head,) = world.requests
    assert head.decode().splitlines() == [
        "POST //p?q=1 HTTP/1.1",
        f"Host: allowed.test:{world.port}",
        "Connection: close",
        "X-Kept: 1",
        "Content-Length: 3",
        "",
    ]
    assert answer.endswith(b"!abc")
    assert b"X-End: 1" in answer
    assert b"X-Hop" not in answer


NOT_ALLOWED = (
    "HTTP/1.1 403 the sandbox refuses {}: it is not in allowed_domains of [sandbox.network]"
)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (connect("other.test:443"), NOT_ALLOWED.format("other.test:443")),
        (connect("denied.test:443"), "it is in denied_domains"),
        (get("http://other.test/"), 'ask the user to add "other.test" there'),
        (get("http://other.test/").replace(b"\n\r\n", b"\nContent-Length: 9\r\n\r\n12"), " 403 "),
        (connect("inside.test:443"), "10.0.0.1, which is a private or reserved address"),
        (connect("mixed.test:PORT"), "it leads to 10.0.0.1"),
        (connect("allowed.test:1"), "it leads to 127.0.0.1"),
        (connect("93.184.215.14:443"), NOT_ALLOWED.format("93.184.215.14:443")),
        (connect("2130706433:PORT"), "an address in an unusual form"),
        (connect("unknown.test:443"), " 502 cannot resolve unknown.test: Name or service not"),
        (connect("allowed.test"), " 400 "),
        (connect("u@allowed.test:PORT"), " 400 "),
        (connect("allowed.test:PORT/x"), " 400 "),
        (get("/x"), " 400 "),
        (get("https://allowed.test/"), " 400 "),
        (get("http://allowed.test\\@other.test/"), " 400 "),
        (get("http://allowed.test:PORT/" + "x" * 70_000), " 400 "),
        (b"nonsense\r\n\r\n", " 400 "),
        (b"\x16\x03\x01", ""),
        (socks(b"other.test", 443), "\x05\x00\x05\x02"),
        (socks(b"other.test\0.allowed.test", 443), "\x05\x00\x05\x02"),
        (socks(bytes([127, 0, 0, 1]), 1, address_type=1), "\x05\x00\x05\x02"),
        (socks(b"unknown.test", 443), "\x05\x00\x05\x04"),
        (socks(b"allowed.test", 443, command=3), "\x05\x00\x05\x07"),
        (b"\x05\x01\x02", "\x05\xff"),
    ],
    ids=lambda value: ascii(value[:40]),
)
async def test_forbidden_and_invalid_requests_are_refused_with_a_reason(
    world: World, said: bytes, answer: str
) -> None:
    assert answer in (await world.ask(said)).decode("latin-1")
    assert world.requests == []


async def test_each_refused_host_is_reported_once(world: World) -> None:
    for _ in range(2):
        await world.ask(get("http://other.test/"))
        await world.ask(socks(b"inside.test", 22))
    assert world.refused == [("other.test", 80), ("inside.test", 22)]


async def test_a_silent_connection_is_closed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("proxy._FIRST_BYTE", "proxy_http._REQUEST", "proxy._REQUEST"):
        monkeypatch.setattr(f"acp_agent.sandbox.{limit}_LIMIT", 0.01)
    for limit in ("IDLE", "_RESOLVE", "_FLUSH"):
        monkeypatch.setattr(f"acp_agent.sandbox.outbound.{limit}_LIMIT", 0.01)
    for said, answer in {
        b"": b"",
        b"CONN": b"",
        b"\x05\x01": b"",
        connect(f"allowed.test:{world.port}"): b" 200 ",
        connect("hanging.test:443"): b"no answer in time",
    }.items():
        reader, writer = await asyncio.open_unix_connection(str(world.socket))
        writer.write(said)
        assert answer in await asyncio.wait_for(reader.read(), 60), said
        writer.close()


async def test_connections_are_bounded_and_end_with_the_proxy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.sandbox.proxy.MAX_CONNECTIONS", 2)
    before = asyncio.all_tasks()
    clients = [await asyncio.open_unix_connection(str(world.socket)) for _ in range(2)]
    for reader, writer in clients:
        writer.write(connect(f"allowed.test:{world.port}"))
        await reader.readuntil(b"\r\n\r\n")
    assert await world.ask(b"") == b""  # one too many
    await world.proxy.aclose()
    for reader, writer in clients:
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
    await until(lambda: not asyncio.all_tasks() - before)
    with pytest.raises(OSError, match="No such file"):
        await asyncio.open_unix_connection(str(world.socket))
