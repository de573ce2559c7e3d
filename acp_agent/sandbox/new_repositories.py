"""Find repositories that commands created and that name programs for git to run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.sandbox.git_data import (
    find_common_dir,
    find_git_dir,
    is_complete_git_dir,
    is_git_dir,
    read_small_file,
    subfolders,
    submodule_folders,
    submodule_git_dirs,
)
from acp_agent.sandbox.git_folders import GitFolders
from acp_agent.sandbox.git_listings import OutsideLinks
from acp_agent.sandbox.git_settings import StartHelper, settings_are_data


class _Settings(Struct, frozen=True):
    """The content of a settings file, and a state that changes with the file."""

    text: bytes
    state: object

    @classmethod
    def read(cls, path: str) -> _Settings:
        """Return the settings in a file."""
        return cls(read_small_file(path), _state(path))


class NewRepositories:
    """Finds the new repositories of a folder.

    The results of `git init`, `git clone` and `git worktree add` are accepted, since their settings
    name no programs. For other repositories, the file by which git finds them must be renamed.

    Args:
        initial: the repositories before the command.
        start: starts git, to read settings.
    """

    def __init__(self, initial: GitFolders, start: StartHelper) -> None:
        self._initial = initial
        self._start = start
        self._suspects: set[str] = set()
        self._checked: dict[str, tuple[object, bool]] = {}  # by path of a settings file
        writable = (*initial.writable, *initial.outside_git_dirs)
        self._links = [OutsideLinks(git_dir, writable) for git_dir in initial.git_dirs]
        self._settings = {path: _Settings.read(path) for path in map(_config, initial.git_dirs)}

    def find(self, *, ended: bool) -> Iterator[str]:
        """Yield the paths to rename. Call it in a thread.

        Args:
            ended: whether no command runs any more; until then git may still be creating a
                repository.
        """
        initial = self._initial
        for git_dir in initial.git_dirs:
            yield from self._find_in(git_dir, ended=ended)
        for links in self._links:
            yield from links.find(ended=ended)
        for path, settings in list(self._settings.items()):
            if self._names_new_programs(path, settings):
                yield path
        self._suspects.update(initial.new_folders_with_git(ended=ended))
        pending = [*initial.work_trees, *self._suspects]
        while pending:
            for folder in submodule_folders(pending.pop()):
                if folder not in initial.work_trees | self._suspects:
                    self._suspects.add(folder)
                    pending.append(folder)
        for folder in self._suspects:
            new_git_dir = None if folder in initial.work_trees else find_git_dir(folder)
            if new_git_dir is not None and self._names_program(new_git_dir):
                yield f"{folder}/.git"
            is_new = folder not in initial.git_dirs and is_git_dir(folder)
            if is_new and self._names_program(folder):
                yield f"{folder}/HEAD"

    def restore(self, path: str) -> None:
        """Restore the old settings of a repository, after the new ones were renamed."""
        settings = self._settings.get(path)
        if settings is not None:
            with suppress(OSError), open(path, "xb") as file:  # noqa: PTH123 - one of many
                file.write(settings.text)
            self._settings[path] = replace(settings, state=_state(path))

    def _names_new_programs(self, path: str, initial: _Settings) -> bool:
        """Return whether settings name a program now, but did not before.

        A mount protects a file until another program replaces the file, as git outside does with
        each change of settings. After that, a command that still runs can write to it.
        """
        if _state(path) == initial.state:
            return False
        current = _Settings.read(path)
        if self._are_data(path):
            if _state(path) == current.state:
                self._settings[path] = current
            return False
        with tempfile.NamedTemporaryFile() as file:
            file.write(initial.text)
            file.flush()
            return self._are_data(file.name)

    def _find_in(self, git_dir: str, *, ended: bool) -> Iterator[str]:
        """Yield the paths to rename in the git folder of an existing repository."""
        if git_dir not in self._initial.with_commondir and os.path.lexists(f"{git_dir}/commondir"):
            yield f"{git_dir}/commondir"
        for linked_git_dir in subfolders(f"{git_dir}/worktrees"):
            if linked_git_dir not in self._initial.linked_git_dirs:
                # `git worktree add` writes `commondir` last, and maybe just now.
                is_complete = ended or is_complete_git_dir(linked_git_dir)
                common_dir = find_common_dir(linked_git_dir)
                if common_dir == linked_git_dir and not is_complete:
                    continue
                if common_dir != git_dir:
                    yield from (f"{linked_git_dir}/{name}" for name in ("commondir", "HEAD"))
                elif not self._are_data(f"{linked_git_dir}/config.worktree"):
                    yield f"{linked_git_dir}/config.worktree"
        for folder in submodule_git_dirs(git_dir):
            if folder not in self._initial.git_dirs and self._names_program(folder):
                yield f"{folder}/HEAD"

    def _names_program(self, git_dir: str) -> bool:
        common_dir = find_common_dir(git_dir)
        if common_dir != git_dir and self._names_program_itself(git_dir):
            return True
        return common_dir not in self._initial.git_dirs and self._names_program_itself(common_dir)

    def _names_program_itself(self, git_dir: str) -> bool:
        if not all(self._are_data(f"{git_dir}/{name}") for name in ("config", "config.worktree")):
            return True
        hooks = f"{git_dir}/hooks"
        try:
            names = os.listdir(hooks)  # noqa: PTH208 - pathlib is slow
        except FileNotFoundError:
            names = []
        except OSError:
            return True
        return os.path.islink(hooks) or any(not name.endswith(".sample") for name in names)

    def _are_data(self, path: str) -> bool:
        state = _state(path)
        if state is None:
            return True
        cached = self._checked.get(path)
        if cached is None or cached[0] != state:
            are_data = settings_are_data(path, self._initial.writable, self._start)
            cached = self._checked[path] = state, are_data
        return cached[1]


def _config(git_dir: str) -> str:
    return f"{git_dir}/config"


def _state(path: str) -> object:
    """Return values that change when a file is written or replaced; None if it does not exist."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_ctime_ns
