"""The life of MCP servers: begun with their session, ended with it, or with the agent."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.extensions.mcp_session import (
    Json,
    OpenWithServers,
    call,
    echo,
    offered,
    program,
    results,
)
from tests.support.agent_process import AgentProcess
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import is_alive
from tests.support.waiting import until

# Starts a child in its group and one that leaves it, writes down all three, and then behaves.
FAMILY = """
import os, subprocess, sys
own = subprocess.Popen(["sleep", "600"])
left = subprocess.Popen(["sleep", "600"], start_new_session=True)
open(os.environ["MCP_PIDS"], "a").write(f"{os.getpid()} {own.pid} {left.pid}\\n")
sys.argv = [sys.argv[1], "echo"]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
"""


def family(pids: Path, *, name: str = "memo") -> Json:
    """A server that leaves processes behind unless somebody ends them."""
    server = program("echo", name=name, env={"MCP_PIDS": str(pids)})
    return server | {"command": sys.executable, "args": ["-c", FAMILY, server["args"][1]]}


def processes(pids: Path) -> list[int]:
    return [int(pid) for line in pids.read_text().splitlines() for pid in line.split()]


def ended(pids: Path) -> bool:
    """Whether all processes are gone."""
    return not any(map(is_alive, processes(pids)))


async def connected(running: AgentProcess, server: ModelServer, session: str) -> None:
    """A turn, which begins when the servers are connected."""
    server.add(answer("Hello."))
    await running.prompt(session, "hi")
    assert offered(server)


@pytest.mark.covers("S1")
async def test_a_new_session_is_ready_before_its_servers(
    with_servers: OpenWithServers, workspace_repo: Path, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    running, _ = await with_servers()
    hanging = program("hangs-at-initialize", env={"MCP_RECORD": str(record)})
    assert await running.new_session(workspace_repo, mcpServers=[hanging] * 3)
    await until(record.exists)  # they are started, and never answer


async def test_a_turn_waits_for_servers_as_long_as_the_configuration_says(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer("Hello."))
    running, session = await with_servers(
        program("hangs-at-initialize"), config="[limits]\nmcp_ready_timeout = 0.05\n"
    )
    await running.prompt(session, "hi", timeout=20)  # the server has 30 seconds to connect


@pytest.mark.covers("T8", "S5")
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_servers_end_with_their_session_and_those_of_others_stay(
    with_servers: OpenWithServers,
    model_server: ModelServer,
    workspace_repo: Path,
    tmp_path: Path,
    method: str,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    running, session = await with_servers(family(first))
    other = await running.new_session(workspace_repo, mcpServers=[family(second, name="own")])
    await connected(running, model_server, session)
    await connected(running, model_server, other)
    assert all(name.startswith("mcp__own__") for name in offered(model_server))
    leader = processes(first)[0]
    assert os.getpgid(leader) == leader  # so that nothing else is ended with it
    await running.request(method, {"sessionId": session})
    await until(lambda: ended(first))
    assert all(map(is_alive, processes(second)))
    model_server.add(answer(echo("still here", server="own")), answer("Done."))
    await running.prompt(other, "go")
    assert results(model_server) == ["echo: still here"]


@pytest.mark.covers("T8")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
@pytest.mark.parametrize("busy", [False, True])
async def test_no_process_of_a_server_outlives_the_agent(
    with_servers: OpenWithServers,
    model_server: ModelServer,
    tmp_path: Path,
    how: str,
    busy: bool,
) -> None:
    pids, record = tmp_path / "pids", tmp_path / "record"
    server = family(pids)
    server["env"].append({"name": "MCP_RECORD", "value": str(record)})
    running, session = await with_servers(server)
    if busy:
        model_server.add(answer(call("slow")))
        running.post_prompt(session, "go")
        await until(lambda: record.is_file() and "slow" in record.read_text())
    else:
        await connected(running, model_server, session)
    if how == "SIGTERM":
        running.process.send_signal(signal.SIGTERM)
    else:
        await running.close_stdin()
    assert await running.wait() == 0
    await running._settle()
    assert b"not everything could be ended" not in running.stderr
    await until(lambda: ended(pids))


# Ignores the end of its input and every signal that can be ignored.
STUBBORN = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
open(os.environ["MCP_PIDS"], "a").write(f"{os.getpid()}\\n")
sys.argv = [sys.argv[1], "echo"]
try:
    exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
finally:
    while True:
        time.sleep(600)
"""


@pytest.mark.cold
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
async def test_a_server_that_ignores_every_request_to_end_does_not_outlive_the_agent(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path, how: str
) -> None:
    pids = tmp_path / "pids"
    server = family(pids)
    server["args"][1] = STUBBORN
    running, session = await with_servers(server)
    await connected(running, model_server, session)
    (stubborn,) = processes(pids)
    assert is_alive(stubborn)
    running.process.send_signal(signal.Signals[how])
    status = await running.wait()
    assert status == (-signal.SIGKILL if how == "SIGKILL" else 0)
    await until(lambda: ended(pids))


@pytest.mark.covers("S4")
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_reopening_a_session_uses_the_servers_of_the_request(
    with_servers: OpenWithServers,
    model_server: ModelServer,
    workspace_repo: Path,
    tmp_path: Path,
    method: str,
) -> None:
    pids = tmp_path / "pids"
    running, session = await with_servers(family(pids))
    await connected(running, model_server, session)
    params = {"sessionId": session, "cwd": str(workspace_repo)}
    await running.request(method, params | {"mcpServers": [program("echo", name="other")]})
    await until(lambda: ended(pids))
    await connected(running, model_server, session)
    assert all(name.startswith("mcp__other__") for name in offered(model_server))
    await running.request(method, params | {"mcpServers": []})
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    assert offered(model_server) == []


async def test_opening_a_session_again_with_the_same_servers_keeps_them(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    running, session = await with_servers(family(pids))
    await connected(running, model_server, session)
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": [family(pids)]}
    await running.request("session/load", params)
    await connected(running, model_server, session)
    assert len(processes(pids)) == 3
    assert all(map(is_alive, processes(pids)))


@pytest.mark.covers("T4", "S1")
@pytest.mark.parametrize(
    ("server", "field"),
    [
        ({"name": "x", "command": "", "args": [], "env": []}, "mcpServers[0].command"),
        ({"name": "x", "command": "a\0b", "args": [], "env": []}, "mcpServers[0]"),
        ({"name": "x", "command": "a", "env": [{"name": "A=B", "value": ""}]}, "mcpServers[0].env"),
        ({"type": "carrier-pigeon", "name": "x"}, "mcpServers[0].type"),
    ],
)
async def test_an_invalid_server_is_refused_by_name(
    with_servers: OpenWithServers, workspace_repo: Path, server: Json, field: str
) -> None:
    running, _ = await with_servers()
    params = {"cwd": str(workspace_repo), "mcpServers": [{"args": []} | server]}
    error = (await running.answer(running.post("session/new", params)))["error"]
    assert error["code"] == -32602
    assert error["data"]["field"].startswith(field)


async def test_a_client_without_notices_reads_of_a_failed_server_in_its_first_turn(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING - {"notices"})
    running, session = await with_servers(program("dies-at-start"), editor=editor)
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    thoughts = [
        update["content"]["text"] for update in running.updates(session, "agent_thought_chunk")
    ]
    assert any("could not be connected" in thought for thought in thoughts)
