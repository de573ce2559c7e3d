"""Servers start when a file is touched, and nothing of them is left when the agent has ended."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from acp_agent.errors import MissingFileError
from acp_agent.language_servers import pool, server
from acp_agent.language_servers.pool import ServerPool
from acp_agent.language_servers.programs import InstalledServer, fill_placeholders, find_server
from acp_agent.language_servers.table import ServerSpec, built_in_servers
from tests.language_servers.conftest import SCRIPTED, scripted_server, until_reported
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import is_alive, open_desk
from tests.support.waiting import until

MODEL = ("--model", "openai/scripted-model")


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
async def test_a_server_that_ends_for_nothing_does_not_outlive_the_agent(
    agent: StartAgent, model_server: ModelServer, tmp_path: Path, how: str
) -> None:
    pids, home, project = tmp_path / "pids", tmp_path / "agent-home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    config = scripted_server(f"pid={pids}", "stubborn")
    (home / "config.toml").write_text(config)
    model_server.add(answer(Call("read", {"path": "a.txt"})), answer("Done."))
    environ = model_server.environ("openai") | {"ACP_AGENT_HOME": str(home)}
    running = await agent(*MODEL, environ=environ)
    await running.initialize()
    session = await running.new_session(project)
    await running.prompt(session, "Go.")
    await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    (server,) = map(int, pids.read_text().split())
    assert is_alive(server)
    running.process.send_signal(signal.Signals[how])
    await running.wait()
    await until(lambda: not is_alive(server))


async def test_a_server_that_still_starts_is_not_waited_for(
    tmp_path: Path, model_server: ModelServer
) -> None:
    start = tmp_path / "start"
    stall = Stall()
    async with open_desk(tmp_path, model_server, config=scripted_server(f"start={start}")) as desk:
        (desk.folder / "a.txt").write_text("one\nold BAD\n")
        model_server.add(
            answer(Call("read", {"path": "a.txt"})),
            answer(Call("edit", {"path": "a.txt", "old": "one", "new": "zero\nnew BAD"})),
            answer(stall, Call("shell", {"command": "true"})),
            answer("Done."),
        )
        turn = await desk.begin("Go.")
        await model_server.arrived(3)
        start.touch()
        await until_reported(desk, "a.txt", "new is bad")
        stall.release()
        await turn.result()
        assert not any("bad" in result for result in desk.results())
        (late,) = [text for text in desk.words() if "New problems" in text]
        assert "a.txt:2:5: error: new is bad" in late
        assert "old is bad" not in late


async def test_syntax_is_checked_where_language_servers_are_turned_off(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f"use_language_servers = false\n{scripted_server()}"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "a.txt").write_text("one\n")
        (desk.folder / "a.toml").write_text("a = 1\n")
        model_server.add(
            answer(Call("read", {"path": "a.txt"})),
            answer(Call("edit", {"path": "a.txt", "old": "one", "new": "BAD"})),
            answer(Call("edit", {"path": "a.toml", "old": "a = 1", "new": "a = "})),
            answer("Done."),
        )
        await desk.say("Go.")
        assert "a.toml:1:5: error" in desk.results()[-1]
        pool = desk.services.language_servers._pool
        assert pool is not None
        assert not pool.servers([Path("/")])


def test_a_program_of_the_project_is_only_started_in_a_trusted_session(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "bin"
    inside = project / "node_modules" / ".bin"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(inside)
    program = inside / "srv"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    spec = ServerSpec(name="srv", commands=(("srv",),))
    path = f"{outside}:{inside}:{tmp_path / 'link'}"
    assert find_server(spec, [project], path, in_project=False) is None
    trusted = find_server(spec, [project], str(outside), in_project=True)
    assert trusted is not None
    assert trusted.command == (str(program),)
    assert trusted.in_project
    configured = ServerSpec(name="srv", commands=(("node_modules/.bin/srv",),), by_user=True)
    assert find_server(configured, [project], str(outside), in_project=False) is not None


def test_a_server_gets_no_paths_to_programs_of_the_project(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "bin"
    packages = project / ".venv" / "lib" / "python3.11" / "site-packages"
    inside = project / ".venv" / "bin"
    for folder in (packages, inside, outside):
        folder.mkdir(parents=True)
    for folder in (inside, outside):
        (folder / "python3").write_text("#!/bin/sh\n")
        (folder / "python3").chmod(0o755)
    specs = {spec.name: spec for spec in built_in_servers()}
    settings = specs["basedpyright"].settings_for(trusted=False, large=False)
    path = f"{inside}:{outside}"
    filled = fill_placeholders(settings, "/usr/bin/basedpyright-langserver", project, path).settings
    assert filled["python"] == {"pythonPath": str(outside / "python3")}
    assert filled["basedpyright"]["analysis"]["extraPaths"] == [str(packages)]
    typescript = specs["typescript-language-server"]
    with pytest.raises(MissingFileError):
        fill_placeholders(
            typescript.settings_for(trusted=False, large=False), "/usr/bin/tls", project, path
        )
    fill_placeholders(
        typescript.settings_for(trusted=True, large=False), "/usr/bin/tls", project, path
    )


@asynccontextmanager
async def servers() -> AsyncIterator[ServerPool]:
    """The servers of a process."""
    server_pool = ServerPool(os.environ)
    try:
        yield server_pool
    finally:
        await server_pool.aclose()


def program(path: Path, *arguments: str) -> InstalledServer:
    spec = ServerSpec(name="scripted", extensions={".txt": "text"})
    return InstalledServer(
        spec=spec, command=(sys.executable, str(path), *arguments), in_project=False
    )


@pytest.mark.parametrize(
    ("limit", "value", "habit", "state", "starts", "why"),
    [
        ("_MAX_IDLE_SECONDS", 0.0, "", "stopped", 1, ""),
        ("_MAX_MEMORY", 1, "", "failed", 4, "MB of memory"),
        ("_STABLE_SECONDS", 60.0, "odd=dies", "failed", 4, "3"),
        ("_MAX_RECEIVED", 1, "odd=babbles", "failed", 4, "never stops sending"),
    ],
    ids=["idle", "memory", "dies", "babbles"],
)
async def test_a_server_ends_that_is_idle_too_large_keeps_dying_or_floods(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: float,
    habit: str,
    state: str,
    starts: int,
    why: str,
) -> None:
    monkeypatch.setattr(server, "_CHECK_INTERVAL", 0.02)
    monkeypatch.setattr(server, "_FIRST_DELAY", 0.01)
    monkeypatch.setattr(server, "_DELAY_FACTOR", 1)
    monkeypatch.setattr(server, limit, value)
    pids = tmp_path / "pids"
    path = SCRIPTED.with_name("odd_language_server.py") if habit else SCRIPTED
    async with servers() as server_pool:
        one = server_pool.get(program(path, f"pid={pids}", habit), tmp_path, trusted=False)
        assert one is not None
        await until(lambda: one.state == state)
        assert why in one.last_error
        numbers = [int(number) for number in pids.read_text().split()]
        assert len(numbers) == starts
        await until(lambda: not any(map(is_alive, numbers)))


async def test_only_so_many_servers_run_and_the_longest_unused_ends_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_SERVERS", 2)
    roots = [tmp_path / name for name in ("a", "b", "c")]
    for root in roots:
        root.mkdir()
    async with servers() as server_pool:
        first, second, third = (
            server_pool.get(program(SCRIPTED), root, trusted=False) for root in roots
        )
        assert first is not None
        assert second is not None
        assert third is None
        monkeypatch.setattr(pool, "_MIN_IDLE_SECONDS", -1.0)
        assert server_pool.get(program(SCRIPTED), roots[2], trusted=False) is not None
        await until(lambda: first.state == "stopped")
        assert second.state in {"starting", "ready"}
