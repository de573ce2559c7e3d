"""`acp-agent mcp serve`: the agent as an MCP server, on stdin and stdout or over HTTP."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from acp_agent import __version__
from acp_agent.cli.listen import TOKEN_VARIABLE, check_token
from acp_agent.cli.localization import translate
from acp_agent.cli.mcp.agent_tools import AgentTools
from acp_agent.errors import InvalidInputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_CLOSING_SECONDS = 10  # for requests that run when the server ends


def serve(options: argparse.Namespace) -> int:
    """Serve MCP clients until the end of the input, or a signal; returns the exit status.

    Raises:
        InvalidInputError: a folder, the port or the token cannot be used.
    """
    folders = [Path(os.path.realpath(one.expanduser())) for one in options.folder or [options.cwd]]
    for folder in folders:
        if not folder.is_dir():
            raise InvalidInputError(f"{folder} is not a directory")
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what clients send
    token = os.environ.pop(TOKEN_VARIABLE, None)  # no command of the agent's may see it
    server = build(AgentTools(folders, options.model))
    if options.http is None:
        asyncio.run(server.run_stdio_async())
        return 0
    made = secrets.token_urlsafe(32) if token is None else None
    if token is not None:
        check_token(token)
    return asyncio.run(_serve_http(server, options.http, token or str(made), shown=made))


def build(tools: AgentTools) -> MCPServer:
    """Return the server with its tools."""
    server = MCPServer("acp-agent", title="acp-agent", version=__version__, log_level="CRITICAL")
    for tool in (tools.run_prompt, tools.list_sessions, tools.read_session):
        server.add_tool(tool)
    return server


async def _serve_http(server: MCPServer, port: int, token: str, *, shown: str | None) -> int:
    import uvicorn  # noqa: PLC0415 - only over HTTP

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # before anybody is told the address
    except OSError as error:
        listener.close()
        raise InvalidInputError(f"--http {port}: {error.strerror}") from None
    port = listener.getsockname()[1]
    names = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
    app = server.streamable_http_app(
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        )
    )
    sys.stderr.write(
        f"acp-agent: {translate('listening on {url}', url=f'http://127.0.0.1:{port}/mcp')}\n"
    )
    if shown is not None:
        said = translate("access token for this run: {token}", token=shown)
        sys.stderr.write(f"acp-agent: {said}\n")
    sys.stderr.flush()
    settings = uvicorn.Config(
        Guarded(app, token),
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    await uvicorn.Server(settings).serve(sockets=[listener])
    return 0


class Guarded:
    """Passes on the requests that show the token.

    Args:
        app: what answers them.
        token: what they show, as `Authorization: Bearer …`.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan" or self._knows(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http":
            await _refuse(send)

    def _knows(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and secrets.compare_digest(given[0], self._expected)


async def _refuse(send: Callable[[Any], Awaitable[None]]) -> None:
    headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
