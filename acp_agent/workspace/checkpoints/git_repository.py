"""Store a folder's files as trees in the checkpoint repository, with git."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.platform.first_use import first_use
from acp_agent.sandbox.launch import ConfineWriting, unconfined_writing
from acp_agent.workspace.checkpoints.base import (
    EMPTY_TREE,
    Blob,
    Change,
    Deadline,
    LeftOut,
    Rules,
    Snapshot,
    join,
)
from acp_agent.workspace.checkpoints.git_folder import GitFolder
from acp_agent.workspace.checkpoints.isolated_git import Answers, IsolatedGit, end, split
from acp_agent.workspace.checkpoints.rules import FileFilter, is_private, rules_at
from acp_agent.workspace.checkpoints.store import CheckpointStore

_CHUNK = 20_000  # files per git update-index; the index is written after each chunk
_SECOND = 1_000_000_000  # nanoseconds: git compares times to the second
_FILE_COST = 4_096  # opening a file takes as long as reading this many bytes
_WORTH_SETTLING = 1_000_000  # reading this many bytes takes as long as starting git


class _State(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the index after the last snapshot.

    `index` identifies the index file (inode, size, time). `unsettled` is described in
    `_unsettled`.
    """

    tree: str
    index: tuple[int, int, int]
    left_out: tuple[str, ...] = ()
    unsettled: int = 0


