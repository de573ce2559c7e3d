"""Decide which files a checkpoint saves, by ignore files, size, name and permissions."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from acp_agent.workspace.checkpoints.base import (
    OuterRules,
    Rules,
    UnsavedFile,
    below,
    is_plain,
    join,
)

_MAX_RULES_BYTES = 10_000_000  # bytes read of an ignore file


def exclusions(root: Path, top: Path, data: Path, patterns: Sequence[str]) -> bytes:
    """Return the exclusions that come in addition to ignore files, as lines of an ignore file.

    Args:
        top: the folder that the lines are relative to.
        data: acp-agent's data folder, which may lie below `top`.
        patterns: the user's patterns, relative to the session's folder.
    """
    # The lines of the repository's info/exclude file (gitignore(5)).
    text = rules_text(_shared_folder(top) / "info" / "exclude") or b""
    lines = [line for line in text.splitlines() if not line.startswith(b"#")]
    root_pattern = _escape_pattern(_relative(root, top))
    lines.extend(_rewrite_pattern(os.fsencode(pattern), root_pattern) for pattern in patterns)
    if data.is_relative_to(top):
        lines.append(b"/" + _escape_pattern(os.fsencode(data.relative_to(top))) + b"/")
    return b"".join(line + b"\n" for line in lines)


def outer_rules(root: Path, top: Path, lines: bytes) -> OuterRules:
    """Return the rules that exclude files of a folder but are not saved with it.

    Args:
        lines: the result of `exclusions` for the two.
    """
    files = [(b"", lines)] if lines else []
    parent = root
    while parent != top:
        parent = parent.parent
        text = rules_text(parent / ".gitignore", through_links=False)
        if text is not None:
            files.append((_relative(parent, top), text))
    return OuterRules(below=_relative(root, top), files=tuple(files))


def rules_at(
    outer: OuterRules, snapshot_rules: Iterable[tuple[bytes, bytes]]
) -> Mapping[bytes, bytes]:
    """Return all ignore rules that applied to a snapshot: folders of the project, with lines.

    Args:
        snapshot_rules: the ignore files in the snapshot, by folder, relative to it.
    """
    rules: dict[bytes, bytes] = {}
    inner = ((below(outer.below, folder), text) for folder, text in snapshot_rules)
    for folder, text in (*outer.files, *inner):  # later lines for a folder win
        rules[folder] = b"\n".join((rules[folder], text)) if folder in rules else text
    return rules


def _relative(folder: Path, top: Path) -> bytes:
    """Return a folder's path relative to the top; empty for the top itself."""
    return b"" if folder == top else os.fsencode(folder.relative_to(top))


def _shared_folder(top: Path) -> Path:
    """Return the folder that a repository's worktrees share (gitrepository-layout(5)).

    In a worktree or a submodule `.git` is a file that contains the path of the repository.
    """
    git_folder = top / ".git"
    link = rules_text(git_folder)
    if link is None or not link.startswith(b"gitdir:"):
        return git_folder
    git_folder = top / os.fsdecode(link.removeprefix(b"gitdir:").strip())
    shared = rules_text(git_folder / "commondir")
    return git_folder if shared is None else git_folder / os.fsdecode(shared.strip())


def rules_text(path: Path, *, through_links: bool = True) -> bytes | None:
    """Return the content of a regular file; None if there is none.

    A device that never ends and a pipe that nobody writes to are not read. Git follows no symlink
    for `.gitignore` (gitignore(5)); callers turn `through_links` off for that.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if through_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(_MAX_RULES_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _rewrite_pattern(pattern: bytes, folder: bytes) -> bytes:
    """Return a pattern of a folder rewritten for a folder above it."""
    if not folder:
        return pattern
    sign, body = (b"!", pattern[1:]) if pattern.startswith(b"!") else (b"", pattern)
    anchored = b"/" in body.rstrip(b"/")
    infix = b"" if anchored else b"**/"
    return sign + b"/" + folder + b"/" + infix + body.lstrip(b"/")


def _escape_pattern(path: bytes) -> bytes:
    """Return a path as a pattern that matches only this path."""
    escaped = b"".join(
        b"\\" + bytes([byte]) if byte in b"\\*?[]!# " else bytes([byte]) for byte in path
    )
    return escaped.replace(b"\n", b"?")  # a pattern cannot contain a line feed


class FileFilter:
    """Decides which files are saved.

    Args:
        top: the folder that paths are relative to.
        data: acp-agent's data folder, which may lie below `top`.
    """

    def __init__(self, top: Path, data: Path, rules: Rules) -> None:
        self._top = os.fsencode(top)
        self._data = os.fsencode(data) + b"/"
        self._rules = rules
        self._real: dict[bytes, bool] = {b"": True}  # by folder: whether no part of it is a symlink

    def check(self, path: bytes) -> os.stat_result | UnsavedFile | None:
        """Return the status of a file to save, or why it is left out; None to skip it silently."""
        if not is_plain(path):
            return UnsavedFile(path, "name")
        absolute = join(self._top, path)
        if absolute.startswith(self._data) or not self._is_real(path.rpartition(b"/")[0]):
            return None
        try:
            status = os.lstat(absolute)
        except PermissionError:
            return UnsavedFile(path, "unreadable")
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode):
            # Git refuses symlinks of this name.
            is_accepted = path.rpartition(b"/")[2].lower() != b".gitmodules"
            return status if is_accepted else UnsavedFile(path, "name")
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > self._rules.max_file_bytes:
            return UnsavedFile(path, "size")
        if not os.access(absolute, os.R_OK):
            return UnsavedFile(path, "unreadable")
        return status

    def private(self, paths: Iterable[bytes]) -> set[bytes]:
        """Return the files that only their owner may read."""
        result: set[bytes] = set()
        top = os.open(self._top, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for path in paths:
                try:
                    status = os.stat(path, dir_fd=top, follow_symlinks=False)
                except OSError:
                    continue
                if is_private(status):
                    result.add(path)
        finally:
            os.close(top)
        return result

    def _is_real(self, folder: bytes) -> bool:
        is_real = self._real.get(folder)
        if is_real is None:
            is_real = self._is_real(folder.rpartition(b"/")[0])
            if is_real:
                try:
                    is_real = stat.S_ISDIR(os.lstat(join(self._top, folder)).st_mode)
                except PermissionError:
                    is_real = True  # its content is unreadable anyway
                except OSError:
                    is_real = False
            self._real[folder] = is_real
        return is_real


def is_private(status: os.stat_result) -> bool:
    """Return whether only its owner may access a file."""
    return stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077
