"""Serves any number of clients on a socket, until a signal ends the process."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from acp_agent.config.paths import Paths
from acp_agent.config.secrets import Secrets
from acp_agent.errors import AcpAgentError, InvalidInputError, SessionNotFoundError
from acp_agent.ids import SessionId
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.core import Core
from acp_agent.server.remote.acceptor import SocketAcceptor
from acp_agent.server.remote.access import AccessPolicy
from acp_agent.server.remote.connections import Connections
from acp_agent.server.remote.endpoint import PATH, Endpoint
from acp_agent.server.remote.settings import Address, Limits
from acp_agent.server.stdio import on_signals, surface_for
from protocol.transports.streamable_http import StreamableHttpTransport

CLOSE_SECONDS = 4.0  # what ending turns, processes, the journal and the connections may take
GRACE_SECONDS = 0.5  # of a lost connection: its turns go on, and its prompts are not waited for
TURN_SECONDS = 2.5  # of that, what turns get to say how they ended

_log = logging.getLogger(__name__)


class ListenSettings(NamedTuple):
    """How to listen.

    Attributes:
        address: where; port 0 is a free one.
        token: what clients have to show; None: nothing.
        hosts: further names by which clients may reach us.
        origins: the origins whose pages may use us.
        tls: the certificate's and the key's files; None: no TLS.
        secure: whether clients reach us by TLS, ours or a proxy's.
        proxied: whether clients come through a proxy.
        limits: how much of everything there may be.
        path: where the endpoint is.
        binary: whether clients may write in binary frames.
    """

    address: Address
    token: str | None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    tls: tuple[str, str] | None = None
    secure: bool = False
    proxied: bool = False
    limits: Limits = Limits()
    path: str = PATH
    binary: bool = False


def serve_listen(
    listening: ListenSettings,
    *,
    paths: Paths,
    secrets: Secrets,
    environ: Mapping[str, str],
    model_flag: str | None,
    trace: Callable[[Literal["in", "out"], bytes], None] | None,
    announce: Callable[[str], None],
) -> None:
    """Serve clients until a signal ends the process.

    The process is to end when this returns; see `serve_stdio`.

    Args:
        model_flag: the model named on the command line.
        trace: sees every message.
        announce: is given the URL once clients can connect.

    Raises:
        InvalidInputError: the address cannot be listened on, or the certificate not be used.
    """
    core = Core(paths, secrets=secrets, environ=environ, model_flag=model_flag)
    asyncio.new_event_loop().run_until_complete(_serve(listening, core, trace, announce))


async def _serve(
    listening: ListenSettings,
    core: Core,
    trace: Callable[[Literal["in", "out"], bytes], None] | None,
    announce: Callable[[str], None],
) -> None:
    limits = listening.limits
    connections = Connections(
        lambda transport, *, local: ClientConnection(
            transport,
            core,
            surface_for,
            trace=trace,
            local=local,
            max_sessions=limits.sessions,
            # The client has the stream of the parent open.
            on_child=(
                transport.share_stream
                if isinstance(transport, StreamableHttpTransport)
                else lambda *_: None
            ),
            grace=GRACE_SECONDS,
        ),
        limits,
        binary=listening.binary,
    )
    endpoint = Endpoint(
        access=AccessPolicy(
            listening.address,
            token=listening.token,
            hosts=listening.hosts,
            origins=listening.origins,
            proxied=listening.proxied,
        ),
        connections=connections,
        limits=limits,
        knows_session=lambda session: _session_exists(core, session),
        cookie=_affinity_cookie(listening.path, secure=listening.secure),
        path=listening.path,
    )
    server = await _listen(listening, SocketAcceptor(endpoint))
    host, port = server.sockets[0].getsockname()[:2]
    scheme = "https" if listening.tls is not None else "http"
    display_host = listening.address.host if listening.address.host == "localhost" else host
    ended = asyncio.Event()
    on_signals(asyncio.get_running_loop(), ended.set)
    watch = asyncio.create_task(connections.watch())
    url = f"{scheme}://{Address(display_host, port)}{listening.path}"
    _log.info("listening on %s", url)
    announce(url)
    await ended.wait()
    watch.cancel()
    endpoint.closing = True
    server.close()
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            connections.stop_draining()
            closing = asyncio.create_task(core.close())
            # Turns say that they were cancelled, and how their calls ended.
            await asyncio.wait({closing}, timeout=TURN_SECONDS)
            await connections.close()
            await closing
            for socket in list(endpoint.sockets):
                socket.go_away()
    except TimeoutError:
        _log.warning("not everything could be ended within %.0f seconds", CLOSE_SECONDS)


async def _listen(listening: ListenSettings, acceptor: SocketAcceptor) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    context = _context(*listening.tls) if listening.tls is not None else None
    try:
        return await loop.create_server(
            acceptor.protocol,
            listening.address.host,
            listening.address.port,
            ssl=context,
            ssl_handshake_timeout=listening.limits.head if context is not None else None,
        )
    except OSError as error:
        # The resolver's error numbers are not the system's.
        number = None if isinstance(error, socket.gaierror) else error.errno
        raise _listen_error(listening.address, number) from None


def _listen_error(address: Address, number: int | None) -> InvalidInputError:
    """Return why an address cannot be listened on, by the system's number, and what to do.

    None: asyncio or the resolver found nothing to listen on.
    """
    match number:
        case errno.EADDRINUSE:
            return InvalidInputError(
                f"--listen: {address} is already in use; choose another port (0 picks a free one)"
            )
        case errno.EACCES:
            return InvalidInputError(
                f"--listen: no permission to listen on {address}; choose a port above 1023"
            )
        case errno.EADDRNOTAVAIL | None:
            return InvalidInputError(
                f"--listen: {address.host} is not an address of this computer; choose another "
                "one, such as 127.0.0.1"
            )
        case _:
            return InvalidInputError(
                f"--listen: cannot listen on {address} ({os.strerror(number)})"
            )


def _context(certificate: str, key: str) -> ssl.SSLContext:
    """TLS 1.2 or newer with HTTP/2 offered first (RFC 9113, section 3.2)."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise InvalidInputError(
            f"--tls-cert {certificate}, --tls-key {key}: they cannot be used together ({reason})"
        ) from None
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


async def _session_exists(core: Core, session: str) -> bool:
    """Return whether a session exists. A broken store is reported when a session is opened."""
    try:
        await (await core.services()).store.get(SessionId(session))
    except SessionNotFoundError:
        return False
    except AcpAgentError:
        return True
    return True


def _affinity_cookie(path: str, *, secure: bool) -> str:
    """Return a cookie that lets a proxy route a client to this process (RFD, section 5)."""
    value = f"acp-affinity={secrets.token_hex(8)}; Path={path}; HttpOnly; SameSite=Strict"
    return f"{value}; Secure" if secure else value
