"""Serve programs on this computer over HTTP, on 127.0.0.1, with an access token."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from acp_agent.cli.listen import TOKEN_VARIABLE, check_token
from acp_agent.cli.localization import translate
from acp_agent.errors import InvalidInputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_CLOSING_SECONDS = 10  # for running requests to finish at shutdown


def access_token() -> tuple[str, str | None]:
    """Return the clients' access token, and the same again if it was generated for this run.

    The environment variable with the token is removed, so that no command of the agent sees it.

    Raises:
        InvalidInputError: it is not a valid token.
    """
    token = os.environ.pop(TOKEN_VARIABLE, None)
    if token is None:
        new_token = secrets.token_urlsafe(32)
        return new_token, new_token
    check_token(token)
    return token, None


def local_listener(port: int, option: str) -> socket.socket:
    """Return a listening socket, before its address is announced.

    Args:
        port: the port; 0 for any free one.
        option: the option that set the port, for the error message.

    Raises:
        InvalidInputError: the port is not available.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidInputError(f"{option} {port}: {error.strerror}") from None
    return listener


async def serve_local(
    app: ASGIApp, listener: socket.socket, path: str, *, new_token: str | None
) -> None:
    """Serve until a signal arrives.

    Args:
        listener: from `local_listener`.
        path: the path of the address that is shown to the user.
        new_token: the token, if it is to be shown to the user.
    """
    import uvicorn  # noqa: PLC0415 - only over HTTP

    url = f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
    lines = [translate("listening on {url}", url=url)]
    if new_token is not None:
        lines.append(translate("access token for this run: {token}", token=new_token))
    sys.stderr.write("".join(f"acp-agent: {line}\n" for line in lines))
    sys.stderr.flush()
    settings = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    await uvicorn.Server(settings).serve(sockets=[listener])


class TokenRequired:
    """Passes on requests with the right token.

    Args:
        token: the token that requests send as `Authorization: Bearer …`.
        public: paths that need no token.
    """

    def __init__(self, app: ASGIApp, token: str, public: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan" or self._is_authorized(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http":
            await _refuse(send)

    def _is_authorized(self, scope: Scope) -> bool:
        tokens = [value for name, value in scope["headers"] if name == b"authorization"]
        if not tokens and scope["path"] in self._public:
            return True
        return len(tokens) == 1 and secrets.compare_digest(tokens[0], self._expected)


async def _refuse(send: Callable[[Any], Awaitable[None]]) -> None:
    headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
