"""Requests and notifications that a server sends.

Source: Model Context Protocol, Elicitation, Sampling, Roots, Logging. In version 2026-07-28 the
requests arrive within the answer to a call; the package passes them to the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import mcp_types as types
import msgspec
from mcp.client.session import ClientRequestContext, IncomingMessage
from pydantic import FileUrl

from acp_agent.config.network_addresses import is_loopback
from acp_agent.content import printable_line
from acp_agent.extensions.mcp.call_timeouts import CallTimeouts
from acp_agent.extensions.mcp.config import HttpServer, ServerConfig
from acp_agent.extensions.mcp.elicitation import Asker, answer_elicitation

LOG_LEVEL: types.LoggingLevel = "info"  # the least that a server is asked to report
_MAX_LOG_TEXT = 500  # characters of a message of the server's log


class Host(Protocol):
    """What a connection needs of its server's session."""

    def roots(self) -> Sequence[Path]:
        """Return the session's folders."""

    def list_changed(self) -> None:
        """Called when the server's tools, prompts or resources have changed."""

    def resource_changed(self, uri: str) -> None:
        """Called when a resource that is followed has changed."""

    def log(self, level: str, text: str) -> None:
        """Record a message of the server's log."""


class ServerMessages:
    """Answers a server's requests, and passes its notifications on.

    Args:
        config: the server.
        asker: asks the user on behalf of the server.
        host: is notified.
        timeouts: the time limits of calls, which do not run while the user is asked.
        is_busy: returns whether the server processes a request of ours. Without one, a question
            would be unexpected for the user.
    """

    def __init__(
        self,
        config: ServerConfig,
        asker: Asker,
        host: Host,
        timeouts: CallTimeouts,
        is_busy: Callable[[], bool],
    ) -> None:
        self._config = config
        self._asker = asker
        self._host = host
        self._timeouts = timeouts
        self._is_busy = is_busy

    async def receive(self, message: IncomingMessage) -> None:
        """Handle a notification."""
        match message:
            case (
                types.ToolListChangedNotification()
                | types.PromptListChangedNotification()
                | types.ResourceListChangedNotification()
            ):
                self._host.list_changed()
            case types.ResourceUpdatedNotification():
                self._host.resource_changed(message.params.uri)
            case types.ElicitCompleteNotification():
                self._asker.page_done(message.params.elicitation_id)
            case _:
                pass

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Handle a message of the server's log."""
        data = params.data if isinstance(params.data, str) else _json(params.data)
        text = f"{params.logger}: {data}" if params.logger else data
        self._host.log(params.level, printable_line(text, _MAX_LOG_TEXT))

    async def answer_elicitation(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Return the user's answer to a question of the server."""
        del context
        if not self._is_busy():
            return types.ElicitResult(action="decline")
        with self._timeouts.paused():
            return await answer_elicitation(params, self._asker)

    async def answer_sampling(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Return the answer of a model to a request of the server."""
        del context
        if not self._is_busy():
            return refusal("no request to this server is running")
        with self._timeouts.paused():
            return await self._asker.sample(params)

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Return the session's folders; none to a server on another computer."""
        del context
        folders = self._host.roots() if _is_local(self._config) else ()
        return types.ListRootsResult(
            roots=[
                types.Root(uri=FileUrl(folder.as_uri()), name=folder.name or str(folder))
                for folder in folders
            ]
        )


def refusal(reason: str) -> types.ErrorData:
    """Return the error for a request of a server that is refused."""
    return types.ErrorData(code=types.INVALID_REQUEST, message=reason)


def _is_local(config: ServerConfig) -> bool:
    return not isinstance(config, HttpServer) or is_loopback(urlsplit(config.url).hostname or "")


def _json(data: Any) -> str:  # JSON, of any kind
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, ValueError, RecursionError):
        return "?"
