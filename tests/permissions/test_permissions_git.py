"""Which git commands run unasked, judged by what real repositories set.

The programs that the repositories name are markers that touch a file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_agent.permissions.access import Allow, Ask, Verdict
from acp_agent.workspace.environment import added_variables, command_environ
from acp_agent.workspace.git_repositories import GitRepositories
from tests.permissions.gate_room import Room

TABLE = tomllib.loads((Path(__file__).parent / "git_settings.toml").read_text("utf-8"))
ORDINARY = ["git status", "git log -p", "git diff", "git show HEAD", "git blame tracked.bin"]


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own git settings."""
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return settings


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A program that notes that it was run."""
    program = tmp_path / "marker"
    program.write_text(f"#!/bin/sh\necho ran >> {tmp_path / 'ran'}\ncat\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[], bool]:
    """Whether the marker was run."""
    return (tmp_path / "ran").exists


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a changed file whose attributes name drivers."""
    folder = tmp_path_factory.mktemp("sample")
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitattributes").write_text("*.bin diff=bin filter=bin\n")
    (folder / "tracked.bin").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "Start")
    (folder / "tracked.bin").write_text("two\n")
    return folder


@pytest.fixture
def project(room: Room, sample: Path) -> Path:
    """The room's project, a copy of it."""
    (room.project / ".git").rmdir()
    shutil.copytree(sample, room.project, dirs_exist_ok=True)
    os.utime(room.project / "tracked.bin", (1, 1))
    return room.project


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, timeout=30)


def add_settings(git_dir: Path, text: str) -> None:
    with (git_dir / "config").open("a") as file:
        file.write(f"\n{text}\n")


def is_asked(verdict: Verdict) -> bool:
    assert isinstance(verdict, (Ask, Allow)), verdict
    return isinstance(verdict, Ask)


def run_unasked(line: str, folder: Path) -> str:
    """Run a command line as it runs when nobody was asked; what it printed."""
    environ = command_environ(os.environ)
    environ |= added_variables(environ, only_reads=True)
    ran = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    return ran.stdout + ran.stderr


@pytest.mark.parametrize(("text", "line"), TABLE["asked"], ids=lambda text: repr(text)[:60])
def test_git_needs_permission_if_the_repository_may_name_a_program(
    room: Room, project: Path, marker: Path, ran: Callable[[], bool], text: str, line: str
) -> None:
    assert not is_asked(room.command(line))
    git_dir = project / ".git"
    for name in ("more", "config.worktree"):
        (git_dir / name).write_text(f"[core]\nfsmonitor = {marker}\n")
    add_settings(git_dir, text.replace("{program}", str(marker)))
    assert is_asked(room.command(line))
    assert not isinstance(room.command(line, mode="plan"), Allow)
    assert not ran()


@pytest.mark.parametrize("text", TABLE["unasked"], ids=lambda text: repr(text)[:60])
def test_git_runs_without_a_question_in_ordinary_repositories(
    room: Room, project: Path, text: str
) -> None:
    add_settings(project / ".git", text)
    for line in ORDINARY:
        assert not is_asked(room.command(line)), line


@pytest.mark.parametrize("line", TABLE["words"])
def test_git_needs_permission_if_its_arguments_may_run_a_program(
    room: Room, project: Path, line: str
) -> None:
    assert project == room.project
    assert is_asked(room.command(line))


def test_a_clone_a_subfolder_a_worktree_and_a_submodule_are_ordinary(
    room: Room, sample: Path
) -> None:
    (room.project / ".git").rmdir()
    git(room.home, "clone", "-q", str(sample), "project/clone")
    clone = room.project / "clone"
    (clone / "sub").mkdir()
    git(clone, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sample), "inner")
    git(clone, "worktree", "add", "-q", str(room.project / "linked"))
    for folder in (clone, clone / "sub", clone / "inner", room.project / "linked"):
        assert not is_asked(room.command("git status && git log -p", cwd=folder)), folder


@pytest.mark.parametrize("within", ["linked", "inner"])
def test_a_session_in_a_linked_worktree_or_a_submodule_reads_the_repository_outside(
    room: Room, project: Path, sample: Path, within: str
) -> None:
    git(project, "worktree", "add", "-q", "linked")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sample), "inner")
    room.project = project / within
    assert not is_asked(room.command("git status"))


def test_programs_in_the_users_own_settings_are_trusted(
    room: Room, project: Path, user: Path, marker: Path
) -> None:
    assert project == room.project
    user.write_text(f'[core]\npager = {marker}\n[filter "lfs"]\nprocess = git-lfs filter-process\n')
    assert not is_asked(room.command("git status"))


@pytest.mark.parametrize(
    "shape", ["plain", "dangling HEAD", "refs a file", "commondir", ".git file"]
)
@pytest.mark.parametrize("line", ["git -C vendor status", "cd vendor && git status"])
def test_a_folder_that_poses_as_a_repository_runs_nothing(
    room: Room, project: Path, marker: Path, ran: Callable[[], bool], shape: str, line: str
) -> None:
    assert not is_asked(room.command("git status"))
    (project / "vendor").mkdir()
    plant(project / "vendor", shape, f"[core]\nfsmonitor = {marker}\nbare = false\nworktree = .\n")
    assert is_asked(room.command(line))
    assert not isinstance(room.command(line, mode="plan"), Allow)
    if shape != ".git file":  # is no bare repository: the question alone is in front of it
        run_unasked(line, project)
        assert not ran()
    assert not is_asked(room.command("git status"))


