"""Servers start when a file is touched, and nothing of them is left when the agent has ended."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from acp_agent.errors import MissingFileError
from acp_agent.language_servers import syntax_check
from acp_agent.language_servers.programs import fill_in, find_server
from acp_agent.language_servers.table import ServerSpec, built_in_servers
from tests.language_servers.conftest import scripted_server
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, answer
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
    config = scripted_server("start=1.5")
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "a.txt").write_text("one\nold BAD\n")
        model_server.add(
            answer(Call("read", {"path": "a.txt"})),
            answer(Call("edit", {"path": "a.txt", "old": "one", "new": "zero\nnew BAD"})),
            answer(Call("shell", {"command": "sleep 3"})),
            answer("Done."),
        )
        began = asyncio.get_running_loop().time()
        await desk.say("Go.")
        assert asyncio.get_running_loop().time() - began < 4.4
        assert not any("bad" in result for result in desk.results())
        (late,) = [text for text in desk.words() if "New problems" in text]
        assert "a.txt:2:5: error: new is bad" in late
        assert "old is bad" not in late


async def test_syntax_is_checked_where_language_servers_are_turned_off(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syntax_check, "SECONDS", 20.0)  # the machine may be busy
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
    named = ServerSpec(name="srv", commands=(("node_modules/.bin/srv",),), by_user=True)
    assert find_server(named, [project], str(outside), in_project=False) is not None


def test_a_server_is_pointed_away_from_the_programs_of_the_project(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "bin"
    packages = project / ".venv" / "lib" / "python3.11" / "site-packages"
    inside = project / ".venv" / "bin"
    for folder in (packages, inside, outside):
        folder.mkdir(parents=True)
    for folder in (inside, outside):
        (folder / "python3").write_text("#!/bin/sh\n")
        (folder / "python3").chmod(0o755)
    specs = {spec.name: spec for spec in built_in_servers()}
    given = specs["basedpyright"].given(trusted=False, large=False)
    path = f"{inside}:{outside}"
    filled = fill_in(given, "/usr/bin/basedpyright-langserver", project, path).settings
    assert filled["python"] == {"pythonPath": str(outside / "python3")}
    assert filled["basedpyright"]["analysis"]["extraPaths"] == [str(packages)]
    typescript = specs["typescript-language-server"]
    with pytest.raises(MissingFileError):
        fill_in(typescript.given(trusted=False, large=False), "/usr/bin/tls", project, path)
    fill_in(typescript.given(trusted=True, large=False), "/usr/bin/tls", project, path)
