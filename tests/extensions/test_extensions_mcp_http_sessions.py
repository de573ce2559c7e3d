"""Servers behind HTTP that lose sessions, speak other transports or versions, or refuse calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent.extensions.mcp import server as server_module
from acp_agent.extensions.mcp.oauth.logins import Login, LoginStore
from tests.extensions.direct_mcp_session import connected, count
from tests.extensions.mcp_session import OpenWithServers, call, notices, results
from tests.extensions.mcp_web import web_server
from tests.extensions.raw_mcp_server import (
    TOOL,
    Headers,
    Json,
    RawServer,
    reply,
    send_event,
    start_events,
)
from tests.support.model_server import ModelServer, answer


class TypescriptSessions(RawServer):
    """Refuses unknown sessions as the examples of the TypeScript SDK do."""

    async def refuse_session(self, send: Any) -> None:
        error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
        await reply(send, 400, {"jsonrpc": "2.0", "id": None, "error": error})


@pytest.mark.parametrize("kind", [RawServer, TypescriptSessions])
async def test_a_call_in_a_lost_session_is_repeated_in_a_new_one(
    with_servers: OpenWithServers, model_server: ModelServer, kind: type[RawServer]
) -> None:
    async with web_server(made=kind()) as web:
        assert isinstance(web, RawServer)
        running, session = await with_servers(web.named())
        model_server.add(answer(call("count", server="web")), answer("Done."))
        await running.prompt(session, "go")
        web.sessions.clear()
        model_server.add(answer(call("count", server="web")), answer("Done."))
        await running.prompt(session, "go on")
        assert results(model_server) == ["call 1", "call 2"]
        assert notices(running, session) == []


class Busy(RawServer):
    """Refuses a call, and asks to wait."""

    def __init__(self, status: int, wait: str, refusals: int) -> None:
        super().__init__()
        self.status, self.wait, self.refusals = status, wait, refusals

    async def call(self, message: Json, send: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            await reply(send, self.status, headers={"retry-after": self.wait})
        else:
            await super().call(message, send)


@pytest.mark.parametrize(
    ("web", "result"),
    [
        (Busy(429, "0", 2), "call 1"),
        (Busy(503, "Wed, 21 Oct 2015 07:28:00 GMT", 1), "call 1"),
        (Busy(503, "0", 9), "HTTP 503"),
        (Busy(429, "86400", 1), "HTTP 429"),
        (Busy(429, "soon", 1), "HTTP 429"),
    ],
)
async def test_a_request_to_a_busy_server_is_repeated_after_the_delay_it_asks_for(
    web: Busy, result: str
) -> None:
    async with web_server(made=web), connected(web) as (server, _):
        assert result in await count(server)
    assert [request[":rpc"] for request in web.requests].count("tools/call") <= 4


class Forgetful(RawServer):
    """Forgets each session before its first call."""

    async def call(self, message: Json, send: Any) -> None:
        del message
        self.sessions.clear()
        await self.refuse_session(send)


async def test_a_server_that_loses_every_session_is_called_twice_at_most() -> None:
    async with web_server(made=Forgetful()) as web:
        assert isinstance(web, RawServer)
        async with connected(web) as (server, _):
            assert "ended the session twice" in await count(server)
        assert [request[":rpc"] for request in web.requests].count("tools/call") == 2


class Older(RawServer):
    """Speaks only the transport of version 2024-11-05."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status
        self.refuses = False
        self._responses: asyncio.Queue[Json] = asyncio.Queue()

    async def handle(
        self, method: str, path: str, headers: Headers, message: Json, send: Any
    ) -> None:
        del headers
        if method == "GET":
            await start_events(send)
            await send_event(send, "/messages", event="endpoint")
            while True:
                await send_event(send, json.dumps(await self._responses.get()))
        elif path != "/messages":
            await reply(send, self.status)
        elif self.refuses:
            await reply(send, 500)
        else:
            if "id" in message:
                self._responses.put_nowait(self.result(message))
            await reply(send, 202)


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_server_of_the_older_transport_is_recognised_without_being_named_so(
    status: int,
) -> None:
    async with web_server(made=Older(status)) as web:
        assert isinstance(web, RawServer)
        async with connected(web) as (server, session):
            assert [await count(server), await count(server)] == ["call 1", "call 2"]
            assert session.notices == []


async def test_a_call_that_the_older_transport_refuses_fails_at_once() -> None:
    async with web_server(made=Older(404)) as web:
        assert isinstance(web, Older)
        async with connected(web) as (server, _):
            web.refuses = True
            async with asyncio.timeout(60):
                assert "HTTP 500" in await count(server)


class Newer(RawServer):
    """Knows no version before 2026-07-28; refuses requests without its headers."""

    def __init__(self, *, body: bool) -> None:
        super().__init__()
        self.body = body

    async def handle(
        self, method: str, path: str, headers: Headers, message: Json, send: Any
    ) -> None:
        del path
        if method != "POST":
            await reply(send, 405)
            return
        if "mcp-method" not in headers:
            error = {"code": -32020, "message": "Mcp-Method is missing"}
            body: Json = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            await reply(send, 400, body if self.body else None)
            return
        common = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        match message["method"]:
            case "server/discover":
                result: Json = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            case "tools/list":
                result = {"tools": [TOOL]}
            case _:
                result = self.result(message)["result"]
        await reply(send, 200, {"jsonrpc": "2.0", "id": message["id"], "result": common | result})


