"""What `acp-agent serve --listen` refuses to begin with, and how it says so."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import websockets

from tests.server.remote.conftest import StartListening
from tests.server.remote.remote_agent import DEMO, ROOT, RemoteAgent
from tests.server.remote.remote_clients import websocket_client
from tests.support.agent_process import environment
from tests.support.ordinary_user import POWERLESS, may_inspect
from tests.support.warm_parent import shared_parent


def refused(home: Path, *words: str, token: str | None = None) -> str:
    """The one line with which it refuses to begin."""
    environ = {} if token is None else {"ACP_AGENT_LISTEN_TOKEN": token}
    env = environment(home, environ | {"PYTHONPATH": str(ROOT)})
    done = shared_parent().run(["serve", *words], cwd=home, env=env)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("acp-agent: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:8080"])
def test_an_address_that_others_reach_needs_tls_or_a_proxy(home: Path, address: str) -> None:
    message = refused(home, "--listen", address)
    assert "--tls-cert" in message
    assert "--behind-proxy" in message
    assert "127.0.0.1" in message


def test_without_a_token_only_this_computer_may_reach_it(home: Path) -> None:
    assert "--no-token" in refused(home, "--listen", "0.0.0.0:0", "--no-token", "--behind-proxy")
    assert "--no-token" in refused(home, "--listen", "127.0.0.1:0", "--no-token", "--behind-proxy")


@pytest.mark.parametrize(
    "address",
    ["", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "::1:80", "example.com:80"],
)
def test_an_invalid_address_is_reported_by_name(home: Path, address: str) -> None:
    assert "--listen" in refused(home, f"--listen={address}")


@pytest.mark.parametrize("path", ["", "message", "/a?b", "/a b", "/ü"])
def test_an_invalid_path_is_reported_by_name(home: Path, path: str) -> None:
    assert "--path" in refused(home, "--listen", "127.0.0.1:0", f"--path={path}")


def test_it_listens_although_its_output_goes_to_a_file_and_its_messages_do_not(
    home: Path, tmp_path: Path
) -> None:
    words = ["serve", "--listen", "127.0.0.1:0", "--no-token", *DEMO]
    with (tmp_path / "output").open("wb") as output:
        agent = subprocess.Popen(
            [sys.executable, "-m", "acp_agent", *words],
            cwd=home,
            env=environment(home, {"PYTHONPATH": str(ROOT)}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
        )
    assert agent.stderr is not None
    with agent.stderr:
        assert b" http://127.0.0.1:" in agent.stderr.readline()
        agent.terminate()
        assert agent.wait(60) == 0
    assert (tmp_path / "output").read_bytes() == b""


async def test_the_endpoint_is_where_a_client_that_fixes_its_path_looks(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, "--path", "/message")
    assert agent.websocket_url.endswith("/message")
    async with websocket_client(agent) as client:
        assert (await client.initialize())["agentInfo"]["name"] == "acp-agent"
    agent.url = agent.url.replace("/message", "/acp")
    with pytest.raises(websockets.InvalidStatus) as refusal:
        async with websocket_client(agent):
            pass
    assert refusal.value.response.status_code == 404


async def test_a_client_that_writes_binary_frames_is_answered_where_that_is_wanted(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, "--binary")
    async with websockets.connect(
        agent.websocket_url, additional_headers=agent.authorization
    ) as client:
        request = {"jsonrpc": "2.0", "id": 7, "method": "initialize"}
        await client.send(json.dumps(request | {"params": {"protocolVersion": 1}}).encode() + b"\n")
        assert json.loads(await asyncio.wait_for(client.recv(), 60))["id"] == 7


def test_a_port_in_use_is_named(listening: StartListening, home: Path) -> None:
    agent = listening(*DEMO)
    message = refused(home, "--listen", f"127.0.0.1:{agent.port}")
    assert f"127.0.0.1:{agent.port} is already in use; choose" in message
    assert "attempting" not in message  # the words of a library


def test_an_address_of_another_computer_is_named(home: Path) -> None:
    # TEST-NET-1, of no computer (RFC 5737)
    message = refused(home, "--listen", "192.0.2.1:8765", "--behind-proxy")
    assert "192.0.2.1 is not an address of this computer; choose another" in message
    message = refused(home, "--listen", "[::1%nowhere]:0")  # which the resolver refuses
    assert "::1%nowhere is not an address of this computer; choose another" in message


def test_a_weak_token_is_refused_and_not_repeated(home: Path, tmp_path: Path) -> None:
    message = refused(home, "--listen", "127.0.0.1:0", token="hunter2")
    assert "16" in message
    assert "hunter2" not in message
    missing = str(tmp_path / "missing")
    assert missing in refused(home, "--listen", "127.0.0.1:0", "--token-file", missing)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing shows it like /proc")
def test_the_token_cannot_be_read_where_the_system_shows_environments(
    home: Path,
) -> None:
    with RemoteAgent(home, *DEMO, launcher=POWERLESS) as agent:
        assert not may_inspect(agent.process.pid)


def test_certificate_and_key_go_together(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "not-a-certificate.pem"
    file.write_text("nothing")
    message = refused(home, "--listen", "127.0.0.1:0", "--tls-cert", str(file))
    assert "--tls-key" in message
    both = ("--tls-cert", str(file), "--tls-key", str(file))
    assert str(file) in refused(home, "--listen", "127.0.0.1:0", *both)


@pytest.mark.parametrize("address", ["localhost:0", "[::1]:0"])
async def test_other_names_of_this_computer_can_be_listened_on(
    listening: StartListening, address: str
) -> None:
    agent = listening(*DEMO, listen=address)
    assert agent.url.startswith(f"http://{address.removesuffix(':0')}:")
    async with websocket_client(agent) as client:
        await client.initialize()
