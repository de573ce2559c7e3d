"""Requests of one session to the client. They carry the trace of the session's turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, structs

from acp_agent.errors import EditorFailedError, EditorGoneError
from acp_agent.tools.quoting import first_line
from acp_agent.workspace.scrub import scrub
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.messages import InvalidResultError, RpcError
from protocol.jsonrpc.methods import Method

if TYPE_CHECKING:
    from acp_agent.server.trace_context import TraceContext

REASON_LIMIT = 500  # characters of a client's reason

P = TypeVar("P")
R = TypeVar("R")


class SessionRequests:
    """Sends the requests of one session."""

    def __init__(self, connection: Connection, trace: Callable[[], TraceContext | None]) -> None:
        self._connection = connection
        self._trace = trace

    async def request(
        self,
        method: Method[P, R],
        params: P,
        *,
        timeout: float | None = None,
        on_late_result: Callable[[R], None] | None = None,
    ) -> R:
        """Send a request and wait for the response; see `Connection.request`."""
        trace = self._trace()
        if trace is not None and isinstance(params, Struct):
            params = structs.replace(params, meta=trace.meta)
        return await self._connection.request(
            method, params, timeout=timeout, on_late_result=on_late_result
        )


def refusal_reason(error: RpcError, secrets: Iterable[str]) -> str:
    """Return why the client refused a request, as one short line without secrets.

    It includes the detail that libraries add to a general "Internal error".
    """
    data = error.data
    details = (data.get("details") or data.get("reason")) if isinstance(data, dict) else data
    text = error.message
    if isinstance(details, str) and details.strip() and details not in text:
        text = f"{text}: {' '.join(details.split())}" if text else details
    return first_line(scrub(text, secrets), REASON_LIMIT) or f"error {error.code}"


# What sends requests to the client, for a session or outside of any.
Requester = Connection | SessionRequests


async def await_user_answer(pending_request: Awaitable[R]) -> R:
    """Return the answer to a request that asks the user.

    Raises:
        EditorFailedError: the client could not ask, or what it answered has the wrong shape.
        EditorGoneError: the client left before it answered. The caller must not take this for a
            refusal.
    """
    try:
        return await pending_request
    except RpcError as error:
        answered = isinstance(error, InvalidResultError)
        raise EditorFailedError(str(error), answered=answered) from None
    except ConnectionError:
        raise EditorGoneError("the editor left before the user answered") from None
