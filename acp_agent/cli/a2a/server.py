"""The A2A server: its agent cards, its tasks on disk, and its methods over HTTP.

It supports versions 1.0 and 0.3 of the protocol, as JSON-RPC
(https://a2a-protocol.org/latest/specification/).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from acp_agent import __version__
from acp_agent.cli.a2a.executor import IMAGES, PromptExecutor
from acp_agent.cli.serving.local_http import (
    TokenRequired,
    access_token,
    local_listener,
    serve_local,
)
from acp_agent.config.paths import find_paths
from acp_agent.errors import InvalidInputError
from acp_agent.platform.posix import locked

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/a2a"
_MAX_BODY_BYTES = 16 * 1024 * 1024  # largest request
_LOCK_SECONDS = 0.5  # for the previous server to exit


def serve(options: argparse.Namespace) -> int:
    """Serve A2A clients until a signal arrives; return the exit status.

    Raises:
        InvalidInputError: the port or the token is invalid, or another server already serves the
            folders.
    """
    folders = [folder.resolve() for folder in options.folder or [Path()]]
    for name in ("a2a", "sqlalchemy", "sse_starlette"):  # they log what clients send
        logging.getLogger(name).setLevel(logging.CRITICAL)
    token, new_token = access_token()
    # Each set of folders has its own tasks, which other servers do not show.
    folders_id = hashlib.sha256("\n".join(sorted(map(str, folders))).encode()).hexdigest()[:16]
    tasks = find_paths(os.environ).data_dir / "a2a" / f"{folders_id}.sqlite"
    try:
        with locked(tasks, _LOCK_SECONDS):
            tasks.touch(mode=0o600)
            listener = local_listener(options.port, "--port")
            asyncio.run(_serve(folders, options.model, tasks, listener, token, new_token=new_token))
    except TimeoutError:
        raise InvalidInputError(
            f"another server offers {', '.join(map(str, folders))} already; stop it first"
        ) from None
    return 0


async def _serve(
    folders: Sequence[Path],
    model: str | None,
    tasks: Path,
    listener: socket.socket,
    token: str,
    *,
    new_token: str | None,
) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tasks}")
    store = DatabaseTaskStore(engine)
    executor = PromptExecutor(folders, model, store)
    app = make_app(store, executor, listener.getsockname()[1])

    try:
        await store.initialize()
        await executor.end_lost_tasks()
        protected_app = TokenRequired(app, token, frozenset({AGENT_CARD_WELL_KNOWN_PATH}))
        await serve_local(protected_app, listener, PATH, new_token=new_token)
    finally:
        await executor.aclose()
        await engine.dispose()


def make_app(store: DatabaseTaskStore, executor: PromptExecutor, port: int) -> ASGIApp:
    """Return the application that answers clients, without authentication."""
    card = agent_card(port)
    handler = DefaultRequestHandler(
        agent_executor=executor, task_store=store, agent_card=card, extended_agent_card=card
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await executor.aclose()
        await handler.aclose()

    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, PATH, enable_v0_3_compat=True),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"]),
            Middleware(BodyLimit),
        ],
        lifespan=lifespan,
    )


def agent_card(port: int) -> AgentCard:
    """Return the agent's description for clients."""
    interfaces = [
        AgentInterface(
            url=f"http://127.0.0.1:{port}{PATH}",
            protocol_binding="JSONRPC",
            protocol_version=version,
        )
        for version in ("1.0", "0.3")
    ]
    bearer = HTTPAuthSecurityScheme(scheme="Bearer", description="The token the server prints.")
    return AgentCard(
        name="acp-agent",
        description="A coding agent: it reads, changes and runs the code of a folder.",
        version=__version__,
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        security_schemes={"token": SecurityScheme(http_auth_security_scheme=bearer)},
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=["text/plain", "application/json", *IMAGES],
        default_output_modes=["text/markdown"],
        skills=[
            AgentSkill(
                id="code",
                name="Work on code",
                description="Answers questions about the code of a folder, edits files, and runs "
                "commands. It asks before it changes anything: the task then waits for input.",
                tags=["code", "files", "shell"],
                examples=["Fix the failing test", "Explain how a request is handled"],
            )
        ],
    )


class BodyLimit:
    """Rejects requests that are too large."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a whole request, and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client has disconnected
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > _MAX_BODY_BYTES:
                headers = [(b"content-length", b"0"), (b"connection", b"close")]
                await send({"type": "http.response.start", "status": 413, "headers": headers})
                await send({"type": "http.response.body", "body": b""})
                return
        buffered: Message | None = {"type": "http.request", "body": bytes(body)}

        async def receive_buffered() -> Message:
            nonlocal buffered
            request, buffered = buffered, None
            return await receive() if request is None else request

        await self._app(scope, receive_buffered, send)
