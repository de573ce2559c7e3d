"""What a POST brings: a message of the client, which begins a connection or belongs to one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw, Struct

from acp_agent.server.remote.connections import Connections
from acp_agent.server.remote.exchange import CONNECTION_ID, SESSION_ID, Reply, Request, refusal
from acp_agent.server.remote.limits import Limits
from protocol.jsonrpc import messages
from protocol.transports.streamable_http import StreamableHttpTransport

_JSON: Final = ("content-type", "application/json")
# The methods below `session/` that are about no session in particular.
_ABOUT_NONE: Final = frozenset({"session/new", "session/list"})
_ATTACHING: Final = frozenset({"session/load", "session/resume"})


class _Named(Struct):
    session_id: object = msgspec.field(default=None, name="sessionId")


class Posts:
    """Answers POST requests; see `Endpoint`.

    Args:
        connections: the clients' connections.
        limits: see there.
        is_local: whether who sent a request is on this computer.
    """

    def __init__(
        self, connections: Connections, limits: Limits, is_local: Callable[[Request], bool]
    ) -> None:
        self._connections = connections
        self._limits = limits
        self._is_local = is_local

    async def answer(self, request: Request, body: bytes) -> Reply:
        """The answer to a POST.

        Raises:
            BadRequestError: a header came twice.
            FullError: there are too many connections.
        """
        message = messages.parse(body)
        if isinstance(message, messages.Batch):
            return refusal(501, "batches are not taken here; send one message a request")
        if isinstance(message, messages.InvalidMessage):
            return refusal(400, message.error.message)
        connection_id = request.header(CONNECTION_ID)
        if connection_id is None:
            if isinstance(message, messages.Request) and message.method == "initialize":
                return await self._initialize(message, body, local=self._is_local(request))
            return refusal(400, f"the header {CONNECTION_ID} is missing")
        found = self._connections.find(connection_id)
        if found is None:
            return refusal(404, f"there is no connection with this {CONNECTION_ID}")
        _, transport = found
        session = request.header(SESSION_ID)
        if transport.full and isinstance(message, messages.Request):
            reason = "too much of this connection waits to be read; open its streams and read them"
            return refusal(503, reason, ("retry-after", "1"))
        if isinstance(message, messages.Response):
            refused = _misplaced_answer(message, session, transport)
        else:
            refused = _misplaced(message, session, transport)
        if refused is not None:
            return refused
        transport.hand_in(body)
        return Reply(202)

    async def _initialize(self, message: messages.Request, body: bytes, *, local: bool) -> Reply:
        if message.id is None:
            return refusal(400, "initialize needs an id that is a string or a number")
        connection, transport = self._connections.over_http(local=local)
        try:
            async with asyncio.timeout(self._limits.handshake):
                line = await transport.first_answer(body, message.raw_id)
        except (TimeoutError, ConnectionError):
            self._connections.end(connection)
            return refusal(503, "the agent did not answer")
        # The RFD has the id in the result, too; the schema, which is newer, allows no such member.
        return Reply(200, (_JSON, (CONNECTION_ID, connection.id)), line)


def _misplaced(
    message: messages.Request | messages.Notification,
    session: str | None,
    transport: StreamableHttpTransport,
) -> Reply | None:
    """The refusal of a message with the wrong header; None where it is right."""
    named = _session_of(message.params)
    about_one = message.method.startswith("session/") and message.method not in _ABOUT_NONE
    if session is None and (named is not None or about_one):
        return refusal(400, f"the header {SESSION_ID} is missing")
    if session is not None and named is not None and session != named:
        return refusal(400, f"the header {SESSION_ID} and the message name different sessions")
    if session is not None:
        if message.method in _ATTACHING:
            transport.loading(session)
        elif transport.must_load(session) and isinstance(message, messages.Request):
            reason = "updates of this session were lost while its stream was closed; load it again"
            return refusal(409, reason)
    if isinstance(message, messages.Request):
        transport.expect(message.raw_id, message.method, session)
    return None


def _misplaced_answer(
    message: messages.Response, session: str | None, transport: StreamableHttpTransport
) -> Reply | None:
    """The refusal of an answer with another session's header; None where it is right."""
    if not isinstance(message.id, int):
        return None  # never asked for: the connection ignores it
    raw_id = b"%d" % message.id
    asked_in = transport.asked_in(raw_id)
    if asked_in is not None and session not in {asked_in, transport.carrier(asked_in)}:
        what = "is missing" if session is None else "names another session than the request"
        return refusal(400, f"the header {SESSION_ID} {what}")
    transport.answered(raw_id)
    return None


def _session_of(params: Raw) -> str | None:
    try:
        named = msgspec.json.decode(params, type=_Named).session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return named if isinstance(named, str) else None
