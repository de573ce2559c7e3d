"""The proxy through which confined commands reach the hosts that the user allowed, and no others.

A command has no network access. `relay` passes its requests to the proxy over a unix socket, as
HTTP CONNECT, as plain HTTP with an absolute URL, or as SOCKS 5 (RFC 1928); the first byte tells
which. The content of a tunnel is not inspected: allowing a host means trusting everything that it
serves.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path

from acp_agent.config.network_addresses import Resolve
from acp_agent.errors import HostRefusedError
from acp_agent.sandbox.host_rules import HostRules
from acp_agent.sandbox.outbound import Outbound, Stream, exchange
from acp_agent.sandbox.proxy_http import serve_http

MAX_CONNECTIONS = 256  # at the same time; further ones are closed
_FIRST_BYTE_LIMIT = 60.0  # seconds; some clients connect before they have a request
_CLOSE_LIMIT = 5.0  # seconds
_BACKLOG = 128


class FilteringProxy:
    """A proxy for the commands of one sandbox."""

    def __init__(
        self,
        rules: HostRules,
        *,
        resolve: Resolve,
        on_refused: Callable[[str, int], None] = lambda _host, _port: None,
    ) -> None:
        """Create a proxy that does not listen yet.

        Args:
            resolve: returns a host's addresses.
            on_refused: called once with each refused host and port, at most a hundred times.
        """
        self._outbound = Outbound(rules, resolve=resolve, on_refused=on_refused)
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._path: Path | None = None

    async def start(self, path: Path) -> None:
        """Listen on a unix socket that only this user can use.

        Raises:
            OSError: the path exists, or is too long for the system (about 100 bytes).
        """
        listener = _bind(path)
        self._path = path
        try:
            self._server = await asyncio.start_unix_server(
                self._accept, sock=listener, backlog=_BACKLOG
            )
        except BaseException:
            listener.close()
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Stop listening and drop all connections. May be called twice."""
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(set(self._serving), timeout=_CLOSE_LIMIT)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(Stream(reader, writer)))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, client: Stream) -> None:
        try:
            async with asyncio.timeout(_FIRST_BYTE_LIMIT):
                first = await client.reader.read(1)
            if first == SOCKS_VERSION:
                await serve_socks(client, self._outbound)
            elif first.isalpha():
                await serve_http(first, client, self._outbound)
            await client.close()
        except OSError:  # the client disconnected or sent nothing (TimeoutError)
            pass
        finally:
            client.writer.transport.abort()


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # before it listens, so that nobody can connect earlier
    except BaseException:
        listener.close()
        raise
    return listener


def proxy_environment(port: int) -> dict[str, str]:
    """Return the environment variables that name the proxy on a port of 127.0.0.1.

    ALL_PROXY uses HTTP as well: several Python HTTP clients fail if it names SOCKS and the package
    for that is missing.
    """
    url = f"http://127.0.0.1:{port}"
    local = "localhost,.localhost,127.0.0.1,::1"  # the command's own servers
    variables = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "ALL_PROXY": url, "NO_PROXY": local}
    both = variables | {name.lower(): value for name, value in variables.items()}
    return both | {"NODE_USE_ENV_PROXY": "1"}  # for `fetch` of Node.js


SOCKS_VERSION = b"\x05"
_REQUEST_LIMIT = 10.0  # seconds
_NO_AUTHENTICATION, _NO_ACCEPTABLE_METHOD = 0x00, 0xFF
_CONNECT = 0x01
_IPV4, _NAME, _IPV6 = 0x01, 0x03, 0x04
_SUCCEEDED, _NOT_ALLOWED, _UNREACHABLE = 0x00, 0x02, 0x04
_UNKNOWN_COMMAND, _UNKNOWN_ADDRESS_TYPE = 0x07, 0x08


async def serve_socks(client: Stream, outbound: Outbound) -> None:
    """Serve a client whose first byte was `SOCKS_VERSION`.

    Raises:
        OSError: the client disconnected or timed out.
    """
    try:
        async with asyncio.timeout(_REQUEST_LIMIT):
            target = await _read_request(client)
    except asyncio.IncompleteReadError:
        return
    if target is None:
        return
    try:
        server = await outbound.open(*target)
    except HostRefusedError:
        _reply(client, _NOT_ALLOWED)
        return
    except ConnectionError:
        _reply(client, _UNREACHABLE)
        return
    try:
        _reply(client, _SUCCEEDED)
        await exchange(client, server)
    finally:
        server.writer.transport.abort()


async def _read_request(client: Stream) -> tuple[str, int] | None:
    """Return the requested host and port, or None if the request was refused."""
    reader = client.reader
    (count,) = await reader.readexactly(1)
    if _NO_AUTHENTICATION not in await reader.readexactly(count):
        client.writer.write(SOCKS_VERSION + bytes([_NO_ACCEPTABLE_METHOD]))
        return None
    client.writer.write(SOCKS_VERSION + bytes([_NO_AUTHENTICATION]))
    version, command, _, address_type = await reader.readexactly(4)
    if version != SOCKS_VERSION[0] or command != _CONNECT:
        _reply(client, _UNKNOWN_COMMAND)
        return None
    if address_type == _NAME:
        (length,) = await reader.readexactly(1)
        host = (await reader.readexactly(length)).decode("latin-1")
    elif address_type in {_IPV4, _IPV6}:
        packed = await reader.readexactly(4 if address_type == _IPV4 else 16)
        host = str(ipaddress.ip_address(packed))
    else:
        _reply(client, _UNKNOWN_ADDRESS_TYPE)
        return None
    return host, int.from_bytes(await reader.readexactly(2), "big")


def _reply(client: Stream, code: int) -> None:
    client.writer.write(SOCKS_VERSION + bytes([code, 0, _IPV4]) + bytes(6))
