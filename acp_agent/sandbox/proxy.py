"""The proxy through which confined commands reach the hosts that the user allowed, and no others.

A command has no network of its own. Its requests come over a unix socket (`relay` carries them
there) as HTTP with CONNECT, as plain HTTP with a whole address, or as SOCKS 5; the first byte tells
which. What passes through a tunnel is not looked at: whoever allows a host trusts everything that
is served from it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from acp_agent.config.public_addresses import Resolve
from acp_agent.sandbox.host_rules import HostRules
from acp_agent.sandbox.outbound import Outbound, Stream
from acp_agent.sandbox.proxy_http import serve_http
from acp_agent.sandbox.proxy_socks import SOCKS_VERSION, serve_socks

MAX_CONNECTIONS = 256  # at the same time; further ones are closed
_FIRST_BYTE_LIMIT = 60.0  # seconds; some clients connect before they have something to ask
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
        """Listens nowhere yet.

        Args:
            rules: which hosts may be reached.
            resolve: gives a host's addresses.
            on_refused: gets each host and port that was refused, once, and a hundred at most.
        """
        self._outbound = Outbound(rules, resolve=resolve, on_refused=on_refused)
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._path: Path | None = None

    @property
    def rules(self) -> HostRules:
        """The rules for connections from now on."""
        return self._outbound.rules

    @rules.setter
    def rules(self, rules: HostRules) -> None:
        self._outbound.rules = rules

    async def start(self, path: Path) -> None:
        """Listen on a unix socket that only this user may use.

        Raises:
            OSError: the path exists, or is longer than the system takes (about 100 bytes).
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
        except OSError:  # the client left, or said nothing: TimeoutError is one
            pass
        finally:
            client.writer.transport.abort()


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # before anybody can connect: it does not listen yet
    except BaseException:
        listener.close()
        raise
    return listener


def proxy_environment(port: int) -> dict[str, str]:
    """The variables by which programs find the proxy on a port of 127.0.0.1.

    ALL_PROXY names the proxy by HTTP, too: several HTTP clients of Python fail at once if it names
    SOCKS and they lack a package for it.
    """
    url = f"http://127.0.0.1:{port}"
    local = "localhost,.localhost,127.0.0.1,::1"  # the command's own servers
    variables = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "ALL_PROXY": url, "NO_PROXY": local}
    both = variables | {name.lower(): value for name, value in variables.items()}
    return both | {"NODE_USE_ENV_PROXY": "1"}  # for `fetch` of Node.js
