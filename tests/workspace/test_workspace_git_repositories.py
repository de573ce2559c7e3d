"""What is known of a repository is read again whenever git could see something else there."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acp_agent.workspace import git_repositories
from acp_agent.workspace.git_repositories import GitRepositories, Repository, RepositoryCache

Settings = list[tuple[str, dict[str, str]]]


@pytest.fixture
def count_queries(
    workspace_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Settings, int]]:
    """Returns what is known of a folder of the repository, and how often git was asked for it."""
    cache = RepositoryCache()
    # Any time is long ago, but to the test of the clock's tick.
    monkeypatch.setattr(git_repositories, "_SETTLED", -(10**18))
    records = GitRepositories._records
    query_count = [0]

    def counted(self: GitRepositories, *arguments: object) -> object:
        query_count[0] += 1
        return records(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(GitRepositories, "_records", counted)

    def used(folder: str) -> tuple[Settings, int]:
        query_count[0] = 0
        repositories = GitRepositories(cache=cache).used_in(
            os.path.realpath(workspace_repo / folder)
        )
        return [
            (repository.git_dir, dict(repository.settings)) for repository in repositories or ()
        ], query_count[0]

    return used


def test_git_runs_once_for_each_folder_of_a_repository(
    count_queries: Callable[[str], tuple[Settings, int]], workspace_repo: Path
) -> None:
    first, query_count = count_queries(".")
    assert (len(first), query_count > 0) == (1, True)
    assert count_queries(".") == (first, 0)
    (workspace_repo / "new.txt").write_text("x")
    assert count_queries(".") == (first, 0)
    assert count_queries("src") == (first, query_count)
    assert count_queries("src") == (first, 0)


# What is done to the repository, and whether its settings or git's folder are others then.
CHANGES = {
    "git config core.pager evil": True,
    "printf '[core]\\n\\tpager = evil\\n' >> .git/config": True,
    "git config extensions.worktreeConfig true; git config --worktree core.pager evil": True,
    "git init -q src": True,
    "git init -q --bare x; cp -r x/HEAD x/objects x/refs x/config src": True,
    "mv .git elsewhere; echo 'gitdir: elsewhere' > .git": True,
    "mv .git elsewhere; ln -s elsewhere .git": True,
    "rm -r .git/objects": True,
    "rm .git/HEAD": True,
    "cp .git/config c; cat c > .git/config": False,
    "git checkout -q -b other": False,
}


@pytest.mark.parametrize("command", CHANGES)
def test_git_runs_again_after_every_relevant_change(
    count_queries: Callable[[str], tuple[Settings, int]], workspace_repo: Path, command: str
) -> None:
    before, _ = count_queries("src")
    assert count_queries("src")[1] == 0
    environ = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["/bin/sh", "-c", command], cwd=workspace_repo, env=environ, check=True)
    after, query_count = count_queries("src")
    assert query_count > 0
    assert (after != before) is CHANGES[command]


def test_settings_with_includes_links_and_submodules_are_read_each_time(
    count_queries: Callable[[str], tuple[Settings, int]], workspace_repo: Path
) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=workspace_repo, check=True, capture_output=True)

    git("config", "include.path", "not-there-yet")
    assert count_queries(".")[1] == count_queries(".")[1] > 0
    git("config", "--unset", "include.path")
    assert count_queries(".")[1] > count_queries(".")[1] == 0
    shutil.copytree(workspace_repo, workspace_repo.parent / "inner")
    shutil.move(workspace_repo.parent / "inner", workspace_repo / "inner")
    git("add", "inner")
    assert len(count_queries(".")[0]) == 2
    assert count_queries(".")[1] > 0
    shutil.rmtree(workspace_repo / "inner" / ".git")
    assert len(count_queries(".")[0]) == 1
    assert count_queries(".")[1] > 0  # it may come back, which changes nothing here


# Settings of repositories that are elsewhere, or are used only from some time on.
LOCATION_VARIABLES = [
    "mv .git/config settings; ln -s ../settings .git/config",
    "mv .git/refs refs; ln -s ../refs .git/refs",
    "mkdir c; mv .git/objects .git/refs .git/config c; echo ../c > .git/commondir",
    "mv .git real; echo 'gitdir: real' > .git",
    "echo broken > .git/HEAD",
]


@pytest.mark.parametrize("command", LOCATION_VARIABLES)
def test_settings_that_may_change_unnoticed_are_read_each_time(
    count_queries: Callable[[str], tuple[Settings, int]], workspace_repo: Path, command: str
) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=workspace_repo, check=True)
    assert count_queries(".")[1] > 0
    assert count_queries(".")[1] > 0


def test_a_repository_named_by_a_variable_is_read_each_time(
    count_queries: Callable[[str], tuple[Settings, int]],
    workspace_repo: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GIT_DIR", str(workspace_repo / ".git"))
    assert count_queries(".")[1] == count_queries(".")[1] > 0


def test_a_file_that_changed_a_moment_ago_is_not_relied_on(
    workspace_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repositories, "_SETTLED", 10**18)
    cache = RepositoryCache()
    GitRepositories(cache=cache).used_in(str(workspace_repo))
    assert cache.get(str(workspace_repo)) is None


def test_threads_that_ask_at_the_same_time_have_git_read_a_folder_once(
    workspace_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repositories, "_SETTLED", -(10**18))
    cache, folder = RepositoryCache(), os.path.realpath(workspace_repo)
    queries: list[object] = []
    both_ask = threading.Barrier(2, timeout=60)
    records = GitRepositories._records

    def counted(self: GitRepositories, *arguments: object) -> object:
        queries.append(arguments[0])
        return records(self, *arguments)  # type: ignore[arg-type]  # passed on as they are

    def ask() -> tuple[Repository, ...] | None:
        both_ask.wait()
        return GitRepositories(cache=cache).used_in(folder)

    monkeypatch.setattr(GitRepositories, "_records", counted)
    with ThreadPoolExecutor(2) as pool:
        first, second = (answer.result() for answer in [pool.submit(ask), pool.submit(ask)])
    assert first == second
    assert first
    assert len(queries) == len(set(queries)) > 0


def test_who_is_stopped_does_not_wait_for_another_thread_that_reads(workspace_repo: Path) -> None:
    cache, folder = RepositoryCache(), os.path.realpath(workspace_repo)
    with cache.reading(folder, lambda: False):
        assert GitRepositories(lambda: True, cache=cache).used_in(folder) is None
