"""MCP servers behind HTTP on 127.0.0.1, made with the `mcp` package's own server.

async with web_server() as server:
    {"type": "http", "url": server.url, ...}; server.requests
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any, Literal

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

KEY = "x-service-key"

Kind = Literal["http", "json", "sse"]  # streamable HTTP with events, with plain answers; the older


class WebServer:
    """A running server. `requests` are the headers of every request that came."""

    def __init__(self, kind: Kind, key: str | None) -> None:
        self.kind = kind
        self.key = key
        self.port = 0
        self.requests: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'sse' if self.kind == 'sse' else 'mcp'}"

    def named(self, **headers: str) -> dict[str, Any]:
        """The server as a client names it."""
        return {
            "type": "sse" if self.kind == "sse" else "http",
            "name": "web",
            "url": self.url,
            "headers": [{"name": name, "value": value} for name, value in headers.items()],
        }

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.requests.append(headers | {":method": scope["method"]})
            if self.key is not None and headers.get(KEY) != self.key:
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b"no"})
                return
        await self._inner(scope, receive, send)

    def build(self) -> None:
        server = MCPServer("web")

        @server.tool()
        def add(a: int, b: int) -> int:
            """Adds two numbers."""
            return a + b

        @server.tool()
        async def steps(ctx: Context[Any]) -> str:
            """Reports progress."""
            await ctx.report_progress(1, 4, "a quarter")
            await asyncio.sleep(0.2)
            return "done"

        @server.tool()
        def huge() -> str:
            """Gives more than anybody takes."""
            return "x" * 40_000_000

        if self.kind == "sse":
            self._inner = server.sse_app()
        else:
            self._inner = server.streamable_http_app(json_response=self.kind == "json")


@contextlib.asynccontextmanager
async def web_server(
    kind: Kind = "http",
    *,
    key: str | None = None,
    port: int = 0,
    made: WebServer | None = None,
) -> AsyncIterator[WebServer]:
    """Serve until the block is left; with `key`, only who sends it in the header `KEY`.

    `made` is a server to use in the place of a new one.
    """
    web = made or WebServer(kind, key)
    web.build()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    web.port = listener.getsockname()[1]
    settings = uvicorn.Config(
        web.app, interface="asgi3", log_level="critical", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(settings)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(60):
            while not server.started:
                await asyncio.sleep(0.01)
        yield web
    finally:
        server.should_exit = True
        await asyncio.wait([serving], timeout=5)
        listener.close()
