"""Store a folder's files without git, with the library dulwich, in the same repository format."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import msgspec
from dulwich.ignore import IgnoreFilter, IgnoreFilterManager, read_ignore_patterns
from dulwich.index import commit_tree
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob as DulwichBlob, ObjectID, Tree
from msgspec import Struct

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.nofollow import open_in_folder, opened_folder
from acp_agent.workspace.checkpoints.base import (
    EMPTY_TREE,
    EXECUTABLE,
    LINK,
    Blob,
    Change,
    Deadline,
    Rules,
    Snapshot,
    UnsavedFile,
    below,
    join,
)
from acp_agent.workspace.checkpoints.rules import (
    FileFilter,
    exclusions,
    is_private,
    outer_rules,
    project_top,
    rules_at,
    rules_text,
)
from acp_agent.workspace.checkpoints.store import CheckpointStore

_FILE = 0o100644
_SETTLED = 2_000_000_000  # nanoseconds after which a file's time reliably shows a change


class _Entry(Struct, frozen=True, array_like=True):
    """The status of a file when it was hashed, and its blob id."""

    size: int
    changed: int
    inode: int
    mode: int
    id: str


class DulwichRepository:
    """The checkpoint repository of one folder."""

    def __init__(self, store: CheckpointStore, exclude: Sequence[str] = ()) -> None:
        self._store = store
        self._exclude = tuple(exclude)
        self._objects = DiskObjectStore(os.fspath(store.path / "objects"))

    # -- saving ------------------------------------------------------------------------------

    def snapshot(self, rules: Rules, deadline: Deadline) -> Snapshot:
        """Save the current files; see `Repository.snapshot`."""
        store = self._store
        last_entries = self._read_entries()
        file_filter = FileFilter(store.root, store.data, rules)
        ignores = self._ignores(store.root)
        entries: dict[str, _Entry] = {}
        unsaved: list[UnsavedFile] = []
        private: set[bytes] = set()
        start = time.time_ns()
        for path in self._files(ignores, unsaved, deadline):
            deadline.check()
            status = file_filter.check(path)
            if isinstance(status, UnsavedFile):
                unsaved.append(status)
            if not isinstance(status, os.stat_result):
                continue
            if len(entries) == rules.max_files:
                raise CheckpointTooSlowError(f"it has more than {rules.max_files:,} files")
            if is_private(status):
                private.add(path)
            entry = last_entries.get(path.hex())
            identity = (status.st_size, status.st_ctime_ns, status.st_ino)
            if entry is None or (entry.size, entry.changed, entry.inode) != identity:
                saved = self._save(path, status)
                if saved is None:
                    continue
                entry = saved
            entries[path.hex()] = entry
        tree = commit_tree(
            self._objects,
            [
                (bytes.fromhex(path), ObjectID(file.id.encode()), file.mode)
                for path, file in entries.items()
            ],
        )
        # A file changed just now may change again without a new time stamp.
        settled = {path: file for path, file in entries.items() if file.changed < start - _SETTLED}
        store.write(store.path / "seen.json", msgspec.json.encode(settled))
        return Snapshot(
            tree=tree.decode(),
            unsaved=tuple(sorted(unsaved, key=lambda file: file.path)),
            private=frozenset(private),
            outer=outer_rules(store.root, ignores.top, ignores.lines),
        )

    def _read_entries(self) -> dict[str, _Entry]:
        try:
            text = (self._store.path / "seen.json").read_bytes()
            return decode_json(text, dict[str, _Entry])
        except (OSError, ValueError):
            return {}

    def _save(self, path: bytes, status: os.stat_result) -> _Entry | None:
        base, name = os.path.split(join(os.fsencode(self._store.root), path))
        try:
            with opened_folder(base) as folder:
                if stat.S_ISLNK(status.st_mode):
                    mode, data = LINK, os.readlink(name, dir_fd=folder)
                else:
                    mode = EXECUTABLE if status.st_mode & 0o100 else _FILE
                    with os.fdopen(open_in_folder(name, os.O_RDONLY, folder), "rb") as file:
                        if not os.path.samestat(os.fstat(file.fileno()), status):
                            return None  # it was replaced, perhaps by a pipe
                        data = file.read()
        except OSError:
            return None  # it was deleted
        blob = DulwichBlob.from_string(data)
        self._objects.add_object(blob)
        return _Entry(status.st_size, status.st_ctime_ns, status.st_ino, mode, blob.id.decode())

    def _files(
        self, ignores: _Ignores, unsaved: list[UnsavedFile], deadline: Deadline
    ) -> Iterator[bytes]:
        """Yield the files and symlinks of the folder that are not ignored.

        Unreadable folders are added to `left_out`.
        """
        root = os.fsencode(self._store.root)
        folders = [b""]
        while folders:
            deadline.check()
            folder = folders.pop()
            try:
                entries = list(os.scandir(join(root, folder) if folder else root))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:  # unreadable, or its path is too long
                unsaved.append(UnsavedFile(folder + b"/", "unreadable"))
                continue
            for entry in entries:
                path = join(folder, entry.name) if folder else entry.name
                if entry.name.lower() == b".git":
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if not ignores(path, is_folder=is_folder):
                    if is_folder:
                        folders.append(path)
                    else:
                        yield path

    def _ignores(self, root: Path) -> _Ignores:
        store = self._store
        top = project_top(root)
        lines = exclusions(store.root, top, store.data, self._exclude)
        ignores = _Ignores(top, root, lines)
        if top != root and ignores(b"", is_folder=True):  # ignored by the outer repository
            lines = exclusions(root, root, store.data, self._exclude)
            return _Ignores(root, root, lines)
        return ignores

    # -- reading -----------------------------------------------------------------------------

    def changes(self, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """Return the differences between two trees."""
        before, after = self._flatten(old, deadline), self._flatten(new, deadline)
        return [
            Change(path, before.get(path), after.get(path))
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path)
        ]

    def folders(self, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """Return the folders of a tree, relative to it."""
        folders = {path.rpartition(b"/")[0] for path in self._flatten(tree, deadline)}
        parents = {
            folder[:index] for folder in folders for index, c in enumerate(folder) if c == 0x2F
        }
        return sorted((folders | parents) - {b""})

    def read_files(
        self, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """Return the contents of files of a tree by path, without those that it lacks.

        Without `contents` each value is a zero byte, and no file is read.
        """
        tree_files = self._flatten(tree, deadline)
        blobs = {path: tree_files[path].id for path in paths if path in tree_files}
        if not contents:
            return dict.fromkeys(blobs, b"\0")
        return dict(zip(blobs, self.contents(blobs.values(), deadline), strict=True))

    def _flatten(self, tree: str, deadline: Deadline) -> dict[bytes, Blob]:
        files: dict[bytes, Blob] = {}
        open_trees = [] if tree == EMPTY_TREE else [(b"", tree)]
        while open_trees:
            deadline.check()
            folder, name = open_trees.pop()
            try:
                content = self._objects[ObjectID(name.encode())]
            except KeyError:
                raise WorkspaceError(f"the checkpoint has lost a folder ({name})") from None
            assert isinstance(content, Tree)
            for entry in content.items():
                path = join(folder, entry.path) if folder else entry.path
                if stat.S_ISDIR(entry.mode):
                    open_trees.append((path, entry.sha.decode()))
                else:
                    files[path] = Blob(entry.mode, entry.sha.decode())
        return files

    def contents(self, blobs: Iterable[str], deadline: Deadline) -> Iterator[bytes]:
        """Yield the contents of blobs, in the order of the ids."""
        for blob in blobs:
            deadline.check()
            try:
                yield self._objects[ObjectID(blob.encode())].as_raw_string()
            except KeyError:
                raise WorkspaceError(f"the checkpoint has lost a file's content ({blob})") from None

    def ignored_under(
        self, snapshot: Snapshot, paths: Sequence[bytes], deadline: Deadline
    ) -> frozenset[bytes]:
        """Return the paths that the ignore rules at the time of a snapshot excluded."""
        inner = [
            (path.rpartition(b"/")[0], next(self.contents([blob.id], deadline)))
            for path, blob in self._flatten(snapshot.tree, deadline).items()
            if path.rpartition(b"/")[2] == b".gitignore" and blob.mode != LINK
        ]
        filters = [
            (folder, IgnoreFilter(lines.splitlines()))
            for folder, lines in rules_at(snapshot.outer, inner).items()
        ]
        filters.sort(key=lambda entry: len(entry[0]), reverse=True)
        start = snapshot.outer.below
        return frozenset(path for path in paths if _is_ignored(below(start, path), filters))

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """Return what the project's ignore files exclude now; a folder counts as one entry."""
        root = os.fsencode(self._store.root)
        ignores = self._ignores(self._store.root)
        result: list[bytes] = []
        folders = [b""]
        while folders:
            deadline.check()
            folder = folders.pop()
            try:
                entries = list(os.scandir(join(root, folder) if folder else root))
            except OSError:
                continue
            for entry in entries:
                path = join(folder, entry.name) if folder else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name.lower() == b".git":
                    continue
                if ignores(path, is_folder=is_folder):
                    result.append(path + b"/" if is_folder else path)
                elif is_folder:
                    folders.append(path)
        return sorted(result)

    def sweep(self, deadline: Deadline) -> None:
        """Remove objects that no checkpoint uses. Without git nothing is packed."""
        reachable: set[bytes] = set()
        for file in (self._store.path / "refs").rglob("*"):
            if file.is_file():
                self._mark_reachable(file.read_text().strip(), reachable, deadline)
        for name in list(self._objects):
            deadline.check()
            if name not in reachable:
                self._objects.delete_loose_object(name)

    def _mark_reachable(self, tree: str, reachable: set[bytes], deadline: Deadline) -> None:
        deadline.check()
        if tree.encode() in reachable or tree == EMPTY_TREE:
            return
        reachable.add(tree.encode())
        content = self._objects[ObjectID(tree.encode())]
        assert isinstance(content, Tree)
        for entry in content.items():
            if stat.S_ISDIR(entry.mode):
                self._mark_reachable(entry.sha.decode(), reachable, deadline)
            else:
                reachable.add(entry.sha)


