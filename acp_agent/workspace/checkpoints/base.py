"""The types of checkpoints, whichever program stores them."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from acp_agent.errors import CheckpointTooSlowError

Kind = Literal["add", "modify", "delete"]
Reason = Literal["size", "unreadable", "name", "folders"]

LINK = 0o120000  # the mode of a symlink in a tree, as git writes it
EXECUTABLE = 0o100755
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # which git always knows

_LOOK = 0.05  # seconds between two looks whether work was given up


class Deadline:
    """A time limit for work, which can also be cancelled.

    Raises:
        CheckpointTooSlowError: from `check` and `left`, when the time is up or the work given up.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Let the work stop at its next check."""
        self._given_up.set()

    @property
    def given_up(self) -> bool:
        """Whether it was given up, rather than too slow."""
        return self._given_up.is_set()

    def check(self) -> None:
        """Raise where the time is up or the work was cancelled."""
        if self._given_up.is_set():
            raise CheckpointTooSlowError("it was given up")
        if time.monotonic() >= self._end:
            raise CheckpointTooSlowError(f"it takes longer than {self.seconds:g} seconds")

    def left(self) -> float:
        """Seconds to wait until the next look; more than 0."""
        self.check()
        return max(min(_LOOK, self._end - time.monotonic()), 0.001)

    def sleep(self, seconds: float) -> None:
        """Wait a moment, or until it is given up."""
        self.check()
        self._given_up.wait(min(seconds, self.left()))


class LeftOut(Struct, frozen=True):
    """A file that is not saved, and why: too large, not to be read, a name that git does not take.

    `folders` is a repository among too many others in the folder. A path that ends in a slash
    stands for all that is in a folder.
    """

    path: bytes
    why: Reason


class OuterRules(Struct, frozen=True, kw_only=True):
    """Ignore rules that lie outside the saved folder.

    `below` is the folder's path in the project that it is a part of, empty where it is the whole.
    `files` are folders of that project, from its top to the one above ours, each with the lines of
    an ignore file that hold there.
    """

    below: bytes = b""
    files: tuple[tuple[bytes, bytes], ...] = ()


class Snapshot(Struct, frozen=True, kw_only=True):
    """The files of a folder as they are: the id of a tree, and what is not in it.

    `private` are the files that nobody but their owner may read. Paths are as the system has them,
    relative to the folder.
    """

    tree: str
    left_out: tuple[LeftOut, ...] = ()
    private: frozenset[bytes] = frozenset()
    outer: OuterRules = OuterRules()


class Blob(Struct, frozen=True):
    """A file in a tree: its mode as git writes it, and the id of its content."""

    mode: int
    id: str


class Change(Struct, frozen=True):
    """A difference at a path between two trees; `old` or `new` is None where there is no file."""

    path: bytes
    old: Blob | None
    new: Blob | None

    @property
    def kind(self) -> Kind:
        """What is done to it."""
        if self.old is None:
            return "add"
        return "delete" if self.new is None else "modify"


class Span(Struct, frozen=True, kw_only=True):
    """What happened to a folder from one tree to the next.

    Where it `is_own`, the session made every change. Else it made those that left a file with the
    content that it `wrote`, by path, or as the tree `target` has it; who made the others is known
    to be somebody else where it `is_known`.
    """

    old: str
    new: str
    is_own: bool
    wrote: Mapping[bytes, str] = {}
    target: str = ""
    is_known: bool = True


class Rules(Struct, frozen=True, kw_only=True):
    """Limits on what is saved: bytes of a file, number of files, and excluded patterns.

    The patterns are those of a .gitignore file, taken from the top of the folder.
    """

    max_file_bytes: int = 10_000_000
    max_files: int = 200_000
    exclude: tuple[str, ...] = ()


class Repository(Protocol):
    """Stores the files of one folder. Lock it before use."""

    def snapshot(self, rules: Rules, deadline: Deadline) -> Snapshot:
        """Save the files as they are now.

        Raises:
            CheckpointTooSlowError: there are too many of them.
            WorkspaceError: they cannot be kept.
        """
        ...

    def changes(self, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """What is different between two trees, in the order of the paths."""
        ...

    def contents(self, blobs: Iterable[str], deadline: Deadline) -> Iterator[bytes]:
        """The contents of files by their ids, in their order."""
        ...

    def folders(self, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """The folders of a tree, relative to it."""
        ...

    def files_of(
        self, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """The contents of files of a tree by their paths, of those that it has.

        Without `contents` each is a zero byte, and the files are not read.
        """
        ...

    def ignored_under(
        self, kept: Snapshot, paths: Sequence[bytes], deadline: Deadline
    ) -> frozenset[bytes]:
        """Those of the paths that were left out by the rules that held for a snapshot."""
        ...

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """What the project's ignore files leave out at the moment, folders as one."""
        ...

    def sweep(self, deadline: Deadline) -> None:
        """Remove what no checkpoint uses, and pack the rest."""
        ...


def shown(path: bytes) -> str:
    """Return a path as text that can be shown and stored; any bytes are escaped."""
    return path.decode("utf-8", "backslashreplace")


def is_plain(path: bytes) -> bool:
    """Whether a path stays in its folder, and is none of a repository's own files."""
    parts = path.split(b"/")
    return not any(part in {b"", b".", b".."} or part.lower() == b".git" for part in parts)


def blob_id(data: bytes) -> str:
    """Return the id that git gives to a content (gitformat-loose(5))."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def below(base: bytes, path: bytes) -> bytes:
    """A path of a folder, relative to what that folder's own path is relative to."""
    return base + b"/" + path if base and path else base or path


def join(base: bytes, path: bytes) -> bytes:
    """A path of a tree in its folder."""
    return os.path.join(base, path)  # noqa: PTH118 - bytes, which pathlib does not take
