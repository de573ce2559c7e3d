"""Who is let in: the token, the Host, the Origin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets
from websockets.asyncio.client import connect
from websockets.typing import Origin

from tests.server.remote.conftest import StartListening
from tests.server.remote.http_messages import BOTH, INITIALIZE, JSON, reason
from tests.server.remote.remote_agent import DEMO, RemoteAgent
from tests.server.remote.remote_clients import http, websocket_client

PAGE = "https://app.example"


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteAgent]:
    """An agent that a page of one other origin may use, by another name of its own."""
    flags = ("--allow-origin", PAGE, "--allow-host", "agent.example")
    with RemoteAgent(tmp_path_factory.mktemp("home"), *DEMO, *flags) as agent:
        yield agent


async def initialize(agent: RemoteAgent, version: int = 2, **headers: Any) -> httpx2.Response:
    """`initialize` with these headers, and no token but what they bring."""
    request_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    options: dict[str, Any] = {"http1": version == 1, "http2": version == 2}
    async with httpx2.AsyncClient(**options, trust_env=False, verify=False) as client:
        return await client.post(agent.url, content=INITIALIZE, headers=JSON | request_headers)


async def refused(agent: RemoteAgent, **options: Any) -> int:
    """The status with which a WebSocket was refused."""
    with pytest.raises(websockets.InvalidStatus) as error:
        async with connect(options.pop("url", agent.websocket_url), **options):
            pass
    return error.value.response.status_code


@BOTH
async def test_without_the_token_nothing_is_answered(remote: RemoteAgent, version: int) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {remote.token}x"},
        {"Authorization": f"Basic {remote.token}"},
        {"Authorization": remote.token},
        {"Authorization": b"Bearer \xff"},
        {"Cookie": f"token={remote.token}"},
    ):
        response = await initialize(remote, version, **headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert remote.token not in response.text
        assert "acp-connection-id" not in response.headers
    assert (await initialize(remote, version, Authorization=f"bearer {remote.token}")).is_success


async def test_a_get_and_a_delete_need_the_token_too(remote: RemoteAgent) -> None:
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        events = {"Accept": "text/event-stream", "Acp-Connection-Id": "any"}
        assert (await client.get(remote.url, headers=events)).status_code == 401
        assert (await client.delete(remote.url, headers=events)).status_code == 401


async def test_over_http_a_token_in_the_address_does_not_count(remote: RemoteAgent) -> None:
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        url = f"{remote.url}?access_token={remote.token}"
        assert (await client.post(url, content=INITIALIZE, headers=JSON)).status_code == 401


async def test_a_websocket_is_accepted_with_the_token_as_header_subprotocol_or_parameter(
    remote: RemoteAgent,
) -> None:
    async with connect(remote.websocket_url, additional_headers=remote.authorization) as socket:
        assert socket.subprotocol is None
    offered: Any = ["acp", f"acp.bearer.{remote.token}"]
    async with connect(remote.websocket_url, subprotocols=offered) as socket:
        assert socket.subprotocol == "acp"
        assert socket.response is not None
        assert remote.token not in str(socket.response.headers)
    async with connect(f"{remote.websocket_url}?access_token={remote.token}"):
        pass


async def test_a_websocket_without_the_token_is_refused_401(remote: RemoteAgent) -> None:
    wrong: Any = ["acp", "acp.bearer.wrong"]
    twice = f"{remote.websocket_url}?access_token={remote.token}&access_token=x"
    assert await refused(remote) == 401
    assert await refused(remote, subprotocols=wrong) == 401
    assert await refused(remote, url=f"{remote.websocket_url}?access_token=wrong") == 401
    assert await refused(remote, url=twice) == 401
    assert await refused(remote, url=f"{remote.websocket_url}?" + "a&" * 500) == 401
    header = {"Authorization": "Bearer wrong"}
    right: Any = ["acp", f"acp.bearer.{remote.token}"]
    assert await refused(remote, additional_headers=header, subprotocols=right) == 401


@BOTH
@pytest.mark.parametrize(
    "host",
    ["attacker.example", "attacker.example:80", "127.0.0.1.attacker.example", "", "10.0.0.1"],
)
async def test_a_request_with_a_foreign_host_is_refused(
    remote: RemoteAgent, version: int, host: str
) -> None:
    response = await initialize(remote, version, Host=host, **remote.authorization)
    assert response.status_code in {400, 421}
    if response.content:
        assert "Host" in reason(response)


@BOTH
@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9", "agent.localhost:9", "127.0.0.1:1234", "[::1]:80"]
)
async def test_the_names_of_this_computer_are_answered_to(
    remote: RemoteAgent, version: int, host: str
) -> None:
    assert (await initialize(remote, version, Host=host, **remote.authorization)).is_success


async def test_a_websocket_with_a_foreign_name_is_refused_421(remote: RemoteAgent) -> None:
    url = f"ws://attacker.example:{remote.port}/acp"
    target: Any = {"host": "127.0.0.1", "port": remote.port}
    status = await refused(remote, url=url, additional_headers=remote.authorization, **target)
    assert status == 421


@BOTH
@pytest.mark.parametrize(
    "origin", [PAGE, "null", "http://localhost:3000", "http://127.0.0.1", "http://[", ""]
)
async def test_a_page_of_a_foreign_origin_is_refused_even_with_the_token(
    remote: RemoteAgent, version: int, origin: str
) -> None:
    response = await initialize(remote, version, Origin=origin, **remote.authorization)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    assert "--allow-origin" in reason(response)
    headers = remote.authorization | {"Origin": origin}
    assert await refused(remote, additional_headers=headers) == 403


@BOTH
async def test_a_page_of_an_allowed_origin_may_use_it(lenient: RemoteAgent, version: int) -> None:
    response = await initialize(lenient, version, Origin=PAGE, **lenient.authorization)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["access-control-expose-headers"] == "acp-connection-id"
    assert (await initialize(lenient, version, Origin=PAGE)).status_code == 401
    denied = await initialize(lenient, version, Origin=PAGE + ".evil", **lenient.authorization)
    assert denied.status_code == 403
    page = Origin(PAGE)
    async with connect(
        lenient.websocket_url, origin=page, additional_headers=lenient.authorization
    ):
        pass


@BOTH
async def test_a_browser_may_ask_for_an_allowed_origin_before_it_sends(
    lenient: RemoteAgent, version: int
) -> None:
    preflight = {"Access-Control-Request-Method": "POST"}
    options: dict[str, Any] = {"http1": version == 1, "http2": version == 2}
    async with httpx2.AsyncClient(**options, trust_env=False, verify=False) as client:
        allowed = await client.options(lenient.url, headers=preflight | {"Origin": PAGE})
        foreign = await client.options(lenient.url, headers=preflight | {"Origin": "https://evil"})
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == PAGE
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    assert "acp-session-id" in allowed.headers["access-control-allow-headers"]
    assert foreign.status_code == 403


async def test_an_allowed_host_is_answered_to(lenient: RemoteAgent) -> None:
    for host in ("agent.example", "Agent.Example:8443"):
        assert (await initialize(lenient, 2, Host=host, **lenient.authorization)).is_success


async def test_a_token_that_was_made_is_printed_and_one_that_was_given_is_not(
    listening: StartListening, home: Path
) -> None:
    generated = listening(*DEMO, token=None)
    generated.token = generated.line_with("access token for this run: ").split()[-1]
    assert len(generated.token) >= 32
    async with websocket_client(generated) as client:
        await client.initialize()
    configured = listening(*DEMO)
    assert (
        await initialize(configured, Authorization="Bearer wrong-0123456789")
    ).status_code == 401
    async with connect(f"{configured.websocket_url}?access_token={configured.token}"):
        pass
    configured.stop()
    generated.stop()
    assert configured.token not in configured.stderr
    stored_bytes = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert configured.token.encode() not in stored_bytes
    assert generated.token.encode() not in stored_bytes
    assert b"wrong-0123456789" not in stored_bytes


async def test_a_token_comes_from_a_file_too(listening: StartListening, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("the-token-of-the-file\n")
    agent = listening(*DEMO, "--token-file", str(file), token=None)
    assert (await initialize(agent)).status_code == 401
    agent.token = "the-token-of-the-file"
    assert (await initialize(agent, 2, **agent.authorization)).is_success


async def test_without_a_token_this_computer_has_access_but_no_page(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, "--no-token", token=None)
    assert (await initialize(agent)).is_success
    assert (await initialize(agent, Origin=PAGE)).status_code == 403
    assert (await initialize(agent, Host="attacker.example")).status_code == 421
    async with connect(agent.websocket_url):
        pass


async def test_programs_of_the_agent_do_not_see_the_token(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO)
    async with websocket_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        await client.prompt(session, "$ env > variables.txt")
    assert "HOME=" in (project / "variables.txt").read_text()
    assert agent.token not in (project / "variables.txt").read_text()


async def test_http_is_accepted(remote: RemoteAgent) -> None:
    async with http(remote) as client:
        assert (await client.post(remote.url, content=INITIALIZE, headers=JSON)).is_success