def plant(folder: Path, shape: str, settings: str) -> None:
    """Make a folder a repository, out of files that an archive or a repository can hold."""
    git_dir = folder / "elsewhere" if shape == ".git file" else folder
    git_dir.mkdir(exist_ok=True)
    if shape == ".git file":
        (folder / ".git").write_text("gitdir: elsewhere\n")
    common = git_dir
    if shape == "commondir":
        common = git_dir / "common"
        common.mkdir()
        (git_dir / "commondir").write_text("common\n")
    if shape == "dangling HEAD":
        (git_dir / "HEAD").symlink_to("refs/heads/nowhere")
    else:
        (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (common / "objects").mkdir()
    if shape == "refs a file":
        (common / "refs").write_text("")
        (common / "refs").chmod(0o755)
    else:
        (common / "refs").mkdir()
    (common / "config").write_text(settings)


def test_a_foreign_repository_is_not_read_through_a_file_or_a_link(
    room: Room, sample: Path
) -> None:
    private = room.home / "private"
    shutil.copytree(sample, private)
    dot_git = room.project / ".git"
    dot_git.rmdir()
    dot_git.write_text(f"gitdir: {private}/.git\n")
    assert is_asked(room.command("git log -p"))
    dot_git.unlink()
    dot_git.symlink_to(private / ".git")
    assert is_asked(room.command("git log -p"))
    dot_git.unlink()
    dot_git.mkdir()
    (dot_git / "HEAD").write_text("ref: refs/heads/main\n")
    (dot_git / "commondir").write_text(f"{private}/.git\n")
    (dot_git / "gitdir").write_text(f"{room.project}/.git\n")
    assert is_asked(room.command("git log -p"))


@pytest.mark.parametrize("depth", [1, 2])
def test_the_settings_of_submodules_count(
    room: Room, project: Path, sample: Path, marker: Path, ran: Callable[[], bool], depth: int
) -> None:
    folder = project
    for _ in range(depth):
        shutil.copytree(sample, folder / "inner")
        git(folder, "add", "inner")
        git(folder, "commit", "-qm", "Add")
        folder /= "inner"
    assert not is_asked(room.command("git status"))
    add_settings(folder / ".git", f'[filter "bin"]\nclean = {marker}')
    assert is_asked(room.command("git status"))
    assert is_asked(room.command("git diff"))
    assert not ran()
    # Git gives a submodule none of its settings, which is why they are looked at.
    run_unasked("git status", project)
    assert ran()


@pytest.mark.parametrize("name", ["config", "HEAD", "index", "commondir"])
def test_git_is_not_started_where_it_would_wait_for_a_pipe(
    room: Room, project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(GitRepositories, "_walk", lambda *_: pytest.fail("git was started"))
    (project / ".git" / name).unlink(missing_ok=True)
    (project / ".git" / "config").write_text("")
    (project / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(project / ".git" / name)
    assert is_asked(room.command("git status"))


def test_git_needs_permission_if_its_files_cannot_be_read_in_time(
    room: Room, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.workspace.git_repositories._MAX_SECONDS", 0.5)
    os.mkfifo(project / "pipe")
    add_settings(project / ".git", f"[include]\npath = {project}/pipe")
    assert is_asked(room.command("git status"))


@pytest.mark.parametrize(
    "hook", ["post-index-change", "fsmonitor-watchman", "reference-transaction"]
)
def test_git_without_a_question_runs_no_hook(
    room: Room, project: Path, marker: Path, ran: Callable[[], bool], hook: str
) -> None:
    hooks = project / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / hook).symlink_to(marker)
    for line in [*ORDINARY, "git describe --always --dirty", "git diff HEAD"]:
        os.utime(project / "tracked.bin", (len(line), 1))
        assert not is_asked(room.command(line))
        assert "fatal" not in run_unasked(line, project)
    assert not ran()


def test_a_partial_clone_fetches_nothing_without_permission(
    sample: Path, tmp_path: Path, marker: Path, ran: Callable[[], bool]
) -> None:
    clone = tmp_path / "partial"
    git(sample, "config", "uploadpack.allowFilter", "true")
    words = ("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{sample}", str(clone))
    git(tmp_path, *words)
    git(clone, "config", "remote.origin.uploadpack", str(marker))
    assert "fatal" in run_unasked("git show HEAD:tracked.bin", clone)
    assert not ran()


def test_settings_that_the_user_gives_by_the_environment_stay(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "Somebody")
    assert run_unasked("git config user.name", project) == "Somebody\n"
    assert run_unasked("git config safe.bareRepository", project) == "explicit\n"
    assert run_unasked("git config core.hooksPath", project) == "/dev/null\n"


@pytest.mark.parametrize("count", ["", "x", "²", "-1"])
def test_an_invalid_count_in_the_settings_is_replaced(count: str) -> None:
    added = added_variables({"GIT_CONFIG_COUNT": count}, only_reads=False)
    assert added == {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.bareRepository",
        "GIT_CONFIG_VALUE_0": "explicit",
    }