class _Ignores:
    """The ignore rules of a project: its ignore files and the additional exclusions."""

    def __init__(self, top: Path, root: Path, lines: bytes) -> None:
        self.top, self.lines = top, lines
        exclusion_filter = IgnoreFilter(lines.splitlines())
        self._manager = _IgnoreFiles(os.fspath(top), [exclusion_filter], ignorecase=False)
        self._prefix = "" if top == root else os.fspath(root.relative_to(top))

    def __call__(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether a path of the session's folder is ignored."""
        path_parts = [part for part in (self._prefix, os.fsdecode(path)) if part]
        return bool(self._manager.is_ignored("/".join(path_parts) + ("/" if is_folder else "")))


class _IgnoreFiles(IgnoreFilterManager):
    """The ignore files of a project; only regular files are read."""

    def _load_path(self, path: str) -> IgnoreFilter | None:
        if path not in self._path_filters:
            text = rules_text(Path(self._top_path, path, ".gitignore"), through_links=False)
            patterns = () if text is None else read_ignore_patterns(BytesIO(text))
            self._path_filters[path] = None if text is None else IgnoreFilter(patterns)
        return self._path_filters[path]


def _is_ignored(path: bytes, filters: Sequence[tuple[bytes, IgnoreFilter]]) -> bool:
    """Return whether a filter ignores a path or a folder above it."""
    components = path.split(b"/")
    for count in range(1, len(components) + 1):
        prefix = b"/".join(components[:count]) + (b"/" if count < len(components) else b"")
        for folder, ignore_filter in filters:
            if folder and not prefix.startswith(folder + b"/"):
                continue
            is_ignored = ignore_filter.is_ignored(prefix[len(folder) + 1 :] if folder else prefix)
            if is_ignored is not None:
                if is_ignored:
                    return True
                break
    return False
