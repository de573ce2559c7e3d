"""The login page is on the agent's own computer: it is offered to who can open it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import connect

from acp_agent.server.remote.access import AccessPolicy
from acp_agent.server.remote.http_messages import Request
from acp_agent.server.remote.settings import Address
from tests.server.remote.conftest import StartListening
from tests.server.remote.http_messages import BOTH, JSON
from tests.server.remote.remote_agent import DEMO, RemoteAgent
from tests.server.remote.remote_clients import http, websocket_client

Json = dict[str, Any]

INITIALIZE: Json = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": 1, "clientCapabilities": {"elicitation": {"url": {}}}},
}


@pytest.fixture(scope="module")
def reachable_by_name(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteAgent]:
    """An agent that has another name, by which a proxy's clients reach it."""
    flags = ("--allow-host", "agent.example")
    with RemoteAgent(tmp_path_factory.mktemp("home"), *DEMO, *flags) as agent:
        yield agent


async def offered(agent: RemoteAgent, version: int = 2, **headers: str) -> list[str]:
    """The ids of the logins that a client is offered over HTTP."""
    request_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    async with http(agent, version=version) as client:
        answer = await client.post(
            agent.url, content=json.dumps(INITIALIZE), headers=JSON | request_headers
        )
    return [method["id"] for method in answer.json()["result"]["authMethods"]]


@BOTH
async def test_a_client_on_this_computer_is_offered_the_login_page(
    reachable_by_name: RemoteAgent, version: int
) -> None:
    assert "login-page" in await offered(reachable_by_name, version)


async def test_a_websocket_client_is_offered_the_login_page(reachable_by_name: RemoteAgent) -> None:
    async with connect(
        reachable_by_name.websocket_url, additional_headers=reachable_by_name.authorization
    ) as socket:
        await socket.send(json.dumps(INITIALIZE))
        answer = json.loads(await socket.recv())
    assert "login-page" in [method["id"] for method in answer["result"]["authMethods"]]


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "agent.example"),
        ("Forwarded", "for=192.0.2.43"),
        ("X-Forwarded-For", "192.0.2.43"),
        ("X-Real-IP", "192.0.2.43"),
        ("Via", "1.1 proxy.example"),
    ],
)
async def test_one_who_came_through_a_proxy_is_offered_the_other_logins_alone(
    reachable_by_name: RemoteAgent, version: int, name: str, value: str
) -> None:
    methods = await offered(reachable_by_name, version, **{name: value})
    assert methods
    assert "login-page" not in methods


async def test_behind_a_configured_proxy_the_page_is_neither_offered_nor_linked(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, "--behind-proxy")
    assert "login-page" not in await offered(agent)
    async with websocket_client(agent) as client:
        await client.request("initialize", INITIALIZE["params"])
        answer = await client.answer(client.post("authenticate", {"methodId": "login-page"}))
        assert answer["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.0.2.7", False),
        ("", False),
    ],
)
def test_a_client_at_another_address_is_elsewhere(peer: str, local: bool) -> None:
    guard = AccessPolicy(Address("127.0.0.1", 1), token=None)
    request = Request("POST", "/acp", "", {"host": ("localhost:1",)}, "1.1", peer)
    assert guard.is_local(request) is local
