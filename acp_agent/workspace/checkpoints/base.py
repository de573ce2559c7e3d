"""Types of checkpoints, and functions for their paths."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.errors import CheckpointTooSlowError

Kind = Literal["add", "modify", "delete"]
Reason = Literal["size", "unreadable", "name", "folders"]

LINK = 0o120000  # the mode of a symlink in a tree, as git writes it
EXECUTABLE = 0o100755
NO_GIT = "git is not installed; install it to save files for /rewind"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # built into git

_POLL_SECONDS = 0.05  # seconds between checks for cancellation
DELETED = ""  # stands for the blob id of a file that a tool deleted


class Deadline:
    """A time limit for work, which can also be cancelled.

    Raises:
        CheckpointTooSlowError: by `check`, `poll_seconds` and `sleep`, after the time limit or a
            cancellation.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Cancel the work; it stops at its next check."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Return whether the work was cancelled, rather than too slow."""
        return self._cancelled.is_set()

    def check(self) -> None:
        """Raise an error if the time is up or the work was cancelled."""
        if self._cancelled.is_set():
            raise CheckpointTooSlowError("it was given up")
        if time.monotonic() >= self._end:
            raise CheckpointTooSlowError(f"it takes longer than {self.seconds:g} seconds")

    def poll_seconds(self) -> float:
        """Return the seconds to wait until the next check; more than 0."""
        self.check()
        return max(min(_POLL_SECONDS, self._end - time.monotonic()), 0.001)

    def sleep(self, seconds: float) -> None:
        """Wait a moment, or until the work is cancelled."""
        self.check()
        self._cancelled.wait(min(seconds, self.poll_seconds()))


class UnsavedFile(Struct, frozen=True):
    """A file that is not saved, and why: too large, unreadable, or a name that git refuses.

    The reason `folders` means a nested repository beyond the limit on their number. A path that
    ends in a slash stands for everything in a folder.
    """

    path: bytes
    reason: Reason


class OuterRules(Struct, frozen=True, kw_only=True):
    """Ignore rules from outside the saved folder.

    `below` is the folder's path in the project that contains it, empty if it is the whole project.
    `files` lists folders of that project above the saved one, each with the lines of an ignore
    file that apply there.
    """

    below: bytes = b""
    files: tuple[tuple[bytes, bytes], ...] = ()


class Snapshot(Struct, frozen=True, kw_only=True):
    """The saved state of a folder: the id of a tree, and the files that are not in it.

    `private` holds the files that only their owner may read. Paths are bytes, relative to the
    folder.
    """

    tree: str
    unsaved: tuple[UnsavedFile, ...] = ()
    private: frozenset[bytes] = frozenset()
    outer: OuterRules = OuterRules()


class Blob(Struct, frozen=True):
    """A file in a tree: its mode in git's notation, and the id of its content."""

    mode: int
    id: str


class Change(Struct, frozen=True):
    """A difference between two trees at a path; `old` or `new` is None if there is no file."""

    path: bytes
    old: Blob | None
    new: Blob | None

    @property
    def kind(self) -> Kind:
        """Return the kind of the change."""
        if self.old is None:
            return "add"
        return "delete" if self.new is None else "modify"


class Span(Struct, frozen=True, kw_only=True):
    """The changes of a folder from the tree `old` to the tree `new`, and who made them.

    If `is_own`, the session made every change. Otherwise the session made those that left a file
    with the content in `wrote` (blob ids by path, or `DELETED`) or as in the tree `target`. The
    other changes are known to be somebody else's if `is_known`, else their author is unknown.
    """

    old: str
    new: str
    is_own: bool
    wrote: Mapping[bytes, str] = {}
    target: str = ""
    is_known: bool = True


class Rules(Struct, frozen=True, kw_only=True):
    """Limits on what is saved: size of a file, number of files, and excluded patterns.

    The patterns are those of a .gitignore file at the top of the folder.
    """

    max_file_bytes: int = 10_000_000
    max_files: int = 200_000
    exclude: tuple[str, ...] = ()


def path_text(path: bytes) -> str:
    """Return a path as text to show or store, with bytes that are not UTF-8 escaped."""
    return path.decode("utf-8", "backslashreplace")


def is_plain(path: bytes) -> bool:
    """Return whether a path stays in its folder and is not inside a `.git` folder."""
    components = path.split(b"/")
    return not any(
        component in {b"", b".", b".."} or component.lower() == b".git" for component in components
    )


def blob_id(data: bytes) -> str:
    """Return git's object id of a file's content (gitformat-loose(5))."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def below(base: bytes, path: bytes) -> bytes:
    """Return `base` and `path` joined by a slash; either may be empty."""
    return base + b"/" + path if base and path else base or path


def absolute_path(root: Path, path: bytes) -> str:
    """Return the absolute path of a file in a folder."""
    return os.fsdecode(join(os.fsencode(root), path))


def join(base: bytes, path: bytes) -> bytes:
    """Return a path of a tree joined to its folder."""
    return os.path.join(base, path)  # noqa: PTH118 - bytes, which pathlib does not take
