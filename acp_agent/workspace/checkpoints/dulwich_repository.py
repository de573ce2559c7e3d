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
from acp_agent.platform.nofollow import open_in_folder, opened_folder
from acp_agent.workspace.checkpoints.base import (
    EMPTY_TREE,
    EXECUTABLE,
    LINK,
    Blob,
    Change,
    Deadline,
    LeftOut,
    Rules,
    Snapshot,
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


class _Seen(Struct, frozen=True, array_like=True):
    """The status of a file when it was hashed, and its blob id."""

    size: int
    changed: int
    inode: int
    mode: int
    id: str


class DulwichRepository:
    """The checkpoint repository of one folder.

    Args:
        store: the folder's store.
        exclude: patterns of files to exclude.
    """

    def __init__(self, store: CheckpointStore, exclude: Sequence[str] = ()) -> None:
        self._store = store
        self._exclude = tuple(exclude)
        self._objects = DiskObjectStore(os.fspath(store.path / "objects"))

    # -- saving ------------------------------------------------------------------------------

    def snapshot(self, rules: Rules, deadline: Deadline) -> Snapshot:
        """Save the current files; see `Repository.snapshot`."""
        store = self._store
        seen = self._seen()
        file_filter = FileFilter(store.root, store.data, rules)
        ignores = self._ignores(store.root)
        now: dict[str, _Seen] = {}
        left_out: list[LeftOut] = []
        private: set[bytes] = set()
        began = time.time_ns()
        for path in self._files(ignores, left_out, deadline):
            deadline.check()
            found = file_filter.check(path)
            if isinstance(found, LeftOut):
                left_out.append(found)
            if not isinstance(found, os.stat_result):
                continue
            if len(now) == rules.max_files:
                raise CheckpointTooSlowError(f"it has more than {rules.max_files:,} files")
            if is_private(found):
                private.add(path)
            known = seen.get(path.hex())
            marks = (found.st_size, found.st_ctime_ns, found.st_ino)
            if known is None or (known.size, known.changed, known.inode) != marks:
                kept = self._save(path, found)
                if kept is None:
                    continue
                known = kept
            now[path.hex()] = known
        tree = commit_tree(
            self._objects,
            [
                (bytes.fromhex(path), ObjectID(one.id.encode()), one.mode)
                for path, one in now.items()
            ],
        )
        # A file changed just now may change again without a new time stamp.
        settled = {path: one for path, one in now.items() if one.changed < began - _SETTLED}
        store.write(store.path / "seen.json", msgspec.json.encode(settled))
        return Snapshot(
            tree=tree.decode(),
            left_out=tuple(sorted(left_out, key=lambda one: one.path)),
            private=frozenset(private),
            outer=outer_rules(store.root, ignores.top, ignores.lines),
        )

    def _seen(self) -> dict[str, _Seen]:
        try:
            text = (self._store.path / "seen.json").read_bytes()
            return msgspec.json.decode(text, type=dict[str, _Seen])
        except (OSError, ValueError):
            return {}

    def _save(self, path: bytes, found: os.stat_result) -> _Seen | None:
        base, name = os.path.split(join(os.fsencode(self._store.root), path))
        try:
            with opened_folder(base) as folder:
                if stat.S_ISLNK(found.st_mode):
                    mode, data = LINK, os.readlink(name, dir_fd=folder)
                else:
                    mode = EXECUTABLE if found.st_mode & 0o100 else _FILE
                    with os.fdopen(open_in_folder(name, os.O_RDONLY, folder), "rb") as file:
                        if not os.path.samestat(os.fstat(file.fileno()), found):
                            return None  # it was replaced, perhaps by a pipe
                        data = file.read()
        except OSError:
            return None  # it was deleted
        blob = DulwichBlob.from_string(data)
        self._objects.add_object(blob)
        return _Seen(found.st_size, found.st_ctime_ns, found.st_ino, mode, blob.id.decode())

    def _files(
        self, ignores: _Ignores, left_out: list[LeftOut], deadline: Deadline
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
                left_out.append(LeftOut(folder + b"/", "unreadable"))
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
        before, after = self._flat(old, deadline), self._flat(new, deadline)
        return [
            Change(path, before.get(path), after.get(path))
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path)
        ]

    def folders(self, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """Return the folders of a tree, relative to it."""
        found = {path.rpartition(b"/")[0] for path in self._flat(tree, deadline)}
        parents = {folder[:at] for folder in found for at, c in enumerate(folder) if c == 0x2F}
        return sorted((found | parents) - {b""})

    def files_of(
        self, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """Return the contents of files of a tree by path, without those that it lacks.

        Without `contents` each value is a zero byte, and no file is read.
        """
        known = self._flat(tree, deadline)
        blobs = {path: known[path].id for path in paths if path in known}
        if not contents:
            return dict.fromkeys(blobs, b"\0")
        return dict(zip(blobs, self.contents(blobs.values(), deadline), strict=True))

    def _flat(self, tree: str, deadline: Deadline) -> dict[bytes, Blob]:
        found: dict[bytes, Blob] = {}
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
                    found[path] = Blob(entry.mode, entry.sha.decode())
        return found

    def contents(self, blobs: Iterable[str], deadline: Deadline) -> Iterator[bytes]:
        """Yield the contents of blobs, in the order of the ids."""
        for blob in blobs:
            deadline.check()
            try:
                yield self._objects[ObjectID(blob.encode())].as_raw_string()
            except KeyError:
                raise WorkspaceError(f"the checkpoint has lost a file's content ({blob})") from None

    def ignored_under(
        self, kept: Snapshot, paths: Sequence[bytes], deadline: Deadline
    ) -> frozenset[bytes]:
        """Return the paths that the ignore rules at the time of a snapshot excluded."""
        inner = [
            (path.rpartition(b"/")[0], next(self.contents([blob.id], deadline)))
            for path, blob in self._flat(kept.tree, deadline).items()
            if path.rpartition(b"/")[2] == b".gitignore" and blob.mode != LINK
        ]
        filters = [
            (folder, IgnoreFilter(lines.splitlines()))
            for folder, lines in rules_at(kept.outer, inner).items()
        ]
        filters.sort(key=lambda one: len(one[0]), reverse=True)
        start = kept.outer.below
        return frozenset(path for path in paths if _named(below(start, path), filters))

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """Return what the project's ignore files exclude now; a folder counts as one entry."""
        root = os.fsencode(self._store.root)
        ignores = self._ignores(self._store.root)
        found: list[bytes] = []
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
                    found.append(path + b"/" if is_folder else path)
                elif is_folder:
                    folders.append(path)
        return sorted(found)

    def sweep(self, deadline: Deadline) -> None:
        """Remove objects that no checkpoint uses. Without git nothing is packed."""
        kept: set[bytes] = set()
        for file in (self._store.path / "refs").rglob("*"):
            if file.is_file():
                self._reach(file.read_text().strip(), kept, deadline)
        for name in list(self._objects):
            deadline.check()
            if name not in kept:
                self._objects.delete_loose_object(name)

    def _reach(self, tree: str, kept: set[bytes], deadline: Deadline) -> None:
        deadline.check()
        if tree.encode() in kept or tree == EMPTY_TREE:
            return
        kept.add(tree.encode())
        content = self._objects[ObjectID(tree.encode())]
        assert isinstance(content, Tree)
        for entry in content.items():
            if stat.S_ISDIR(entry.mode):
                self._reach(entry.sha.decode(), kept, deadline)
            else:
                kept.add(entry.sha)


class _Ignores:
    """The ignore rules of a project: its ignore files and the additional exclusions."""

    def __init__(self, top: Path, root: Path, lines: bytes) -> None:
        self.top, self.lines = top, lines
        own = IgnoreFilter(lines.splitlines())
        self._manager = _IgnoreFiles(os.fspath(top), [own], ignorecase=False)
        self._prefix = "" if top == root else os.fspath(root.relative_to(top))

    def __call__(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether a path of the session's folder is ignored."""
        parts = [part for part in (self._prefix, os.fsdecode(path)) if part]
        return bool(self._manager.is_ignored("/".join(parts) + ("/" if is_folder else "")))


class _IgnoreFiles(IgnoreFilterManager):
    """The ignore files of a project; only regular files are read."""

    def _load_path(self, path: str) -> IgnoreFilter | None:
        if path not in self._path_filters:
            text = rules_text(Path(self._top_path, path, ".gitignore"), through_links=False)
            patterns = () if text is None else read_ignore_patterns(BytesIO(text))
            self._path_filters[path] = None if text is None else IgnoreFilter(patterns)
        return self._path_filters[path]


def _named(path: bytes, filters: Sequence[tuple[bytes, IgnoreFilter]]) -> bool:
    """Return whether a filter ignores a path or a folder above it."""
    parts = path.split(b"/")
    for count in range(1, len(parts) + 1):
        part = b"/".join(parts[:count]) + (b"/" if count < len(parts) else b"")
        for folder, one in filters:
            if folder and not part.startswith(folder + b"/"):
                continue
            said = one.is_ignored(part[len(folder) + 1 :] if folder else part)
            if said is not None:
                if said:
                    return True
                break
    return False
