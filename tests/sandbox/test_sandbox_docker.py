"""Commands in containers. The engine is a stand-in that does with bubblewrap what it is told."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.sandbox_types import (
    SandboxConfig,
    SandboxFilesystemConfig,
    SandboxLimitsConfig,
)
from acp_agent.sandbox.docker import Docker, user_options
from acp_agent.sandbox.launch import Confinement
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.programs import launch_reader
from acp_agent.sandbox.sandbox import Sandbox, Unavailable, find_backend
from acp_agent.workspace.processes import CommandResult, LocalProcesses

IMAGE = "image-that-is-there"

ROOT = Path(__file__).parents[2]
AGENT = """
import asyncio, sys
from pathlib import Path
from acp_agent.sandbox.docker import Docker
from tests.sandbox.test_sandbox_docker import IMAGE, run
options = {"user": ["--user", "0:0"], "has_python": False, "for_helpers": None}
command = "while :; do date > beat; sleep 0.02; done"
asyncio.run(run(Path(sys.argv[1]), Docker(sys.argv[2], IMAGE, **options), command, 60))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with what must not be seen or changed in it."""
    project = Path(os.path.realpath(tmp_path), "a, project")
    (project / ".vscode").mkdir(parents=True)
    (project / ".vscode/tasks.json").write_text("before")
    (project / "private").mkdir()
    (project / "private/key").write_text("secret")
    (project.parent / "outside").write_text("outside")
    return project


@pytest.fixture
def search_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A PATH with the stand-in as `docker`."""
    if not shutil.which("bwrap"):
        pytest.skip("the stand-in uses bubblewrap")
    programs = tmp_path / "programs"
    programs.mkdir()
    stand_in = Path(__file__).with_name("docker_stand_in.py")
    (programs / "docker").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -I "{stand_in}" "$@"\n', "utf-8"
    )
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("DOCKER_LOG", str(tmp_path / "log"))
    return f"{programs}:{os.environ['PATH']}"


@pytest.fixture
def docker(search_path: str) -> Docker:
    found = find_backend(search_path, "docker", IMAGE)
    assert isinstance(found, Docker), found
    return found


def processes_in(project: Path, docker: Docker) -> LocalProcesses:
    config = SandboxConfig(
        backend="docker",
        image=IMAGE,
        filesystem=SandboxFilesystemConfig(deny_read=["private"]),
        limits=SandboxLimitsConfig(processes=77, memory_bytes=99_000_000, file_bytes=1_024_000),
    )
    policy = SandboxPolicy(
        roots=(str(project),),
        home=str(project.parent / "home"),
        program_files=(),
        readable=(),
        temporary=str(project.parent / "temporary"),
        search_path=os.environ["PATH"],
        config=config,
    )
    environ = os.environ | {"SHORT": "a value", "OF_THE_MACHINE": "/usr/share", "TWO": "a\nb"}
    environ["IN_THE_PROJECT"] = f"{project}/x"
    outputs = project.parent / "outputs"
    return LocalProcesses(outputs, environ=environ, sandbox=Sandbox(docker, policy))


async def run(project: Path, docker: Docker, command: str, seconds: float = 30) -> CommandResult:
    processes = processes_in(project, docker)
    result = await processes.run(command, project, timeout=seconds, on_output=_ignore)
    await processes.aclose()
    return result


def last_call(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.parent / "log").read_text().splitlines()[-1])
    return found


async def test_a_command_changes_the_project_and_sees_nothing_else(
    project: Path, docker: Docker
) -> None:
    command = "echo x > new; echo x > .vscode/tasks.json; cat private/key ../outside; ls .."
    result = await run(project, docker, f"{command}; echo x > /tmp/a && cat /var/tmp/a; pwd")
    assert (project / "new").read_text() == "x\n"
    assert (project / ".vscode/tasks.json").read_text() == "before"
    assert "secret" not in result.output
    assert "outside\n" not in result.output
    assert result.output.endswith(f"x\n{project}\n")


async def test_files_that_execute_by_themselves_are_moved_away(
    project: Path, docker: Docker
) -> None:
    result = await run(project, docker, "echo x > .envrc")
    assert [moved.path for moved in result.moved] == [f"{project}/.envrc"]


