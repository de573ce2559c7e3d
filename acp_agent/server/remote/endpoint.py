"""Handle a POST: a message of the client, which opens a connection or belongs to one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec
from msgspec import Raw, Struct

from acp_agent.platform.decoding import decode_json
from acp_agent.server.remote.access import SUBPROTOCOL, AccessPolicy, subprotocols
from acp_agent.server.remote.connections import Connections, FullError
from acp_agent.server.remote.http_messages import (
    CONNECTION_ID,
    SESSION_ID,
    BadRequestError,
    Headers,
    OpenStream,
    Reply,
    Request,
    refusal,
)
from acp_agent.server.remote.settings import Limits
from protocol.jsonrpc import messages
from protocol.transports.streamable_http import StreamableHttpTransport
from protocol.transports.websocket import WebSocketTransport

_JSON: Final = ("content-type", "application/json")
# Methods below `session/` that do not concern a particular session.
_SESSIONLESS_METHODS: Final = frozenset({"session/new", "session/list"})
_ATTACH_METHODS: Final = frozenset({"session/load", "session/resume"})
PATH: Final = "/acp"
_METHODS: Final = ("GET", "POST", "DELETE")
_RETRY_AFTER: Final = ("retry-after", "5")
_PAGE_HEADERS: Final = f"authorization, content-type, {CONNECTION_ID}, {SESSION_ID}"
_STREAM: Final = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),  # otherwise nginx would buffer events
)
_log = logging.getLogger(__name__)


class _SessionParams(Struct):
    session_id: object = msgspec.field(default=None, name="sessionId")


class PostHandler:
    """Answers POST requests; see `Endpoint`.

    Args:
        is_local: returns whether the sender of a request is on this computer.
    """

    def __init__(
        self, connections: Connections, limits: Limits, is_local: Callable[[Request], bool]
    ) -> None:
        self._connections = connections
        self._limits = limits
        self._is_local = is_local

    async def answer(self, request: Request, body: bytes) -> Reply:
        """Answer a POST.

        Raises:
            BadRequestError: a header is repeated.
            FullError: there are too many connections.
        """
        message = messages.parse(body)
        if isinstance(message, messages.Batch):
            return refusal(501, "batches are not supported; send one message per request")
        if isinstance(message, messages.InvalidMessage):
            return refusal(400, message.error.message)
        connection_id = request.header(CONNECTION_ID)
        if connection_id is None:
            if isinstance(message, messages.Request) and message.method == "initialize":
                return await self._initialize(message, body, local=self._is_local(request))
            return refusal(400, f"the header {CONNECTION_ID} is missing")
        open_connection = self._connections.find(connection_id)
        if open_connection is None:
            return refusal(404, f"no connection has this {CONNECTION_ID}")
        _, transport = open_connection
        session = request.header(SESSION_ID)
        if transport.full and isinstance(message, messages.Request):
            reason = "too many messages wait for this client; open its streams and read them"
            return refusal(503, reason, ("retry-after", "1"))
        if isinstance(message, messages.Response):
            refused = _check_response(message, session, transport)
        else:
            refused = _check_message(message, session, transport)
        if refused is not None:
            return refused
        transport.receive(body)
        return Reply(202)

    async def _initialize(self, message: messages.Request, body: bytes, *, local: bool) -> Reply:
        if message.id is None:
            return refusal(400, "initialize needs an id that is a string or a number")
        connection, transport = self._connections.open_http(local=local)
        try:
            async with asyncio.timeout(self._limits.handshake):
                line = await transport.initialize(body, message.raw_id)
        except (TimeoutError, ConnectionError):
            self._connections.end(connection)
            return refusal(503, "the agent did not answer")
        # The RFD also has the ID in the result; the newer schema has no such field.
        return Reply(200, (_JSON, (CONNECTION_ID, connection.id)), line)


def _check_message(
    message: messages.Request | messages.Notification,
    session: str | None,
    transport: StreamableHttpTransport,
) -> Reply | None:
    """Return a refusal unless the session header matches the message."""
    session_id = _read_session_id(message.params)
    needs_session = (
        message.method.startswith("session/") and message.method not in _SESSIONLESS_METHODS
    )
    if session is None and (session_id is not None or needs_session):
        return refusal(400, f"the header {SESSION_ID} is missing")
    if session is not None and session_id is not None and session != session_id:
        return refusal(400, f"the header {SESSION_ID} and the message name different sessions")
    if session is not None:
        if message.method in _ATTACH_METHODS:
            transport.forget_lost_updates(session)
        elif transport.must_reload(session) and isinstance(message, messages.Request):
            reason = "updates were lost while the stream of this session was closed; load it again"
            return refusal(409, reason)
    if isinstance(message, messages.Request):
        transport.expect(message.raw_id, message.method, session)
    return None


def _check_response(
    message: messages.Response, session: str | None, transport: StreamableHttpTransport
) -> Reply | None:
    """Return a refusal unless the session header matches the request being answered."""
    if not isinstance(message.id, int):
        return None  # an unknown ID, which the connection ignores
    raw_id = b"%d" % message.id
    session_of_request = transport.session_of_request(raw_id)
    if session_of_request is not None and session not in {
        session_of_request,
        transport.find_stream(session_of_request),
    }:
        problem = "is missing" if session is None else "names another session than the request"
        return refusal(400, f"the header {SESSION_ID} {problem}")
    transport.response_received(raw_id)
    return None


def _read_session_id(params: Raw) -> str | None:
    try:
        session_id_ = decode_json(params, _SessionParams).session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return session_id_ if isinstance(session_id_, str) else None


class Socket(Protocol):
    """A socket that receives requests."""

    def go_away(self) -> None:
        """Accept no further requests."""


class Endpoint:
    """Answers requests.

    Args:
        knows_session: returns whether a session with this ID exists, wherever it is open.
        cookie: the value of a `Set-Cookie` header. Clients send it with later requests, so that a
            load balancer can route them to this process.
        path: the path of the endpoint, for clients that can only use a fixed path of their own.

    Attributes:
        sockets: the open sockets that use HTTP.
        closing: whether the process is about to end.
    """

    def __init__(
        self,
        *,
        access: AccessPolicy,
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
        self._access = access
        self._connections = connections
        self._knows_session = knows_session
        self._cookie = ("set-cookie", cookie)
        self._posts = PostHandler(connections, limits, access.is_local)

    def screen(self, request: Request, *, upgrade: bool = False) -> Reply | None:
        """Check the head of a request; return a refusal, or None if its body is to be read."""
        try:
            return self._screen(request, upgrade=upgrade)
        except BadRequestError as error:
            return refusal(400, str(error))

    def too_large(self) -> Reply:
        """Return the refusal of a body that is too long."""
        return _too_large(self.limits.message)

    def upgrade(
        self, request: Request, on_end: Callable[[], None]
    ) -> tuple[Headers, WebSocketTransport] | Reply:
        """Open a connection over a WebSocket; return the upgrade's headers and the transport."""
        try:
            local = self._access.is_local(request)
            connection = self._connections.open_websocket(on_end, local=local)
        except FullError as error:
            return refusal(503, str(error), _RETRY_AFTER)
        headers: Headers = ((CONNECTION_ID, connection.id), self._cookie)
        if SUBPROTOCOL in subprotocols(request):
            headers = (*headers, ("sec-websocket-protocol", SUBPROTOCOL))
        assert isinstance(connection.transport, WebSocketTransport)
        return headers, connection.transport

    async def answer(self, request: Request, body: bytes, open_: OpenStream) -> Reply | None:
        """Answer an admitted request; return None if it opened a stream."""
        try:
            reply = await self._answer(request, body, open_)
        except BadRequestError as error:
            reply = refusal(400, str(error))
        except FullError as error:
            reply = refusal(503, str(error), _RETRY_AFTER)
        except Exception:  # noqa: BLE001 - one request's fault must not cost the others
            _log.exception("a request failed")
            reply = refusal(500, "internal error, see the log of the agent")
        return reply if reply is None else reply.with_headers(*self._cors_headers(request))

    def _screen(self, request: Request, *, upgrade: bool) -> Reply | None:
        refused = self._access.check_host_and_origin(request)
        if refused is not None:
            return refused
        if request.path != self._path:
            return refusal(404, f"not found; the endpoint is {self._path}")
        if request.method == "OPTIONS" and request.header("origin") is not None:
            return Reply(
                204,
                (
                    ("access-control-allow-methods", ", ".join(_METHODS)),
                    ("access-control-allow-headers", _PAGE_HEADERS),
                    ("access-control-max-age", "600"),
                    *self._cors_headers(request),
                ),
            )
        refused = self._access.check_token(request, upgrade=upgrade)
        if refused is None and self.closing:
            refused = refusal(503, "the agent is shutting down")
        if refused is None and request.method not in _METHODS:
            refused = refusal(405, "use GET, POST or DELETE", ("allow", ", ".join(_METHODS)))
        if refused is None and not upgrade:
            refused = _check_form(request, self.limits.message)
        return refused if refused is None else refused.with_headers(*self._cors_headers(request))

    async def _answer(self, request: Request, body: bytes, open_: OpenStream) -> Reply | None:
        if request.method == "POST":
            reply = await self._posts.answer(request, body)
            return reply.with_headers(self._cookie) if reply.status == 200 else reply
        connection_id = request.header(CONNECTION_ID)
        if connection_id is None:
            return refusal(400, f"the header {CONNECTION_ID} is missing")
        open_connection = self._connections.find(connection_id)
        if open_connection is None:
            return refusal(404, f"no connection has this {CONNECTION_ID}")
        connection, transport = open_connection
        if request.method == "DELETE":
            self._connections.end(connection)
            return Reply(202)
        session = request.header(SESSION_ID)
        if session is not None and not transport.has_stream(session):
            if transport.stream_count >= self.limits.sessions and not transport.end_unused_stream():
                return refusal(
                    429,
                    f"this connection already has streams for {self.limits.sessions} sessions; "
                    "close one, or start the agent with a higher --max-sessions",
                )
            if not (transport.has_session(session) or await self._knows_session(session)):
                return refusal(404, f"no session has this {SESSION_ID}")
        if transport.disconnected:
            return refusal(404, f"no connection has this {CONNECTION_ID}")
        transport.open_stream(session, open_((*_STREAM, *self._cors_headers(request))))
        return None

    def _cors_headers(self, request: Request) -> Headers:
        """Return the headers that allow the page of an allowed origin to read the response."""
        origins = request.headers.get("origin", ())
        if len(origins) != 1:
            return ()
        return (
            ("access-control-allow-origin", origins[0]),
            ("access-control-allow-credentials", "true"),
            ("access-control-expose-headers", CONNECTION_ID),
            ("vary", "Origin"),
        )


def _check_form(request: Request, limit: int) -> Reply | None:
    """Return a refusal unless method, headers and length are consistent. Raises BadRequestError."""
    for name in (CONNECTION_ID, SESSION_ID, "content-type", "content-length"):
        request.header(name)
    if request.method == "GET":
        accepted = ",".join(request.headers.get("accept", ())).lower()
        if "text/event-stream" not in accepted:
            return refusal(406, "a GET opens an event stream: send Accept: text/event-stream")
    if request.method != "POST":
        return None
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return refusal(415, "send the body as Content-Type: application/json")
    length = request.header("content-length") or "0"
    if not length.isdigit() or int(length) > limit:
        return _too_large(limit)
    return None


def _too_large(limit: int) -> Reply:
    return refusal(413, f"the message is longer than {limit} bytes; see --max-message-size")
