"""The program that leads confined commands to the filtering proxy."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.sandbox import relay
from acp_agent.sandbox.host_rules import HostRules
from acp_agent.sandbox.proxy import FilteringProxy, proxy_environment
from tests.support.orphans import MARK, marked_processes
from tests.support.waiting import until

RELAY = (sys.executable, "-I", "-S", str(relay.__file__))
PORT = 3128
BWRAP = ("bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev")
LARGE = 3_000_000
FETCH = """
import os, sys, urllib.request
for url in sys.argv[1:]:
    print(len(urllib.request.urlopen(url, os.urandom(1_000_000)).read()))
"""


def run(*command: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command behind the relay, in the network of the tests."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [*RELAY, "/nonexistent", str(port), "--", *command]
    return subprocess.run(argv, capture_output=True, timeout=30, env=environ, check=False)


@pytest.mark.parametrize(
    ("line", "status"),
    [("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM), ("kill -PIPE $$", -signal.SIGPIPE)],
)
def test_a_command_ends_as_it_would_without_the_relay(line: str, status: int) -> None:
    assert run("sh", "-c", line).returncode == status


def test_a_command_that_does_not_exist_is_reported_as_missing() -> None:
    done = run("/nonexistent/program")
    assert done.returncode == 127
    assert done.stderr == b"/nonexistent/program: No such file or directory\n"


def test_the_command_gets_the_environment_as_it_was_and_no_child_it_does_not_know() -> None:
    look = "import os; print(dict(os.environ)); os.waitpid(-1, 0)"
    done = run(sys.executable, "-X", "utf8", "-c", look, environ={"A": "1", "B": "\udcff"})
    assert done.stdout.startswith(b"{'A': '1', 'B': '\\udcff'")
    assert b"ChildProcessError" in done.stderr


async def test_the_relay_holds_no_stream_of_the_command_and_ends_with_it() -> None:
    done = run("true", environ={MARK: "relay-test"})  # would wait for the end of its streams
    assert done.returncode == 0
    await until(lambda: not marked_processes("relay-test"))


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[tuple[Path, int]]:
    """A proxy that leads to one local server; its socket and the server's port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + bytes(LARGE))
        await writer.drain()
        writer.close()

    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    rules = HostRules(["allowed.test", f"127.0.0.1:{port}", f"localhost:{port}"])
    proxy = FilteringProxy(rules, resolve=resolve)
    await proxy.start(tmp_path / "proxy")
    yield tmp_path / "proxy", port
    await proxy.aclose()
    server.close()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
async def test_a_command_without_a_network_reaches_allowed_hosts_and_local_ports(
    web: tuple[Path, int],
) -> None:
    path, port = web
    argv = [*BWRAP, *RELAY, str(path), str(PORT), str(port), "--", sys.executable, "-c", FETCH]
    urls = [f"http://allowed.test:{port}/", f"http://127.0.0.1:{port}/", "http://other.test/"]
    process = await asyncio.create_subprocess_exec(
        *argv,
        *urls,
        env=os.environ | proxy_environment(PORT),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert output.split() == [str(LARGE).encode()] * 2, errors
    assert b"HTTP Error 403: the sandbox refuses other.test:80" in errors