async def test_a_container_gets_limits_and_no_rights(project: Path, docker: Docker) -> None:
    await run(project, docker, "true")
    options = last_call(project)["options"]
    assert options["--cap-drop"] == ["ALL"]
    assert options["--network"] == ["none"]
    assert options["--pids-limit"] == ["77"]
    assert options["--memory"] == ["99000000"]
    assert set(options["--ulimit"]) == {"core=0", "fsize=1024000", "data=99000000"}
    assert "no-new-privileges" in options["--security-opt"]
    assert options["--user"] == [f"{os.geteuid()}:{os.getegid()}"]
    assert options["--pull"] == ["never"]
    assert {"--read-only", "--rm", "--init"} <= options.keys()
    assert options["--workdir"] == [str(project)]


async def test_a_container_gets_the_variables_that_mean_something_there(
    project: Path, docker: Docker
) -> None:
    result = await run(project, docker, 'echo "$SHORT $HOME $OF_THE_MACHINE ${IN_THE_PROJECT##*/}"')
    assert result.output == "a value /tmp  x\n"
    call = last_call(project)
    assert not {"PATH", "USER", "TWO", "OF_THE_MACHINE"} & call["variables"].keys()
    assert "SHORT" not in call["environ"]  # of the program that talks to the engine


async def test_a_container_ends_with_its_command(project: Path, docker: Docker) -> None:
    processes = processes_in(project, docker)
    command = "echo x > started; sleep 0.2; while :; do date > beat; sleep 0.02; done"
    running = asyncio.create_task(processes.run(command, project, timeout=60, on_output=_ignore))
    while not (project / "beat").exists():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await processes.aclose()
    name = last_call(project)["options"]["--name"][0]
    assert not (project.parent / name).exists()  # the stand-in removes it with the container


async def test_a_container_ends_when_the_agent_is_killed(project: Path, docker: Docker) -> None:
    run_agent = [sys.executable, "-c", AGENT, str(project), docker.program]
    agent = await asyncio.create_subprocess_exec(*run_agent, cwd=ROOT)
    async with asyncio.timeout(60):
        while not (project / "beat").exists():
            await asyncio.sleep(0.01)
        container = project.parent / last_call(project)["options"]["--name"][0]
        assert container.exists()
        agent.kill()
        await agent.wait()
        while container.exists():  # the stand-in removes it with the container
            await asyncio.sleep(0.01)


async def test_a_command_with_hosts_reaches_the_proxy(project: Path, docker: Docker) -> None:
    assert docker.has_network
    processes = processes_in(project, docker)
    fetch = "import urllib.request as r; print(r.urlopen('http://other.example/').status)"
    result = await processes.run(
        f'python3 -c "{fetch}"',
        project,
        timeout=30,
        on_output=_ignore,
        confinement=Confinement(hosts=("example.org",)),
    )
    await processes.aclose()
    assert result.refused_hosts == ("other.example:80",), result.output


def test_programs_of_this_machine_are_confined_on_it(docker: Docker, tmp_path: Path) -> None:
    launch = launch_reader(docker, ["git", "--version"], {"PATH": os.environ["PATH"]}, "/")
    launch.close_descriptors()
    assert docker.for_helpers is not None
    assert "docker" not in launch.argv[0]
    assert launch.argv[0] != "git"


def test_the_error_says_what_is_missing(search_path: str) -> None:
    found = find_backend(search_path, "docker")
    assert isinstance(found, Unavailable)
    assert "sandbox.image" in str(found)
    found = find_backend(search_path, "docker", "other-image")
    assert isinstance(found, Unavailable)
    assert "No such image: other-image" in str(found)
    assert "docker pull other-image" in str(found)
    found = find_backend("/nonexistent", "docker", IMAGE)
    assert isinstance(found, Unavailable)
    assert "neither docker nor podman" in str(found)


def test_podman_is_asked_to_keep_the_number_of_the_user() -> None:
    assert user_options("/usr/bin/podman")[0][:2] == ["--userns", "keep-id"]
    assert user_options("/usr/bin/docker")[0][0] == "--user"


async def _ignore(_text: str) -> None:
    pass
