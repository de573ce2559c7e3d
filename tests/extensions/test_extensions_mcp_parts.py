"""The small parts of the MCP client: lines, environments, credentials, time limits."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from acp_agent.extensions.mcp.call_timeouts import CallTimeouts
from acp_agent.extensions.mcp.config import (
    MARK,
    HttpServer,
    ProgramServer,
    all_values,
    credentials,
    identity,
    server_environ,
)
from acp_agent.extensions.mcp.errors import describe_error
from acp_agent.extensions.mcp.stdio_transport import LongLine, read_lines


async def lines_of(*pieces: bytes, limit: int = 10) -> list[bytes | LongLine]:
    stream = asyncio.StreamReader()
    for piece in pieces:
        stream.feed_data(piece)
    stream.feed_eof()
    return [line async for line in read_lines(stream, limit=limit, head=4)]


async def test_lines_are_found_wherever_the_output_is_cut() -> None:
    assert await lines_of(b"on", b"e\ntw", b"o\r\n", b"\n\nthree") == [b"one", b"two", b"three"]


async def test_of_a_line_over_the_limit_only_the_beginning_is_kept() -> None:
    assert await lines_of(b"12345678901\nshort\n") == [LongLine(b"1234"), b"short"]
    assert await lines_of(b"x" * 100_000, b"y" * 100_000, b"\nok") == [LongLine(b"xxxx"), b"ok"]
    assert await lines_of(b"12345678901") == [LongLine(b"1234")]


def test_a_program_gets_what_every_program_needs_and_what_is_given_for_it() -> None:
    environ = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "OPENAI_API_KEY": "key",
        "EDITOR": "vi",
        "LD_PRELOAD": "x.so",
        "HTTPS_PROXY": "http://proxy:3128",
        "http_proxy": "http://user:password@proxy:3128",
    }
    given = (("GITHUB_TOKEN", "first"), ("GITHUB_TOKEN", "second"))
    assert server_environ(environ, given, "mark") == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HTTPS_PROXY": "http://proxy:3128",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "GITHUB_TOKEN": "second",
        MARK: "mark",
    }


def test_credentials_are_told_from_what_only_came_with_them() -> None:
    program = ProgramServer(name="p", command="p", env=(("A_TOKEN", "t"), ("ROOT", "/home")))
    assert credentials(program) == ("t",)
    assert all_values(program) == ("t", "/home")
    web = HttpServer(
        name="w",
        url="https://user:pass@host/mcp?key=k",
        headers=(("Authorization", "Bearer abc"), ("Accept", "text/plain")),
    )
    assert set(credentials(web)) == {"Bearer abc", "abc", "pass", "key=k"}


def test_what_a_server_is_called_is_no_part_of_which_it_is() -> None:
    one = ProgramServer(name="one", command="p", args=("a b",))
    assert identity(one) == identity(ProgramServer(name="two", command="p", args=("a b",)))
    assert identity(one) != identity(ProgramServer(name="one", command="p", args=("a", "b")))


def test_the_reason_is_one_line_without_secrets() -> None:
    inner = ValueError("the key\nsesame is\x1b[31m wrong " + "x" * 900)
    group = ExceptionGroup("several", [ExceptionGroup("inner", [inner])])
    reason = describe_error(group, lambda text: text.replace("sesame", "[secret]"))
    assert reason.startswith("the key [secret] is [31m wrong xxx")
    assert len(reason) == 300


async def test_no_time_passes_while_the_user_is_being_asked() -> None:
    patience = CallTimeouts()
    answered = asyncio.Event()

    async def ask() -> None:
        with patience.paused():
            await answered.wait()

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    async with patience.limit(0.05):
        for _ in range(3):
            await asyncio.sleep(0.03)
    answered.set()
    await asking
    with pytest.raises(TimeoutError):
        async with patience.limit(0.01):
            await asyncio.Event().wait()


# Takes turns between threads as often as possible, so that one is always in the middle.
IMPORT_IN_THREADS = """
import sys, threading
from importlib import import_module
import acp_agent.tools.base, mcp_types
sys.setswitchinterval(1e-6)
failures = []
def load(name):
    start.wait()
    try:
        import_module(name)
    except Exception as error:
        failures.append(repr(error))
start = threading.Barrier(len(sys.argv) - 1)
threads = [threading.Thread(target=load, args=(name,)) for name in sys.argv[1:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(str(failures) if failures else 0)
"""


def test_modules_that_import_the_package_are_imported_by_two_threads_at_once() -> None:
    """A submodule of `mcp` imported before `mcp` itself deadlocks with another thread."""
    modules = ("acp_agent.extensions.mcp.client", "acp_agent.tools.mcp_tool")
    command = [sys.executable, "-c", IMPORT_IN_THREADS, *modules]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
