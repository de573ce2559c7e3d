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
from acp_agent.platform.decoding import decode_json
from acp_agent.sandbox.launch import ConfineWriting, unconfined_writing
from acp_agent.workspace.checkpoints.base import (
    EMPTY_TREE,
    NO_GIT,
    Blob,
    Change,
    Deadline,
    Rules,
    Snapshot,
    UnsavedFile,
    join,
)
from acp_agent.workspace.checkpoints.git_folder import GitFolder
from acp_agent.workspace.checkpoints.isolated_git import (
    IsolatedGit,
    OutputReader,
    kill_process,
    split_records,
)
from acp_agent.workspace.checkpoints.rules import FileFilter, is_private, rules_at
from acp_agent.workspace.checkpoints.store import CheckpointStore

_CHUNK = 20_000  # files per git update-index; the index is written after each chunk
_SECOND = 1_000_000_000  # nanoseconds: git compares times to the second
_FILE_COST = 4_096  # opening a file takes as long as reading this many bytes
_MIN_SETTLE_BYTES = 1_000_000  # reading this many bytes takes as long as starting git


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
    """The checkpoint repository of one folder. The store must be locked during use.

    Args:
        program: the git program; None if there is none.
        exclude: patterns of files to exclude.
        confine: as in `GitFolder`.

    Raises:
        WorkspaceError: there is no git.
    """

    def __init__(
        self,
        store: CheckpointStore,
        program: str | None,
        exclude: Sequence[str] = (),
        confine: ConfineWriting = unconfined_writing,
    ) -> None:
        if program is None:
            raise WorkspaceError(NO_GIT)
        self._store = store
        self._folder = GitFolder(store, program, exclude, confine)

    @property
    def _git(self) -> IsolatedGit:
        return self._folder.git

    # -- saving ------------------------------------------------------------------------------

    def snapshot(self, rules: Rules, deadline: Deadline) -> Snapshot:
        """Save the current files.

        Raises:
            CheckpointTooSlowError: it takes too long, or there are too many files.
            WorkspaceError: the files cannot be saved.
        """
        outer = self._folder.apply_rules(deadline)
        last_state = self._read_state()
        last_unsaved = set() if last_state is None else set(map(bytes.fromhex, last_state.left_out))
        paths, unsaved, unchanged = self._folder.list_changes(deadline)
        if len(paths) > rules.max_files:
            raise CheckpointTooSlowError(f"it has more than {rules.max_files:,} files")
        file_filter = FileFilter(self._folder.top, self._store.data, rules)
        with ThreadPoolExecutor(1) as pool:  # works while git runs
            private = pool.submit(file_filter.private, unchanged)
            changed: dict[bytes, os.stat_result] = {}
            removed: list[bytes] = []
            for path in paths:
                status = file_filter.check(path)
                if isinstance(status, UnsavedFile):
                    unsaved.append(status)
                if isinstance(status, os.stat_result):
                    changed[path] = status
                else:
                    removed.append(path)
            unsaved.sort(key=lambda file: file.path)
            if last_state is not None and not changed and last_unsaved.issuperset(removed):
                tree = last_state.tree
                self._settle(last_state, deadline)
            else:
                tree = self._write(list(changed), removed, deadline)
                names = tuple(file.path.hex() for file in unsaved)
                self._write_state(tree, names, self._unsettled(last_state, changed.values()))
        private_paths = private.result().union(
            path for path in changed if is_private(changed[path])
        )
        start = len(self._folder.prefix)
        return Snapshot(
            tree=tree,
            unsaved=tuple(UnsavedFile(file.path[start:], file.reason) for file in unsaved),
            private=frozenset(path[start:] for path in private_paths),
            outer=outer,
        )

    def _write(self, changed: Sequence[bytes], removed: Sequence[bytes], deadline: Deadline) -> str:
        """Update the index from the folder; return its tree."""
        self._state_file.unlink(missing_ok=True)  # invalid until the update is complete
        if removed:
            self._remove(removed, deadline)
        parses_folder = bool(changed) and self._folder.has_attributes(changed)
        for start in range(0, len(changed), _CHUNK):
            self._git.run(
                "update-index",
                "--add",
                "--remove",
                "--replace",
                "-z",
                "--stdin",
                stdin_data=b"".join(path + b"\0" for path in changed[start : start + _CHUNK]),
                deadline=deadline,
                parses_folder=parses_folder,
            )
        if any(path.endswith(b".gitignore") for path in (*changed, *removed)):
            ignored = self._git.run(
                "ls-files", "-z", "--cached", "--ignored", "--exclude-standard", deadline=deadline
            )
            if ignored:
                self._remove(split_records(ignored), deadline)
        if not self._folder.prefix:
            return self._git.run("write-tree", deadline=deadline).decode().strip()
        try:
            output = self._git.run(
                "write-tree", b"--prefix=" + self._folder.prefix, deadline=deadline
            )
        except CheckpointTooSlowError:
            raise
        except WorkspaceError:
            if self._git.run("ls-files", "-z", *self._folder.within, deadline=deadline):
                raise
            return EMPTY_TREE
        return output.decode().strip()

    def _remove(self, paths: Sequence[bytes], deadline: Deadline) -> None:
        lines = b"".join(b"0 " + b"0" * 40 + b"\t" + path + b"\0" for path in paths)
        self._git.run("update-index", "-z", "--index-info", stdin_data=lines, deadline=deadline)

    def _unsettled(self, last_state: _State | None, changed: Iterable[os.stat_result]) -> int:
        """Return how many bytes git must read again to see that files are unchanged.

        These are files written in the same second as the index, so their times prove nothing.
        """
        index_second = self._index_identity()[2] // _SECOND
        earlier = (
            0
            if last_state is None or last_state.index[2] // _SECOND != index_second
            else last_state.unsettled
        )
        return earlier + sum(
            status.st_size + _FILE_COST
            for status in changed
            if status.st_mtime_ns // _SECOND >= index_second
        )

    def _settle(self, last_state: _State, deadline: Deadline) -> None:
        """Rewrite the index if its time would make git read many files again each time."""
        later = time.time_ns() // _SECOND > last_state.index[2] // _SECOND
        if later and last_state.unsettled > _MIN_SETTLE_BYTES:
            self._git.run("update-index", "--force-write-index", deadline=deadline)
            self._write_state(last_state.tree, last_state.left_out)

    def _write_state(self, tree: str, unsaved: tuple[str, ...], unsettled: int = 0) -> None:
        """Write the state of the index to the state file."""
        state = _State(
            tree=tree, index=self._index_identity(), left_out=unsaved, unsettled=unsettled
        )
        self._store.write(self._state_file, msgspec.json.encode(state))

    @property
    def _state_file(self) -> Path:
        return self._store.path / "state.json"

    def _index_identity(self) -> tuple[int, int, int]:
        try:
            status = self._store.index.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def _read_state(self) -> _State | None:
        """Return the stored state of the index, or None if the index was written since."""
        try:
            state = decode_json(self._state_file.read_bytes(), _State)
        except (OSError, ValueError):
            return None
        return state if state.index == self._index_identity() else None

    # -- reading -----------------------------------------------------------------------------

    def changes(self, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """Return the differences between two trees, sorted by path."""
        output = self._git.run("diff-tree", "-r", "-z", "--no-renames", old, new, deadline=deadline)
        fields = output.split(b"\0")
        return [_change(fields[index], fields[index + 1]) for index in range(0, len(fields) - 1, 2)]

    def contents(self, blobs: Iterable[str], deadline: Deadline) -> Iterator[bytes]:
        """Yield the contents of blobs, in the order of the ids."""
        process = self._git.start("cat-file", "--batch")
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            reader = OutputReader(process.stdout, deadline)
            for blob in blobs:
                deadline.check()
                process.stdin.write(f"{blob}\n".encode())
                process.stdin.flush()
                head = reader.read_line().split()
                if len(head) != 3 or head[1] != b"blob":
                    raise WorkspaceError(f"the checkpoint has lost a file's content ({blob})")
                data = reader.read(int(head[2]))
                reader.read(1)
                yield data
        except OSError as error:
            raise WorkspaceError(f"the checkpoint cannot be read: {error}") from None
        finally:
            kill_process(process)

    def folders(self, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """Return the folders of a tree, relative to it."""
        return split_records(
            self._git.run("ls-tree", "-r", "-d", "-z", "--name-only", tree, deadline=deadline)
        )

    def read_files(
        self, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """Return the contents of files of a tree by path, without those that it lacks.

        Without `contents` each value is a zero byte, and no file is read.
        """
        plain_paths = [path for path in paths if b"\n" not in path]
        stdin_data = b"".join(tree.encode() + b":" + path + b"\n" for path in plain_paths)
        mode = "--batch" if contents else "--batch-check"
        output = self._git.run("cat-file", mode, stdin_data=stdin_data, deadline=deadline)
        files: dict[bytes, bytes] = {}
        offset = 0
        for path in plain_paths:
            head_end = output.index(b"\n", offset)
            head, offset = output[offset:head_end].split(), head_end + 1
            if not head[-1].isdigit():
                continue  # missing
            files[path] = b"\0"
            if contents:
                files[path] = output[offset : offset + int(head[-1])]
                offset += int(head[-1]) + 1
        return files

    def ignored_under(
        self, snapshot: Snapshot, paths: Sequence[bytes], deadline: Deadline
    ) -> frozenset[bytes]:
        """Return the paths that the ignore rules at the time of a snapshot excluded."""
        start = snapshot.outer.below + b"/" if snapshot.outer.below else b""
        with tempfile.TemporaryDirectory(dir=self._store.path) as name:
            folder = os.fsencode(name)
            self._write_ignore_files(snapshot, folder, deadline)
            ignored = self._folder.ignored_among([start + path for path in paths], deadline, folder)
        return frozenset(path.removeprefix(start) for path in ignored)

    def _write_ignore_files(self, snapshot: Snapshot, folder: bytes, deadline: Deadline) -> None:
        files = self._ignore_files(snapshot.tree, deadline)
        inner = zip(files, self.contents(files.values(), deadline), strict=True)
        for rules_folder, data in rules_at(snapshot.outer, inner).items():
            target = join(folder, rules_folder)
            os.makedirs(target, exist_ok=True)  # noqa: PTH103 - bytes
            with open(join(target, b".gitignore"), "wb") as file:  # noqa: PTH123 - bytes
                file.write(data)

    def _ignore_files(self, tree: str, deadline: Deadline) -> dict[bytes, str]:
        """Return the ignore files of a tree: the folder of each, with its blob id."""
        output = self._git.run("ls-tree", "-r", "-z", tree, deadline=deadline)
        ignore_files: dict[bytes, str] = {}
        for read_line in split_records(output):
            head, _, path = read_line.partition(b"\t")
            folder, _, name = path.rpartition(b"/")
            if name == b".gitignore" and head.startswith(b"100"):
                ignore_files[folder] = head.split()[2].decode()
        return ignore_files

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """Return what the project's ignore files exclude now; a folder counts as one entry."""
        self._folder.apply_rules(deadline)
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
