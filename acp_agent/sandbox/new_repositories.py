"""Find repositories that commands created and that name programs for git to run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.sandbox.git_data import (
    common_data,
    gitlinks,
    is_repository,
    named_data,
    read_small,
    subfolders,
    submodules,
)
from acp_agent.sandbox.git_folders import GitFolders
from acp_agent.sandbox.git_settings import StartHelper, settings_are_data


class _Settings(Struct, frozen=True):
    """The content of a settings file, and a state that changes with the file."""

    text: bytes
    state: object

    @classmethod
    def read(cls, path: str) -> _Settings:
        """Return the settings in a file."""
        return cls(read_small(path), _state(path))


class NewRepositories:
    """Finds the new repositories of a folder.

    The results of `git init`, `git clone` and `git worktree add` are accepted, since their settings
    name no programs. For other repositories, the file by which git finds them must be renamed.

    Args:
        before: the repositories before the command.
        start: starts git, to read settings.
    """

    def __init__(self, before: GitFolders, start: StartHelper) -> None:
        self._before = before
        self._start = start
        self._suspects: set[str] = set()
        self._seen: dict[str, tuple[object, bool]] = {}  # by path of a settings file
        self._settings = {path: _Settings.read(path) for path in map(_config, before.data)}

    def find(self, *, ended: bool) -> Iterator[str]:
        """Yield the paths to rename. Call it in a thread.

        Args:
            ended: whether no command runs any more; until then git may still be creating a
                repository.
        """
        before = self._before
        for known in before.data:
            yield from self._find_in(known, ended=ended)
        for path, settings in list(self._settings.items()):
            if self._name_new_programs(path, settings):
                yield path
        self._suspects.update(before.new_folders_with_git())
        pending = [*before.with_git, *self._suspects]
        while pending:
            for folder in gitlinks(pending.pop()):
                if folder not in before.with_git | self._suspects:
                    self._suspects.add(folder)
                    pending.append(folder)
        for folder in self._suspects:
            data = None if folder in before.with_git else named_data(folder)
            if data is not None and self._names_program(data):
                yield f"{folder}/.git"
            is_new = folder not in before.data and is_repository(folder)
            if is_new and self._names_program(folder):
                yield f"{folder}/HEAD"

    def restore(self, path: str) -> None:
        """Restore the old settings of a repository, after the new ones were renamed."""
        settings = self._settings.get(path)
        if settings is not None:
            with suppress(OSError), open(path, "xb") as file:  # noqa: PTH123 - one of many
                file.write(settings.text)
            self._settings[path] = replace(settings, state=_state(path))

    def _name_new_programs(self, path: str, before: _Settings) -> bool:
        """Return whether settings name a program now, but did not before.

        A mount protects a file until another program replaces the file, as git outside does with
        each change of settings. After that, a command that still runs can write to it.
        """
        if _state(path) == before.state:
            return False
        now = _Settings.read(path)
        if self._are_data(path):
            if _state(path) == now.state:
                self._settings[path] = now
            return False
        with tempfile.NamedTemporaryFile() as file:
            file.write(before.text)
            file.flush()
            return self._are_data(file.name)

    def _find_in(self, data: str, *, ended: bool) -> Iterator[str]:
        """Yield the paths to rename in the git folder of an existing repository."""
        if data not in self._before.common and os.path.lexists(f"{data}/commondir"):
            yield f"{data}/commondir"
        for own in subfolders(f"{data}/worktrees"):
            if own not in self._before.worktrees:
                common = common_data(own)
                if common == own and not (ended or is_repository(own)):
                    continue  # `git worktree add` writes `commondir` last
                if common != data:
                    yield from (f"{own}/{name}" for name in ("commondir", "HEAD"))
                elif not self._are_data(f"{own}/config.worktree"):
                    yield f"{own}/config.worktree"
        for folder in submodules(data):
            if folder not in self._before.data and self._names_program(folder):
                yield f"{folder}/HEAD"

    def _names_program(self, data: str) -> bool:
        common = common_data(data)
        if common != data and self._names_program_itself(data):
            return True
        return common not in self._before.data and self._names_program_itself(common)

    def _names_program_itself(self, data: str) -> bool:
        if not all(self._are_data(f"{data}/{name}") for name in ("config", "config.worktree")):
            return True
        hooks = f"{data}/hooks"
        try:
            names = os.listdir(hooks)  # noqa: PTH208 - pathlib is slow
        except FileNotFoundError:
            names = []
        except OSError:
            return True
        return os.path.islink(hooks) or any(not name.endswith(".sample") for name in names)  # noqa: PTH114 - so

    def _are_data(self, path: str) -> bool:
        state = _state(path)
        if state is None:
            return True
        known = self._seen.get(path)
        if known is None or known[0] != state:
            data = settings_are_data(path, self._before.writable, self._start)
            known = self._seen[path] = state, data
        return known[1]


def _config(data: str) -> str:
    return f"{data}/config"


def _state(path: str) -> object:
    """Return values that change when a file is written or replaced; None if it does not exist."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns
