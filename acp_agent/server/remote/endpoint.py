"""The endpoint `/acp`: which request means what, and what each is answered.

Source: the RFD "Streamable HTTP & WebSocket Transport" of the Agent Client Protocol, sections 6 and
"Unified Endpoint Routing".
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from acp_agent.server.remote.connections import Connections, FullError
from acp_agent.server.remote.exchange import (
    CONNECTION_ID,
    SESSION_ID,
    BadRequestError,
    Headers,
    OpenStream,
    Reply,
    Request,
    refusal,
)
from acp_agent.server.remote.guard import SUBPROTOCOL, Guard, subprotocols
from acp_agent.server.remote.limits import Limits
from acp_agent.server.remote.posts import Posts
from protocol.transports.websocket import WebSocketTransport

PATH: Final = "/acp"
_METHODS: Final = ("GET", "POST", "DELETE")
_BUSY: Final = ("retry-after", "5")
_PAGE_HEADERS: Final = f"authorization, content-type, {CONNECTION_ID}, {SESSION_ID}"
_STREAM: Final = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),  # nginx would keep events back
)

_log = logging.getLogger(__name__)


class Socket(Protocol):
    """A socket on which requests come."""

    def go_away(self) -> None:
        """Take no further request."""


class Endpoint:
    """Answers requests.

    Args:
        guard: says who may use it.
        connections: the clients' connections.
        limits: see there.
        knows_session: whether there is a session with this id, wherever it is open.
        cookie: what a client is to send with its next requests, so that whatever spreads requests
            over several processes can lead them here again; the value of a `Set-Cookie`.
        path: where it is; clients that can be told no path have one of their own.

    Attributes:
        sockets: those that are open and carry HTTP.
        closing: whether the process is about to end.
    """

    def __init__(
        self,
        *,
        guard: Guard,
        connections: Connections,
        limits: Limits,
        knows_session: Callable[[str], Awaitable[bool]],
        cookie: str,
        path: str = PATH,
    ) -> None:
        self.limits = limits
        self._path = path
        self.sockets: set[Socket] = set()
        self.closing = False
        self._guard = guard
        self._connections = connections
        self._knows_session = knows_session
        self._cookie = ("set-cookie", cookie)
        self._posts = Posts(connections, limits, guard.is_local)

    def screen(self, request: Request, *, upgrade: bool = False) -> Reply | None:
        """Look at the head of a request: a refusal, or None where its body is to be read."""
        try:
            return self._screen(request, upgrade=upgrade)
        except BadRequestError as error:
            return refusal(400, str(error))

    def too_large(self) -> Reply:
        """The refusal of a body that is too long."""
        return _too_large(self.limits.message)

    def upgrade(
        self, request: Request, on_end: Callable[[], None]
    ) -> tuple[Headers, WebSocketTransport] | Reply:
        """Begin a connection over a WebSocket: the headers of the upgrade, and what takes over."""
        try:
            local = self._guard.is_local(request)
            connection = self._connections.over_websocket(on_end, local=local)
        except FullError as error:
            return refusal(503, str(error), _BUSY)
        headers: Headers = ((CONNECTION_ID, connection.id), self._cookie)
        if SUBPROTOCOL in subprotocols(request):
            headers = (*headers, ("sec-websocket-protocol", SUBPROTOCOL))
        assert isinstance(connection.transport, WebSocketTransport)
        return headers, connection.transport

    async def answer(self, request: Request, body: bytes, open_: OpenStream) -> Reply | None:
        """Answer a request that was let through; None where it got a stream."""
        try:
            reply = await self._answer(request, body, open_)
        except BadRequestError as error:
            reply = refusal(400, str(error))
        except FullError as error:
            reply = refusal(503, str(error), _BUSY)
        except Exception:  # noqa: BLE001 - one request's fault must not cost the others
            _log.exception("a request broke")
            reply = refusal(500, "the agent broke by a fault of its own; its log says how")
        return reply if reply is None else reply.also(*self._shared(request))

    def _screen(self, request: Request, *, upgrade: bool) -> Reply | None:
        refused = self._guard.place(request)
        if refused is not None:
            return refused
        if request.path != self._path:
            return refusal(404, f"there is nothing here; the endpoint is {self._path}")
        if request.method == "OPTIONS" and request.header("origin") is not None:
            return self._preflight(request)
        refused = self._guard.person(request, upgrade=upgrade)
        if refused is None and self.closing:
            refused = refusal(503, "the agent is being ended")
        if refused is None and request.method not in _METHODS:
            refused = refusal(
                405, "GET, POST and DELETE are answered", ("allow", ", ".join(_METHODS))
            )
        if refused is None and not upgrade:
            refused = _unfit(request, self.limits.message)
        return refused if refused is None else refused.also(*self._shared(request))

    async def _answer(self, request: Request, body: bytes, open_: OpenStream) -> Reply | None:
        if request.method == "POST":
            reply = await self._posts.answer(request, body)
            return reply.also(self._cookie) if reply.status == 200 else reply
        connection_id = request.header(CONNECTION_ID)
        if connection_id is None:
            return refusal(400, f"the header {CONNECTION_ID} is missing")
        found = self._connections.find(connection_id)
        if found is None:
            return refusal(404, f"there is no connection with this {CONNECTION_ID}")
        connection, transport = found
        if request.method == "DELETE":
            self._connections.end(connection)
            return Reply(202)
        session = request.header(SESSION_ID)
        if session is not None and not transport.has_mailbox(session):
            if transport.mailbox_count >= self.limits.sessions:
                return refusal(
                    429,
                    f"this connection has streams of {self.limits.sessions} sessions, as many as "
                    "it may; end one, or start the agent with a higher --max-sessions",
                )
            if not (transport.knows(session) or await self._knows_session(session)):
                return refusal(404, f"there is no session with this {SESSION_ID}")
        if transport.gone:
            return refusal(404, f"there is no connection with this {CONNECTION_ID}")
        transport.open_stream(session, open_((*_STREAM, *self._shared(request))))
        return None

    def _preflight(self, request: Request) -> Reply:
        """What a browser asks before it lets a page send a request (Fetch, section 4.8)."""
        return Reply(
            204,
            (
                ("access-control-allow-methods", ", ".join(_METHODS)),
                ("access-control-allow-headers", _PAGE_HEADERS),
                ("access-control-max-age", "600"),
                *self._shared(request),
            ),
        )

    def _shared(self, request: Request) -> Headers:
        """What lets the page of an allowed origin read the answer."""
        origins = request.headers.get("origin", ())
        if len(origins) != 1:
            return ()
        return (
            ("access-control-allow-origin", origins[0]),
            ("access-control-allow-credentials", "true"),
            ("access-control-expose-headers", CONNECTION_ID),
            ("vary", "Origin"),
        )


def _unfit(request: Request, limit: int) -> Reply | None:
    """The refusal of a request whose form is wrong; None where it is right.

    Raises:
        BadRequestError: a header came twice.
    """
    for name in (CONNECTION_ID, SESSION_ID, "content-type", "content-length"):
        request.header(name)
    if request.method == "GET":
        accepted = ",".join(request.headers.get("accept", ())).lower()
        if "text/event-stream" not in accepted:
            return refusal(406, "a GET opens an event stream: accept text/event-stream")
    if request.method != "POST":
        return None
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return refusal(415, "the body of a POST is application/json")
    length = request.header("content-length") or "0"
    if not length.isdigit() or int(length) > limit:
        return _too_large(limit)
    return None


def _too_large(limit: int) -> Reply:
    return refusal(
        413, f"a message may have {limit} bytes; start the agent with a higher --max-message-size"
    )
