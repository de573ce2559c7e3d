"""A server that a test connects to itself, without an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types

from acp_agent.content import JsonObject
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import ToolError
from acp_agent.extensions.mcp.config import HttpServer, Launched, SavedLogins, ServerOptions
from acp_agent.extensions.mcp.server import McpServer, ServerSettings
from acp_agent.platform.watchdog import Watchdog
from acp_agent.tools.mcp.results import tool_outcome
from acp_agent.tools.mcp_tool import call_server
from tests.extensions.raw_mcp_server import TOOL, RawServer

NO_LOGINS = Path("/nonexistent/logins.json")


class Session:
    """What a server needs of its session; `notices` are what the user was told."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def changed(self) -> None:
        """Nothing is cached."""

    def roots(self) -> Sequence[Path]:
        return ()

    def trace(self) -> JsonObject:
        return {}

    async def tell(self, title: str, description: str = "") -> None:
        self.notices.append(f"{title} {description}")

    async def ask_form(self, form: Form) -> Response | None:
        del form
        return None

    async def ask_page(self, page: Page) -> Response | None:
        del page
        return None

    async def sample(self, params: types.CreateMessageRequestParams) -> types.ErrorData:
        raise AssertionError(params)

    def page_done(self, visit: str) -> None:
        """Nobody was sent to a page."""

    async def refused(self, reason: str) -> None:
        """Nobody was asked."""


async def no_program(
    argv: object, environ: Mapping[str, str], cwd: str, options: ServerOptions
) -> Launched:
    raise AssertionError(argv)


@asynccontextmanager
async def connected(
    web: RawServer, logins: Path = NO_LOGINS
) -> AsyncIterator[tuple[McpServer, Session]]:
    """A connection to a server, once it is known whether it can be used."""
    session = Session()
    watch = Watchdog("MCP_TEST=none.")
    settings = ServerSettings(
        cwd=Path("/"),
        environ={},
        watch=watch,
        connect=10.0,
        restart_delay=0.01,
        clean=str,
        launch=no_program,
        logins=SavedLogins(logins, lambda values: None),
    )
    config = HttpServer(name="raw", url=web.url)
    server = McpServer(config, "raw", setting=settings, owner=session, asker=session)
    try:
        async with asyncio.timeout(60):
            await server.settled()
        yield server, session
    finally:
        await server.aclose()
        await watch.aclose()


async def count(server: McpServer) -> str:
    """Call the tool; return its text, or the error that the model reads."""

    async def ignore(progress: float, total: float | None, message: str | None) -> None:
        del progress, total, message

    tool = types.Tool.model_validate(server.offer.tools[0] if server.offer else TOOL)
    try:
        result = await call_server(
            server, lambda: server.client.call_tool(tool, {}, ignore), seconds=10.0
        )
    except ToolError as error:
        return str(error)
    return tool_outcome(result).text