@pytest.mark.parametrize("body", [True, False])
async def test_a_server_that_refuses_the_older_handshake_gets_the_newer_one(body: bool) -> None:
    async with web_server(made=Newer(body=body)) as web:
        assert isinstance(web, RawServer)
        async with connected(web) as (server, _):
            assert await count(server) == "call 1"


class Refusing(RawServer):
    """Refuses every call with a status."""

    def __init__(self, status: int, error: str = "", challenge: str = "") -> None:
        super().__init__()
        self.status = status
        self.error = error
        self.challenge = challenge

    async def call(self, message: Json, send: Any) -> None:
        error = {"code": -32602, "message": self.error}
        body: Json = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        headers = {"www-authenticate": self.challenge} if self.challenge else None
        await reply(send, self.status, body if self.error else None, headers)


@pytest.mark.parametrize(
    ("web", "expected"),
    [
        (Refusing(400, "there is no such city"), "there is no such city (HTTP 400)"),
        (Refusing(502), "it answered with HTTP 502"),
        (Refusing(401), "log in with acp-agent mcp login"),
        (
            Refusing(403, "", 'Bearer error="insufficient_scope", scope="files:write"'),
            "it wants the permission files:write (HTTP 403): log in again",
        ),
    ],
)
async def test_a_refused_call_says_why_and_the_connection_stays(
    web: Refusing, expected: str
) -> None:
    async with web_server(made=web), connected(web) as (server, session):
        assert expected in await count(server)
        assert expected in await count(server)
        assert session.notices == []


async def test_an_interrupted_answer_is_resumed_where_it_was_interrupted() -> None:
    class Interrupted(RawServer):
        message: Json

        async def handle(
            self, method: str, path: str, headers: Headers, message: Json, send: Any
        ) -> None:
            if method == "GET" and headers.get("last-event-id") == "first":
                await start_events(send)
                await send_event(send, json.dumps(self.result(self.message)), id="second")
                await send({"type": "http.response.body", "body": b""})
                return
            await super().handle(method, path, headers, message, send)

        async def call(self, message: Json, send: Any) -> None:
            self.message = message
            await start_events(send)
            await send_event(send, "", id="first", retry="10")
            await send({"type": "http.response.body", "body": b""})

    web = Interrupted()
    async with web_server(made=web), connected(web) as (server, _):
        assert await count(server) == "call 1"
        assert [request[":rpc"] for request in web.requests].count("tools/call") == 1


async def test_a_failed_server_is_retried_silently_at_a_later_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "_RETRY_SECONDS", 0.0)
    web = RawServer()
    async with web_server(made=web):
        pass  # only to choose the port
    async with connected(web) as (server, session):
        assert "could not be connected" in session.notices[0]
        server.reconnect()
        await server.settled()
        assert len(session.notices) == 1
        async with web_server(made=web, port=web.port):
            server.reconnect()
            await server.settled()
            assert await count(server) == "call 1"
        assert len(session.notices) == 1


async def test_a_new_login_is_used_without_a_restart(tmp_path: Path) -> None:
    class Guarded(RawServer):
        accepted = "Bearer first"

        async def handle(
            self, method: str, path: str, headers: Headers, message: Json, send: Any
        ) -> None:
            if headers.get("authorization") == self.accepted:
                await super().handle(method, path, headers, message, send)
            else:
                await reply(send, 401)

    def save(token: str) -> None:
        tokens = {"access_token": token, "token_type": "Bearer"}
        LoginStore(logins).set(web.url, Login(tokens=tokens))

    logins = tmp_path / "logins.json"
    web = Guarded()
    async with web_server(made=web):
        save("first")
        async with connected(web, logins) as (server, session):
            assert await count(server) == "call 1"
            web.accepted = "Bearer second"
            assert "HTTP 401" in await count(server)
            server.reconnect()
            assert "HTTP 401" in await count(server)  # there is no new login yet
            save("second")
            server.reconnect()
            await server.settled()
            assert await count(server) == "call 2"
            assert session.notices == []


async def test_scopes_that_a_call_lacks_are_saved_for_the_next_login(tmp_path: Path) -> None:
    logins = tmp_path / "logins.json"
    web = Refusing(403, "", 'Bearer error="insufficient_scope", scope="files:write"')
    async with web_server(made=web):
        tokens = {"access_token": "first", "token_type": "Bearer"}
        LoginStore(logins).set(web.url, Login(tokens=tokens))
        async with connected(web, logins) as (server, _):
            assert "files:write" in await count(server)
        login = LoginStore(logins).get(web.url)
        assert login is not None
        assert (login.scope, login.tokens) == ("files:write", tokens)
