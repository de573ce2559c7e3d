"""TLS: a certificate of a test authority, HTTP/2 by ALPN, and what is no TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect

from tests.server.remote.conftest import StartListening
from tests.server.remote.http_messages import INITIALIZE, JSON
from tests.server.remote.remote_agent import DEMO, RemoteAgent
from tests.support.web_site import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def secure(listening: StartListening, authority: Authority, tmp_path: Path) -> RemoteAgent:
    """An agent with a certificate for localhost."""
    authority.server("localhost")
    pem = str(tmp_path / "localhost.pem")
    return listening(
        *DEMO, "--tls-cert", pem, "--tls-key", pem, "--header-timeout", "2", listen="localhost:0"
    )


@pytest.mark.parametrize("version", [1, 2])
async def test_http_is_served_over_tls_and_http2_is_agreed_on(
    secure: RemoteAgent, authority: Authority, version: int
) -> None:
    assert secure.url.startswith("https://localhost:")
    async with httpx2.AsyncClient(
        verify=authority.client(), http2=version == 2, headers=secure.authorization
    ) as client:
        response = await client.post(secure.url, content=INITIALIZE, headers=JSON)
    assert response.status_code == 200
    assert response.http_version == ("HTTP/2" if version == 2 else "HTTP/1.1")
    assert "Secure" in response.headers["set-cookie"]


async def test_a_websocket_is_served_over_tls(secure: RemoteAgent, authority: Authority) -> None:
    async with connect(
        secure.websocket_url, ssl=authority.client(), additional_headers=secure.authorization
    ) as client:
        await client.send(INITIALIZE.decode())
        assert '"result"' in str(await client.recv())


def test_a_connection_without_tls_is_closed(secure: RemoteAgent) -> None:
    for data in (b"GET /acp HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\xff" * 5000, b""):
        with socket.create_connection(("localhost", secure.port), timeout=60) as sock:
            sock.sendall(data)
            with contextlib.suppress(ConnectionError):
                while sock.recv(4096):
                    pass
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(("localhost", secure.port), timeout=60) as sock,
        context.wrap_socket(sock) as tls,
    ):
        assert tls.version() == "TLSv1.2"


async def test_others_may_reach_it_by_tls(
    listening: StartListening, authority: Authority, tmp_path: Path
) -> None:
    authority.server("localhost")
    pem = str(tmp_path / "localhost.pem")
    agent = listening(*DEMO, "--tls-cert", pem, "--tls-key", pem, listen="0.0.0.0:0")
    url = f"https://localhost:{agent.port}/acp"
    async with httpx2.AsyncClient(verify=authority.client()) as client:
        assert (await client.post(url, content=INITIALIZE, headers=JSON)).status_code == 401
        response = await client.post(url, content=INITIALIZE, headers=JSON | agent.authorization)
        assert response.status_code == 200


async def test_behind_a_proxy_the_name_that_it_passes_on_has_to_be_allowed(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, "--behind-proxy", "--allow-host", "agent.example")
    async with httpx2.AsyncClient(headers=agent.authorization, verify=False) as client:
        public = JSON | {"Host": "agent.example"}
        response = await client.post(agent.url, content=INITIALIZE, headers=public)
        assert response.status_code == 200
        assert "Secure" in response.headers["set-cookie"]
        headers_of_other_host = JSON | {"Host": "other.example"}
        assert (
            await client.post(agent.url, content=INITIALIZE, headers=headers_of_other_host)
        ).status_code == 421