class GitRepository:
    """The checkpoint repository of one folder.

    Args:
        store: the folder's store.
        program: the git program.
        exclude: patterns of files to exclude.
        confine: as in `GitFolder`.
    """

    def __init__(
        self,
        store: CheckpointStore,
        program: str,
        exclude: Sequence[str] = (),
        confine: ConfineWriting = unconfined_writing,
    ) -> None:
        self._store = store
        self._folder = GitFolder(store, program, exclude, confine)

    @property
    def _git(self) -> IsolatedGit:
        return self._folder.git

    # -- saving ------------------------------------------------------------------------------

    def snapshot(self, rules: Rules, deadline: Deadline) -> Snapshot:
        """Save the current files; see `Repository.snapshot`."""
        outer = self._folder.look(deadline)
        known = self._state()
        absent = set() if known is None else set(map(bytes.fromhex, known.left_out))
        paths, left_out, same = self._folder.differing(deadline)
        if len(paths) > rules.max_files:
            raise CheckpointTooSlowError(f"it has more than {rules.max_files:,} files")
        file_filter = FileFilter(self._folder.top, self._store.data, rules)
        with ThreadPoolExecutor(1) as pool:  # works while git runs
            private = pool.submit(file_filter.private, same)
            changed: dict[bytes, os.stat_result] = {}
            gone: list[bytes] = []
            for path in paths:
                found = file_filter.check(path)
                if isinstance(found, LeftOut):
                    left_out.append(found)
                if isinstance(found, os.stat_result):
                    changed[path] = found
                else:
                    gone.append(path)
            left_out.sort(key=lambda one: one.path)
            if known is not None and not changed and absent.issuperset(gone):
                tree = known.tree
                self._settle(known, deadline)
            else:
                tree = self._write(list(changed), gone, deadline)
                names = tuple(one.path.hex() for one in left_out)
                self._note(tree, names, self._unsettled(known, changed.values()))
        own = private.result().union(path for path in changed if is_private(changed[path]))
        start = len(self._folder.prefix)
        return Snapshot(
            tree=tree,
            left_out=tuple(LeftOut(one.path[start:], one.why) for one in left_out),
            private=frozenset(path[start:] for path in own),
            outer=outer,
        )

    def _write(self, changed: Sequence[bytes], gone: Sequence[bytes], deadline: Deadline) -> str:
        """Update the index from the folder; return its tree."""
        self._state_file.unlink(missing_ok=True)  # invalid until the update is complete
        if gone:
            self._remove(gone, deadline)
        parses = bool(changed) and self._folder.has_attributes(changed)
        for start in range(0, len(changed), _CHUNK):
            self._git.run(
                "update-index",
                "--add",
                "--remove",
                "--replace",
                "-z",
                "--stdin",
                given=b"".join(path + b"\0" for path in changed[start : start + _CHUNK]),
                deadline=deadline,
                parses=parses,
            )
        if any(path.endswith(b".gitignore") for path in (*changed, *gone)):
            ignored = self._git.run(
                "ls-files", "-z", "--cached", "--ignored", "--exclude-standard", deadline=deadline
            )
            if ignored:
                self._remove(split(ignored), deadline)
        if not self._folder.prefix:
            return self._git.run("write-tree", deadline=deadline).decode().strip()
        try:
            out = self._git.run("write-tree", b"--prefix=" + self._folder.prefix, deadline=deadline)
        except CheckpointTooSlowError:
            raise
        except WorkspaceError:
            if self._git.run("ls-files", "-z", *self._folder.within, deadline=deadline):
                raise
            return EMPTY_TREE
        return out.decode().strip()

    def _remove(self, paths: Sequence[bytes], deadline: Deadline) -> None:
        lines = b"".join(b"0 " + b"0" * 40 + b"\t" + path + b"\0" for path in paths)
        self._git.run("update-index", "-z", "--index-info", given=lines, deadline=deadline)

    def _unsettled(self, known: _State | None, changed: Iterable[os.stat_result]) -> int:
        """Return how many bytes git must read again to see that files are unchanged.

        These are files written in the same second as the index, so their times prove nothing.
        """
        written = self._marks()[2] // _SECOND
        before = 0 if known is None or known.index[2] // _SECOND != written else known.unsettled
        return before + sum(
            found.st_size + _FILE_COST
            for found in changed
            if found.st_mtime_ns // _SECOND >= written
        )

    def _settle(self, known: _State, deadline: Deadline) -> None:
        """Rewrite the index if its time would make git read many files again each time."""
        later = time.time_ns() // _SECOND > known.index[2] // _SECOND
        if later and known.unsettled > _WORTH_SETTLING:
            self._git.run("update-index", "--force-write-index", deadline=deadline)
            self._note(known.tree, known.left_out)

    def _note(self, tree: str, left_out: tuple[str, ...], unsettled: int = 0) -> None:
        """Write the state of the index to the state file."""
        state = _State(tree=tree, index=self._marks(), left_out=left_out, unsettled=unsettled)
        self._store.write(self._state_file, msgspec.json.encode(state))

    @property
    def _state_file(self) -> Path:
        return self._store.path / "state.json"

    def _marks(self) -> tuple[int, int, int]:
        try:
            found = self._store.index.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def _state(self) -> _State | None:
        """Return the stored state of the index, or None if the index was written since."""
        try:
            with first_use:
                state = msgspec.json.decode(self._state_file.read_bytes(), type=_State)
        except (OSError, ValueError):
            return None
        return state if state.index == self._marks() else None

    # -- reading -----------------------------------------------------------------------------

    def changes(self, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """Return the differences between two trees."""
        out = self._git.run("diff-tree", "-r", "-z", "--no-renames", old, new, deadline=deadline)
        fields = out.split(b"\0")
        return [_change(fields[at], fields[at + 1]) for at in range(0, len(fields) - 1, 2)]

    def contents(self, blobs: Iterable[str], deadline: Deadline) -> Iterator[bytes]:
        """Yield the contents of blobs, in the order of the ids."""
        process = self._git.start("cat-file", "--batch")
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            answers = Answers(process.stdout, deadline)
            for blob in blobs:
                deadline.check()
                process.stdin.write(f"{blob}\n".encode())
                process.stdin.flush()
                head = answers.line().split()
                if len(head) != 3 or head[1] != b"blob":
                    raise WorkspaceError(f"the checkpoint has lost a file's content ({blob})")
                data = answers.take(int(head[2]))
                answers.take(1)
                yield data
        except OSError as error:
            raise WorkspaceError(f"the checkpoint cannot be read: {error}") from None
        finally:
            end(process)

    def folders(self, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """Return the folders of a tree, relative to it."""
        return split(
            self._git.run("ls-tree", "-r", "-d", "-z", "--name-only", tree, deadline=deadline)
        )

    def files_of(
        self, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """Return the contents of files of a tree by path, without those that it lacks.

        Without `contents` each value is a zero byte, and no file is read.
        """
        named = [path for path in paths if b"\n" not in path]
        given = b"".join(tree.encode() + b":" + path + b"\n" for path in named)
        what = "--batch" if contents else "--batch-check"
        out = self._git.run("cat-file", what, given=given, deadline=deadline)
        found: dict[bytes, bytes] = {}
        at = 0
        for path in named:
            end_of_head = out.index(b"\n", at)
            head, at = out[at:end_of_head].split(), end_of_head + 1
            if not head[-1].isdigit():
                continue  # missing
            found[path] = b"\0"
            if contents:
                found[path] = out[at : at + int(head[-1])]
                at += int(head[-1]) + 1
        return found

    def ignored_under(
        self, kept: Snapshot, paths: Sequence[bytes], deadline: Deadline
    ) -> frozenset[bytes]:
        """Return the paths that the ignore rules at the time of a snapshot excluded."""
        start = kept.outer.below + b"/" if kept.outer.below else b""
        with tempfile.TemporaryDirectory(dir=self._store.path) as name:
            folder = os.fsencode(name)
            self._put_ignore_files(kept, folder, deadline)
            ignored = self._folder.ignored_among([start + path for path in paths], deadline, folder)
        return frozenset(path.removeprefix(start) for path in ignored)

    def _put_ignore_files(self, kept: Snapshot, folder: bytes, deadline: Deadline) -> None:
        files = self._ignore_files(kept.tree, deadline)
        inner = zip(files, self.contents(files.values(), deadline), strict=True)
        for place, data in rules_at(kept.outer, inner).items():
            where = join(folder, place)
            os.makedirs(where, exist_ok=True)  # noqa: PTH103 - bytes
            with open(join(where, b".gitignore"), "wb") as written:  # noqa: PTH123 - bytes
                written.write(data)

    def _ignore_files(self, tree: str, deadline: Deadline) -> dict[bytes, str]:
        """Return the ignore files of a tree: the folder of each, with its blob id."""
        out = self._git.run("ls-tree", "-r", "-z", tree, deadline=deadline)
        found: dict[bytes, str] = {}
        for line in split(out):
            head, _, path = line.partition(b"\t")
            folder, _, name = path.rpartition(b"/")
            if name == b".gitignore" and head.startswith(b"100"):
                found[folder] = head.split()[2].decode()
        return found

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """Return what the project's ignore files exclude now; a folder counts as one entry."""
        self._folder.look(deadline)
        return self._folder.ignored(deadline)

    def sweep(self, deadline: Deadline) -> None:
        """Remove objects that no checkpoint uses, and pack the rest."""
        self._git.run("repack", "-a", "-d", "-q", "--no-write-bitmap-index", deadline=deadline)
        self._git.run("prune", "--expire=now", deadline=deadline)


def _change(head: bytes, path: bytes) -> Change:
    """Parse two fields of `git diff-tree -z` (git-diff-tree(1), Raw output format)."""
    old_mode, new_mode, old, new, _ = head.lstrip(b":").split()
    return Change(path, _blob(old_mode, old), _blob(new_mode, new))


def _blob(mode: bytes, name: bytes) -> Blob | None:
    number = int(mode, 8)
    return Blob(number, name.decode()) if number else None
