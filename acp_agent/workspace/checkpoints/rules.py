"""Which files of a folder a checkpoint has: by ignore files, size, name and permissions."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from acp_agent.workspace.checkpoints.base import (
    LeftOut,
    OuterRules,
    Rules,
    below,
    is_plain,
    join,
)

_LONGEST = 10_000_000  # bytes of an ignore file that are read


def project_top(root: Path) -> Path:
    """The top of the repository that a folder is in; the folder itself where it is in none.

    The ignore files between the two hold for the folder as well.
    """
    for folder in (root, *root.parents):
        if os.path.exists(folder / ".git"):  # noqa: PTH110 - a folder may not be searched
            return folder
    return root


def exclusions(root: Path, top: Path, data: Path, patterns: Sequence[str]) -> bytes:
    """What is left out beside what the ignore files say, as lines of one.

    Args:
        root: the session's folder.
        top: the folder that the lines are relative to.
        data: our own files, which may lie in there.
        patterns: the user's, from the top of the session's folder.
    """
    lines = [os.fsencode(line) for line in _own(top)]
    place = _escaped(_part(root, top))
    lines.extend(_moved(os.fsencode(pattern), place) for pattern in patterns)
    if data.is_relative_to(top):
        lines.append(b"/" + _escaped(os.fsencode(data.relative_to(top))) + b"/")
    return b"".join(line + b"\n" for line in lines)


def outer_rules(root: Path, top: Path, lines: bytes) -> OuterRules:
    """What leaves files of a folder out without being kept with it.

    Args:
        root: the session's folder.
        top: the top of what it is a part of.
        lines: `exclusions` of the two.
    """
    files = [(b"", lines)] if lines else []
    place = root
    while place != top:
        place = place.parent
        text = rules_text(place / ".gitignore", through_links=False)
        if text is not None:
            files.append((_part(place, top), text))
    return OuterRules(below=_part(root, top), files=tuple(files))


def rules_at(outer: OuterRules, kept: Iterable[tuple[bytes, bytes]]) -> Mapping[bytes, bytes]:
    """All ignore files that held for a snapshot: folders from the top, with their lines.

    Args:
        outer: those outside of it.
        kept: those in it, likewise, by folders of its own.
    """
    found: dict[bytes, bytes] = {}
    inner = ((below(outer.below, folder), text) for folder, text in kept)
    for folder, text in (*outer.files, *inner):  # of one folder the later lines win
        found[folder] = b"\n".join((found[folder], text)) if folder in found else text
    return found


def _part(folder: Path, top: Path) -> bytes:
    """A folder's path from the top; empty for the top itself."""
    return b"" if folder == top else os.fsencode(folder.relative_to(top))


def _own(top: Path) -> list[str]:
    """What the user's repository leaves out for this user alone (gitignore(5))."""
    text = rules_text(_shared_folder(top) / "info" / "exclude") or b""
    return [os.fsdecode(line) for line in text.splitlines() if not line.startswith(b"#")]


def _shared_folder(top: Path) -> Path:
    """Where a repository has what its worktrees share (gitrepository-layout(5)).

    In a worktree or a submodule `.git` is a file that says where the repository is.
    """
    place = top / ".git"
    link = rules_text(place)
    if link is None or not link.startswith(b"gitdir:"):
        return place
    place = top / os.fsdecode(link.removeprefix(b"gitdir:").strip())
    shared = rules_text(place / "commondir")
    return place if shared is None else place / os.fsdecode(shared.strip())


def rules_text(path: Path, *, through_links: bool = True) -> bytes | None:
    """What is in a small file; None where there is none, or it is no file at all.

    What is in its place may be a device that never ends or a pipe that nobody writes to. Git takes
    no `.gitignore` through a symlink (gitignore(5)).
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if through_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError):  # a name with a zero byte
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(_LONGEST)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _moved(pattern: bytes, place: bytes) -> bytes:
    """A pattern of a folder as one of a folder above it."""
    if not place:
        return pattern
    sign, body = (b"!", pattern[1:]) if pattern.startswith(b"!") else (b"", pattern)
    anchored = b"/" in body.rstrip(b"/")
    between = b"" if anchored else b"**/"
    return sign + b"/" + place + b"/" + between + body.lstrip(b"/")


def _escaped(path: bytes) -> bytes:
    """A path as a pattern that stands for itself."""
    escaped = b"".join(
        b"\\" + bytes([one]) if one in b"\\*?[]!# " else bytes([one]) for one in path
    )
    return escaped.replace(b"\n", b"?")  # a line of patterns cannot have one


class FileFilter:
    """Decides which files are saved.

    Args:
        top: the folder that the paths are relative to.
        data: our own files, which may lie in there.
        rules: what is kept.
    """

    def __init__(self, top: Path, data: Path, rules: Rules) -> None:
        self._top = os.fsencode(top)
        self._data = os.fsencode(data) + b"/"
        self._rules = rules
        self._real: dict[bytes, bool] = {b"": True}  # folders that no symlink stands for

    def check(self, path: bytes) -> os.stat_result | LeftOut | None:
        """Return the status of a file to save, why it is left out, or None where it is not ours."""
        if not is_plain(path):
            return LeftOut(path, "name")
        absolute = join(self._top, path)
        if absolute.startswith(self._data) or not self._is_real(path.rpartition(b"/")[0]):
            return None
        try:
            found = os.lstat(absolute)
        except PermissionError:
            return LeftOut(path, "unreadable")
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            # Git refuses links of this name.
            is_taken = path.rpartition(b"/")[2].lower() != b".gitmodules"
            return found if is_taken else LeftOut(path, "name")
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > self._rules.max_file_bytes:
            return LeftOut(path, "size")
        if not os.access(absolute, os.R_OK):
            return LeftOut(path, "unreadable")
        return found

    def private(self, paths: Iterable[bytes]) -> set[bytes]:
        """Those of the files that are for their owner alone."""
        found: set[bytes] = set()
        top = os.open(self._top, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for path in paths:
                try:
                    known = os.stat(path, dir_fd=top, follow_symlinks=False)
                except OSError:
                    continue
                if is_private(known):
                    found.add(path)
        finally:
            os.close(top)
        return found

    def _is_real(self, folder: bytes) -> bool:
        known = self._real.get(folder)
        if known is None:
            known = self._is_real(folder.rpartition(b"/")[0])
            if known:
                try:
                    known = stat.S_ISDIR(os.lstat(join(self._top, folder)).st_mode)
                except PermissionError:
                    known = True  # what is in it may not be looked at either
                except OSError:
                    known = False
            self._real[folder] = known
        return known


def is_private(found: os.stat_result) -> bool:
    """Whether a file is for its owner alone."""
    return stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
