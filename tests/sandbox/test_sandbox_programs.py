"""This program's own helpers run confined."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

import acp_agent
from acp_agent.config.sandbox_types import BackendName, SandboxConfig
from acp_agent.errors import WorkspaceError
from acp_agent.language_servers import syntax_check
from acp_agent.language_servers.syntax_check import SyntaxChecks
from acp_agent.platform.posix import find_git
from acp_agent.sandbox.git_settings import settings_are_data
from acp_agent.sandbox.launch import Confine, Launch
from acp_agent.sandbox.programs import start_reader
from acp_agent.sandbox.sandbox import Unavailable, find_backend
from acp_agent.session.confinement import Confinement
from acp_agent.session.sandboxes import SharedSandboxes
from acp_agent.workspace.checkpoints.base import Deadline, Rules
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from acp_agent.workspace.git_repositories import GitRepositories
from acp_agent.workspace.git_status import git_status
from acp_agent.workspace.search import count_lines, find_files, find_lines, list_files
from acp_agent.workspace.worker_process import run_in_process

TRIES = """
import os, socket, sys
def refused(act, *given):
    try:
        act(*given)
    except OSError:
        return True
    return False
print([refused(open, sys.argv[1], "w"), refused(os.mkdir, sys.argv[1] + ".d"),
       refused(socket.socket, socket.AF_UNIX), refused(socket.socket, socket.AF_INET),
       refused(os.kill, int(sys.argv[2]), 0), os.path.exists(sys.argv[1])])
"""


@pytest.fixture
def confine() -> Confine:
    found = find_backend(os.environ.get("PATH"))
    if isinstance(found, Unavailable):
        pytest.skip(f"no sandbox: {found.reason}")
    return SharedSandboxes().confine(SandboxConfig(), os.environ.get("PATH"))


def test_a_helper_that_reads_changes_nothing_and_has_no_network(
    confine: Confine, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    argv = [sys.executable, "-c", TRIES, str(file), str(os.getppid())]
    process = confine(argv, os.environ, "/").start("/", stdout=subprocess.PIPE)
    assert process.communicate(timeout=20)[0] == b"[True, True, True, True, True, True]\n"


def test_git_says_the_same_confined(confine: Confine, workspace_repo: Path) -> None:
    (workspace_repo / "new").touch()
    folder = os.path.realpath(workspace_repo)
    used = GitRepositories(confine=confine).used_in(folder)
    assert used is not None
    assert used == GitRepositories().used_in(folder)
    status = git_status(folder, lambda: False, confine)
    assert status is not None
    assert ("??", "new") in status.changed


def test_helpers_run_as_before_where_the_user_wants_no_sandbox() -> None:
    confine = SharedSandboxes().confine(SandboxConfig(enabled=False), os.environ.get("PATH"))
    assert confine(["git", "status"], {}, "/").argv == ("git", "status")


async def test_searches_and_checks_find_the_same_confined(
    confine: Confine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path.resolve()
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.log").write_text("two\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "ripgreprc").write_text("--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(folder / "ripgreprc"))
    started: list[tuple[str, ...]] = []

    def noted(argv: Sequence[str], environ: Mapping[str, str], cwd: str) -> Launch:
        assert set(environ) <= {"HOME", "LC_ALL", "PATH", "XDG_CONFIG_HOME"}
        started.append(tuple(argv))
        return confine(argv, environ, cwd)

    assert sorted(await list_files(folder, confine=noted)) == [
        b".gitignore",
        b"a.txt",
        b"ripgreprc",
    ]
    found = await find_lines(
        folder, "two", glob=None, ignore_case=False, context=0, limit=9, width=99, confine=noted
    )
    assert [(line.name, line.number) for line in found.lines] == [("a.txt", 2)]
    assert (await find_files(folder, "*.txt", limit=9, confine=noted)).names == ("a.txt",)
    counted = await count_lines(
        folder, "two", glob="*.txt", ignore_case=False, limit=9, confine=noted
    )
    assert counted.counts == (("a.txt", 1),)
    monkeypatch.setattr(syntax_check, "MAX_SECONDS", 20.0)
    checks = SyntaxChecks([folder], os.environ["PATH"], noted)
    problems = await checks.new_problems({folder / "a.sh": (None, "if true; then\n")})
    assert [(one.line, one.source) for one in problems] == [(2, "syntax")]
    assert len(started) == 7  # a glob is held against a listing


async def test_what_a_parser_does_in_a_process_of_its_own_is_confined(
    confine: Confine, tmp_path: Path
) -> None:
    done = await run_in_process(
        "os.path:exists", {"path": str(tmp_path)}, bool, seconds=20.0, confine=confine
    )
    assert done
    with pytest.raises(WorkspaceError):
        await run_in_process(
            "os:mkdir", {"path": str(tmp_path / "new")}, object, seconds=20.0, confine=confine
        )
    assert not (tmp_path / "new").exists()


async def test_a_function_that_computes_for_too_long_is_ended() -> None:
    hostile = {"pattern": "(a+)+$", "string": "a" * 60 + "!"}
    with pytest.raises(WorkspaceError, match="or time"):
        await run_in_process("re:fullmatch", hostile, object, seconds=60.0, cpu_seconds=0.2)


def test_every_place_that_starts_a_program_is_known() -> None:
    """A new one is to be confined, or gets its reason in `programs.toml`."""
    known = tomllib.loads(Path(__file__).with_name("programs.toml").read_text("utf-8"))
    root = Path(acp_agent.__file__).parent
    starts = re.compile(
        r"\bstart_process\(|create_subprocess_(?:exec|shell)\(|\bPopen\(|\bsubprocess\.(?:run|call|check_\w+)\(|os\.(?:exec|spawn|posix_spawn|system|popen|fork)\w*\("
    )
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if starts.search(path.read_text("utf-8"))
    }
    assert found == set(known)


# In the place of git: what a git would do that a file of the project got hold of.
TAKEN_OVER = """#!/bin/sh
for word; do case $word in ls-files|check-ignore|update-index|config)
  echo x > {outside}/$word; echo x > {project}/.$word;; esac; done
