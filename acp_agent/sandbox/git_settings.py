"""Tell git settings that are mere data from those that may name programs for git to run."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cache

from msgspec import Struct

from acp_agent.platform.data_tables import read_table
from acp_agent.platform.posix import end_group, find_git
from acp_agent.sandbox.git_data import read_small_file

_MAX_SIZE = 200_000  # bytes of a file of settings
_GIT_TIMEOUT = 5.0  # for git to read one
_HEADER = re.compile(r'\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)"\s*)?\]')

StartHelper = Callable[[Sequence[str]], "subprocess.Popen[bytes]"]


class _Settings(Struct, frozen=True, forbid_unknown_fields=True):
    harmless: tuple[str, ...]
    values: dict[str, frozenset[str]]


def is_git_data(name: str, value: str) -> bool:
    """Return whether a setting names no program and no outside file.

    Args:
        name: the setting, with section and name in lower case, as git prints it.
    """
    settings = _settings()
    if name in settings.values:
        return value in settings.values[name]
    return any(fnmatchcase(name, pattern) for pattern in settings.harmless)


def settings_are_data(path: str, writable: tuple[str, ...], start: StartHelper) -> bool:
    """Return whether a settings file names no program; true if there is no file.

    Runs git to read the file, since no other parser reads it in exactly the same way: call it in a
    thread.

    Args:
        path: the file, in a repository's git folder. A symlink counts as naming programs.
        writable: the folders in which a work tree may lie, resolved.
        start: starts git, with a pipe for its output.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SIZE:
        return False
    git = find_git(*writable)
    if git is None:
        return False
    output = _list_settings(git, path, start)
    if output is None:
        return False
    for setting in output.decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = setting.partition("\n")
        if name == "core.worktree":
            tree = os.path.realpath(os.path.join(os.path.dirname(path), value))  # noqa: PTH118, PTH120 - as above
            if not any(tree == root or tree.startswith(f"{root}/") for root in writable):
                return False
        elif name and not is_git_data(name, value):
            return False
    return True


def _list_settings(git: str, path: str, start: StartHelper) -> bytes | None:
    """Return git's list of the settings in a file, or None if git fails."""
    try:
        process = start((git, "config", "--file", path, "--no-includes", "--list", "-z"))
    except OSError:
        return None
    with process:
        try:
            output, _ = process.communicate(timeout=_GIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            end_group(process.pid, at_once=True)
            return None
    return None if process.returncode else output


def referenced_paths(config: str, folders: tuple[str, ...]) -> list[str]:
    """Return the files and folders that settings name, as programs, hooks or otherwise.

    Args:
        config: the settings file; files that it includes are not read.
        folders: the folders that relative names may start in.
    """
    paths: list[str] = []
    section = ""
    for line in os.fsdecode(read_small_file(config)).splitlines():
        if header := _HEADER.match(line):
            section = f"{header[1].lower()}." + (f"{header[2]}." if header[2] else "")
            continue
        key, _, value = line.partition("=")
        name, value = section + key.strip().lower(), value.strip().strip('"')
        if name.endswith(".worktree") or not value or is_git_data(name, value):
            continue
        for folder in folders:
            for word in {value, value.split()[0]}:
                path = os.path.realpath(f"{folder}/{word}" if word[0] != "/" else word)
                if os.path.exists(path):
                    paths.append(path)
    return paths


@cache
def _settings() -> _Settings:
    return read_table(__package__, "git_settings.toml", _Settings)
