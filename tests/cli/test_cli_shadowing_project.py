"""A project with modules and programs of our names: none of them is ever imported or started."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from acp_agent.platform.posix import absolute_folders, find_program, self_command
from tests.support.agent_process import AgentProcess, environment
from tests.support.model_server import Call, ModelServer, answer

PROGRAM = str(Path(sys.executable).with_name("acp-agent"))
DEMO = ("--model", "demo/demo")

# Runs the program, and writes down at its end what it has imported.
_WATCHED = """
import atexit, json, os, sys
written = sys.argv.pop(1)
def write():
    with open(written, "w") as file:
        json.dump(sorted(sys.modules), file)
leave = os._exit
os._exit = lambda status: (write(), leave(status))
atexit.register(write)
from acp_agent.cli.main import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Every top-level module that `run`, `chat` and a turn of the agent import."""
    folder = tmp_path_factory.mktemp("imported")
    watched = [sys.executable, "-P", "-c", _WATCHED]
    for name in ("run", "chat"):
        start([*watched, str(folder / name), name, *DEMO, *["hello"][: name == "run"]], folder)
    asyncio.run(_turn([*watched, str(folder / "acp")], folder))
    reports = [json.loads((folder / name).read_text()) for name in ("run", "chat", "acp")]
    return sorted({module.partition(".")[0] for names in reports for module in names})


async def _turn(command: Sequence[str], folder: Path) -> None:
    async with ModelServer() as server:
        server.add(answer(Call("shell", {"command": "ls"})), answer("Done."))
        environ = server.environ() | {"ACP_AGENT_MODEL": "openai/scripted-model"}
        async with await AgentProcess.start(home=folder, environ=environ, command=command) as agent:
            await agent.initialize()
            assert await agent.prompt(await agent.new_session(folder), "look")


@pytest.fixture
def project(imported: Sequence[str], tmp_path: Path) -> Path:
    """A project that shadows all of them, and every program that we start, as plain files."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "README.md").write_text("# Sample\n")
    for name in {*imported, "acp_agent", "sitecustomize", "usercustomize"} - {"__main__"}:
        text = f"open({str(tmp_path / 'ran')!r}, 'a').write({name + chr(10)!r})\n"
        (folder / f"{name}.py").write_text(text)
    for name in ("acp_agent", "protocol", "encodings"):
        (folder / name).mkdir()
        for module in ("__init__", "__main__"):
            shutil.copy(folder / "os.py", folder / name / f"{module}.py")
    for name in ("git", "rg", "bash", "sh", "python", "python3", "acp-agent", "ls", "uname"):
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} >> {tmp_path / 'ran'}\n")
        program.chmod(0o755)
    return folder


def start(
    command: Sequence[str], cwd: Path, extra: Mapping[str, str] | None = None, text: str = ""
) -> str:
    """Run a command to its end; what it printed."""
    home = cwd / ".." / "home"
    home.mkdir(exist_ok=True)
    ran = subprocess.run(
        command, cwd=cwd, env=environment(home, extra), input=text, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def nothing_ran(project: Path) -> bool:
    ran = project.with_name("ran")
    assert not ran.exists(), ran.read_text()
    return True


def test_a_shadowing_project_would_be_imported_by_a_plain_python(project: Path) -> None:
    subprocess.run([sys.executable, "-m", "acp_agent", "--version"], cwd=project, check=False)
    assert project.with_name("ran").exists()


@pytest.mark.parametrize("python_path", [{}, {"PYTHONPATH": ":/x"}])
def test_run_imports_nothing_of_the_project(project: Path, python_path: Mapping[str, str]) -> None:
    words = ("run", *DEMO, "--mode", "plan", "read README.md")
    assert "# Sample" in start(self_command(*words), project, python_path)
    assert nothing_ran(project)


def test_chat_imports_nothing_of_the_project(project: Path) -> None:
    path = {"PYTHONPATH": "."}
    output = start(self_command("chat", *DEMO), project, path, "read README.md\n")
    assert "# Sample" in output
    assert nothing_ran(project)


def test_the_installed_program_imports_nothing_of_the_project(project: Path) -> None:
    assert "# Sample" in start([PROGRAM, "run", *DEMO, "read README.md"], project)
    assert nothing_ran(project)


async def test_the_agent_on_stdio_imports_nothing_of_the_project(
    project: Path, home: Path, model_server: ModelServer
) -> None:
    model_server.add(
        answer(Call("shell", {"command": "git status"}), Call("grep", {"pattern": "Sample"})),
        answer("Done."),
    )
    async with await AgentProcess.start(
        home=home,
        cwd=project,
        environ=model_server.environ() | {"ACP_AGENT_MODEL": "openai/scripted-model"},
        command=(PROGRAM,),
    ) as agent:
        await agent.initialize()
        await agent.prompt(await agent.new_session(project), "look")
        assert nothing_ran(project)


async def test_the_login_that_a_client_starts_in_the_project_imports_nothing_of_it(
    project: Path, home: Path
) -> None:
    async with await AgentProcess.start(home=home, command=(PROGRAM,)) as agent:
        result = await agent.initialize(clientCapabilities={"_meta": {"terminal-auth": True}})
    [login] = [method for method in result["authMethods"] if method["id"] == "login"]
    command = login["_meta"]["terminal-auth"]
    start([command["command"], *command["args"], "--help"], project)
    assert nothing_ran(project)


def test_the_command_written_for_an_editor_imports_nothing_of_the_project(
    project: Path, tmp_path: Path
) -> None:
    python = tmp_path / "environment" / "bin" / "python"  # with no program of ours beside it
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (python.parent.parent / "lib").symlink_to(Path(sys.prefix) / "lib")
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", python.parent.parent)
    settings = tmp_path / "settings.json"
    words = ("-P", "-m", "acp_agent", "setup", "zed", "--file", str(settings), "--yes")
    start([str(python), *words], project, {"PATH": f".:{os.environ['PATH']}"})
    entry = json.loads(settings.read_text())["agent_servers"]["acp-agent"]
    assert entry["command"] == str(python)
    start([entry["command"], *entry["args"], "--version"], project, {"PYTHONPATH": ""})
    assert nothing_ran(project)


def test_programs_of_the_project_are_not_started_where_the_path_names_the_current_folder(
    project: Path,
) -> None:
    path = {"PATH": f".::bin/..:{os.environ['PATH']}"}
    output = start(self_command("run", *DEMO, "--allow", "all", "find README.md"), project, path)
    assert "README.md" in output
    output = start(
        self_command("run", *DEMO, "--mode", "plan", "$ ls && uname && git status"), project, path
    )
    assert "the session is in plan mode" in output  # `ls` may be the project's, so it is no reader
    start(self_command("doctor"), project, path)
    assert nothing_ran(project)


def test_a_program_is_found_in_absolute_folders_only(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    for entries in (".", "", "bin/..", ":"):
        assert find_program("git", entries) is None
    assert find_program("git", f".:{project}") == str(project / "git")
    assert absolute_folders(":/usr/bin::bin:/bin") == "/usr/bin:/bin"