exec {git} "$@"
"""


@pytest.mark.parametrize("attributes", [False, True])
@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
def test_git_of_checkpoints_changes_nothing_but_the_checkpoints_while_it_parses_a_project(
    tmp_path: Path, backend: BackendName, attributes: bool
) -> None:
    outside, project, program = tmp_path / "outside", tmp_path / "project", tmp_path / "git"
    for folder in (outside, project / "sub"):
        folder.mkdir(parents=True)
    program.write_text(TAKEN_OVER.format(outside=outside, project=project, git=find_git()))
    program.chmod(0o755)
    sandboxes = SharedSandboxes()
    config = SandboxConfig(backend=backend)
    if sandboxes.find(config, os.environ.get("PATH"), "/") is None:
        pytest.skip(f"no {backend}")
    confinement = Confinement(
        config=config, sandboxes=sandboxes, environ=os.environ, home=tmp_path, program_files=()
    )
    checkpoints = FolderCheckpoints(
        tmp_path / "data" / "checkpoints",
        "s",
        (project,),
        Rules(),
        str(program),
        confine=confinement.writer,
    )
    (project / "sub" / "a").write_text("1")
    if attributes:
        (project / ".gitattributes").write_text("* text\n")
    before = checkpoints.save("a", Deadline(30))[project]
    (project / "sub" / "a").write_text("2")
    assert checkpoints.save("b", Deadline(30))[project].tree != before.tree
    made = {path.name for path in outside.iterdir()}
    assert made == (set() if attributes else {"update-index"})  # which then parses nothing


def test_settings_of_a_new_repository_are_read_by_a_confined_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = find_backend(os.environ.get("PATH"))
    if isinstance(backend, Unavailable):
        pytest.skip(f"no sandbox: {backend.reason}")
    programs, outside = tmp_path / "bin", tmp_path / "outside"
    programs.mkdir()
    outside.mkdir()
    git = find_git()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (programs / "git").write_text(TAKEN_OVER.format(outside=outside, project=outside, git=git))
    (programs / "git").chmod(0o755)
    start = partial(start_reader, backend)
    config = tmp_path / "config"
    config.write_text("[core]\n\tfsmonitor = x\n")
    assert not settings_are_data(str(config), (), start)
    assert settings_are_data(str(tmp_path / "none"), (), start)
    config.write_text("[core]\n\tbare = false\n")
    assert settings_are_data(str(config), (), start)
    assert not list(outside.iterdir())

    def unconfined(argv: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv, stdout=subprocess.PIPE)

    assert settings_are_data(str(config), (), unconfined)
    assert (outside / "config").exists()  # that git was it
