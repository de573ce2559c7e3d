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


async def test_lines_are_found_however_the_output_is_split() -> None:
    assert await lines_of(b"on", b"e\ntw", b"o\r\n", b"\n\nthree") == [b"one", b"two", b"three"]


async def test_only_the_beginning_of_a_too_long_line_is_stored() -> None:
    assert await lines_of(b"12345678901\nshort\n") == [LongLine(b"1234"), b"short"]
    assert await lines_of(b"x" * 100_000, b"y" * 100_000, b"\nok") == [LongLine(b"xxxx"), b"ok"]
    assert await lines_of(b"12345678901") == [LongLine(b"1234")]


def test_a_program_gets_the_basic_and_its_configured_variables() -> None:
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


def test_credentials_are_distinguished_from_other_values() -> None:
    program = ProgramServer(name="p", command="p", env=(("A_TOKEN", "t"), ("ROOT", "/home")))
    assert credentials(program) == ("t",)
    assert all_values(program) == ("t", "/home")
    web = HttpServer(
        name="w",
        url="https://user:pass@host/mcp?key=k",
        headers=(("Authorization", "Bearer abc"), ("Accept", "text/plain")),
    )
    assert set(credentials(web)) == {"Bearer abc", "abc", "pass", "key=k"}


def test_the_name_of_a_server_is_no_part_of_its_identity() -> None:
    one = ProgramServer(name="one", command="p", args=("a b",))
    assert identity(one) == identity(ProgramServer(name="two", command="p", args=("a b",)))
    assert identity(one) != identity(ProgramServer(name="one", command="p", args=("a", "b")))


def test_the_reason_is_one_line_without_secrets() -> None:
    inner = ValueError("the key\nsesame is\x1b[31m wrong " + "x" * 900)
    group = ExceptionGroup("several", [ExceptionGroup("inner", [inner])])
    reason = describe_error(group, lambda text: text.replace("sesame", "[secret]"))
    assert reason.startswith("the key [secret] is [31m wrong xxx")
    assert len(reason) == 300


async def test_timeouts_pause_while_the_user_is_asked() -> None:
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


FIRST_IMPORT = """
import builtins, os, sys
original = builtins.__import__
def spy(name, *arguments, **options):
    if name.partition(".")[0] == "mcp":
        print(name, flush=True)
        os._exit(0)  # importing the package takes longer than all before
    return original(name, *arguments, **options)
builtins.__import__ = spy
__import__(sys.argv[1])
"""


@pytest.mark.parametrize(
    "module",
    [
        "acp_agent.extensions.mcp.client",
        "acp_agent.session.mcp.catalog",
        "acp_agent.session.mcp.mentions",
    ],
)
def test_a_session_imports_the_package_before_its_submodules(module: str) -> None:
    """Threads that import it at once deadlock if one of them begins with a submodule."""
    command = [sys.executable, "-c", FIRST_IMPORT, module]
    assert subprocess.check_output(command, text=True, timeout=60) == "mcp\n"
