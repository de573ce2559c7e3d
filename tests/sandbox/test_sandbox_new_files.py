"""What commands make that other programs would run by themselves is moved away."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Literal

import pytest
from msgspec import Struct, convert, field

from acp_agent.config.sandbox_types import SandboxConfig, SandboxFilesystemConfig
from acp_agent.sandbox.git_data import is_complete_git_dir
from acp_agent.sandbox.landlock.backend import Landlock
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.sandbox import Backend, Sandbox, Unavailable, find_backend
from acp_agent.workspace.processes import LocalProcesses


class Case(Struct, forbid_unknown_fields=True):
    """A case of `new_files.toml`, which describes the fields."""

    run: str
    before: str = ""
    moved: list[str] = field(default_factory=list)
    stays: dict[str, str] = field(default_factory=dict)
    allowed: list[str] = field(default_factory=list)
    signal: str | None = None


CASES = convert(
    tomllib.loads(Path(__file__).with_name("new_files.toml").read_text("utf-8")), dict[str, Case]
)
IDENTITY = {
    f"GIT_{who}_{what}": "x@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


@pytest.fixture(scope="module")
def backend() -> Backend:
    found = find_backend(os.environ.get("PATH"))
    if isinstance(found, Unavailable):
        pytest.skip(f"no sandbox: {found.reason}")
    if isinstance(found, Landlock):
        pytest.skip("Landlock refuses to make such files: tests/sandbox/test_sandbox_landlock.py")
    return found


def processes_in(
    project: Path, backend: Backend, allowed: list[str]
) -> tuple[LocalProcesses, Sandbox]:
    policy = SandboxPolicy(
        roots=(str(project),),
        home=str(project.parent / "home"),
        program_files=(),
        readable=(),
        temporary=str(project.parent / "temporary"),
        search_path=os.environ["PATH"],
        config=SandboxConfig(filesystem=SandboxFilesystemConfig(allow_write=allowed)),
    )
    sandbox = Sandbox(backend, policy)
    environ = os.environ | IDENTITY | {"HOME": policy.home}
    outputs = project.parent / "outputs"
    return LocalProcesses(outputs, environ=environ, sandbox=sandbox), sandbox


@pytest.mark.parametrize("name", CASES)
async def test_what_others_would_run_by_themselves_is_moved_away(
    name: str, backend: Backend, tmp_path: Path
) -> None:
    case, project = CASES[name], Path(os.path.realpath(tmp_path), "project")
    project.mkdir()
    subprocess.run(["sh", "-c", case.before], cwd=project, env=os.environ | IDENTITY, check=True)
    processes, _ = processes_in(project, backend, case.allowed)
    result = await processes.run(case.run, project, timeout=20, on_output=_ignore)
    await processes.aclose()
    assert {one.path for one in result.moved} == {str(project / path) for path in case.moved}
    for moved in result.moved:
        assert Path(moved.path).with_name(moved.name).exists()
    assert result.signal == case.signal
    for path in case.moved:
        assert path in case.stays or not os.path.lexists(project / path)
    for path, text in case.stays.items():
        assert (project / path).exists()
        if not path.endswith("/"):
            assert (project / path).read_text().startswith(text)


@pytest.mark.parametrize("backend_name", ["bubblewrap", "landlock"])
async def test_repositories_of_packages_keep_their_settings_and_hooks(
    backend_name: Literal["bubblewrap", "landlock"], tmp_path: Path
) -> None:
    backend = find_backend(os.environ.get("PATH"), backend_name)
    if isinstance(backend, Unavailable):
        pytest.skip(f"no sandbox: {backend.reason}")
    project = Path(os.path.realpath(tmp_path), "project")
    folders = ["node_modules/name", "node_modules/@scope/name", ".venv/src/name"]
    for folder in ("", *folders):
        subprocess.run(["git", "init", "-q", project / folder], check=True)
    before = [(project / folder / ".git/config").read_text() for folder in folders]
    processes, _ = processes_in(project, backend, [])
    line = (
        "for f in node_modules/name node_modules/@scope/name .venv/src/name; do "
        "echo evil >> $f/.git/config; echo evil > $f/.git/hooks/post-checkout; "
        "echo evil > $f/.git/new; mv $f/.git/new $f/.git/config; mv $f/.git $f/other; "
        "echo x > $f/code; done; git init -q node_modules/new; "
        "git -C node_modules/new config core.fsmonitor evil"
    )
    result = await processes.run(line, project, timeout=20, on_output=_ignore)
    await processes.aclose()
    for folder, text in zip(folders, before, strict=True):
        assert (project / folder / ".git/config").read_text() == text
        assert not (project / folder / ".git/hooks/post-checkout").exists()
        assert (project / folder / "code").exists()
    assert [one.path for one in result.moved] == [str(project / "node_modules/new/.git")]


async def test_a_file_that_a_tool_writes_meanwhile_stays(backend: Backend, tmp_path: Path) -> None:
    project = Path(os.path.realpath(tmp_path), "project")
    project.mkdir()
    processes, sandbox = processes_in(project, backend, [])
    line = "echo > ready; until [ -e .gdbinit ]; do sleep 0.01; done; echo x > .envrc"
    running = asyncio.create_task(processes.run(line, project, timeout=20, on_output=_ignore))
    while not (project / "ready").exists():
        await asyncio.sleep(0.01)
    sandbox.allow_new_file(str(project / ".gdbinit"))
    (project / ".gdbinit").write_text("the user allowed it")
    result = await running
    await processes.aclose()
    assert (project / ".gdbinit").exists()
    assert [one.path for one in result.moved] == [str(project / ".envrc")]


async def test_settings_that_git_rewrites_outside_are_still_protected(
    backend: Backend, tmp_path: Path
) -> None:
    project = Path(os.path.realpath(tmp_path), "project")
    project.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    processes, _ = processes_in(project, backend, [])
    line = "echo > ready; until [ -e go ]; do sleep 0.1; done; git config core.pager evil"
    running = asyncio.create_task(processes.run(line, project, timeout=20, on_output=_ignore))
    while not (project / "ready").exists():
        await asyncio.sleep(0.01)
    subprocess.run(["git", "config", "user.name", "me"], cwd=project, check=True)
    (project / "go").touch()
    result = await running
    await processes.aclose()
    config = project / ".git/config"
    assert "pager" not in config.read_text()
    assert "bare = false" in config.read_text()
    assert [one.path for one in result.moved] == [str(config)]


async def test_harmless_settings_that_git_writes_outside_stay(
    backend: Backend, tmp_path: Path
) -> None:
    project = Path(os.path.realpath(tmp_path), "project")
    project.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    processes, _ = processes_in(project, backend, [])
    line = "echo > ready; until [ -e go ]; do sleep 0.01; done"
    running = asyncio.create_task(processes.run(line, project, timeout=20, on_output=_ignore))
    while not (project / "ready").exists():
        await asyncio.sleep(0.01)
    subprocess.run(["git", "config", "user.name", "me"], cwd=project, check=True)
    (project / "go").touch()
    assert (await running).moved == ()
    await processes.aclose()
    assert "name = me" in (project / ".git/config").read_text()


async def _ignore(_text: str) -> None:
    pass


def test_a_work_tree_is_complete_once_git_has_written_its_last_file(tmp_path: Path) -> None:
    (tmp_path / "HEAD").write_text("ref: refs/heads/x\n")
    assert not is_complete_git_dir(str(tmp_path))
    (tmp_path / "commondir").touch()
    assert not is_complete_git_dir(str(tmp_path))
    (tmp_path / "commondir").write_text("../..\n")
    assert is_complete_git_dir(str(tmp_path))
