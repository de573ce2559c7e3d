"""Keeps a folder's files without git, by the library dulwich, in a repository of the same form."""

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
from acp_agent.platform.nofollow import open_last, opened_folder
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
_SETTLED = 2_000_000_000  # nanoseconds after which a file's times tell whether it was changed


class _Seen(Struct, frozen=True, array_like=True):
    """A file as it was when it was hashed."""

    size: int
    changed: int
    inode: int
    mode: int
    id: str


class DulwichRepository:
    """One folder's files in one repository of ours.

    Args:
        store: where they are kept.
        exclude: patterns of what is left out.
    """

    def __init__(self, store: CheckpointStore, exclude: Sequence[str] = ()) -> None:
        self._store = store
        self._exclude = tuple(exclude)
        self._objects = DiskObjectStore(os.fspath(store.path / "objects"))

    # -- keeping -----------------------------------------------------------------------------

    def snapshot(self, rules: Rules, deadline: Deadline) -> Snapshot:
        """Save the files as they are now; see `Repository.snapshot`."""
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
        # What was changed just now may be changed again with nothing to see by.
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
                    with os.fdopen(open_last(name, os.O_RDONLY, folder), "rb") as file:
                        if not os.path.samestat(os.fstat(file.fileno()), found):
                            return None  # it was replaced by another file, perhaps a pipe
                        data = file.read()
        except OSError:
            return None  # it is gone
        blob = DulwichBlob.from_string(data)
        self._objects.add_object(blob)
        return _Seen(found.st_size, found.st_ctime_ns, found.st_ino, mode, blob.id.decode())

    def _files(
        self, ignores: _Ignores, left_out: list[LeftOut], deadline: Deadline
    ) -> Iterator[bytes]:
        """The files and symlinks of the folder that no ignore file names.

        Folders that may not be read are added to `left_out`.
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
            except OSError:  # it may not be read, or its path is too long
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
        if top != root and ignores(b"", is_folder=True):  # the repository around it is not its own
            lines = exclusions(root, root, store.data, self._exclude)
            return _Ignores(root, root, lines)
        return ignores

    # -- looking at what is kept -------------------------------------------------------------

    def changes(self, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """What is different between two trees."""
        before, after = self._flat(old, deadline), self._flat(new, deadline)
        return [
            Change(path, before.get(path), after.get(path))
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path)
        ]

    def folders(self, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """The folders of a tree, relative to it."""
        found = {path.rpartition(b"/")[0] for path in self._flat(tree, deadline)}
        parents = {folder[:at] for folder in found for at, c in enumerate(folder) if c == 0x2F}
        return sorted((found | parents) - {b""})

    def files_of(
        self, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """The contents of files of a tree by their paths, of those that it has.

        Without `contents` each is a zero byte, and the files are not read.
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
        """The contents of files by their ids, in their order."""
        for blob in blobs:
            deadline.check()
            try:
                yield self._objects[ObjectID(blob.encode())].as_raw_string()
            except KeyError:
                raise WorkspaceError(f"the checkpoint has lost a file's content ({blob})") from None

    def ignored_under(
        self, kept: Snapshot, paths: Sequence[bytes], deadline: Deadline
    ) -> frozenset[bytes]:
        """Those of the paths that were left out by the rules that held for a snapshot."""
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
        """What the project's ignore files leave out at the moment, folders as one."""
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
        """Remove what no checkpoint uses. Without git nothing is packed."""
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
    """What the ignore files of a project say, and the exclusions before them."""

    def __init__(self, top: Path, root: Path, lines: bytes) -> None:
        self.top, self.lines = top, lines
        own = IgnoreFilter(lines.splitlines())
        self._manager = _IgnoreFiles(os.fspath(top), [own], ignorecase=False)
        self._prefix = "" if top == root else os.fspath(root.relative_to(top))

    def __call__(self, path: bytes, *, is_folder: bool) -> bool:
        """Whether a path of the session's folder is left out."""
        parts = [part for part in (self._prefix, os.fsdecode(path)) if part]
        return bool(self._manager.is_ignored("/".join(parts) + ("/" if is_folder else "")))


class _IgnoreFiles(IgnoreFilterManager):
    """The ignore files of a project; anything but a regular file counts as none."""

    def _load_path(self, path: str) -> IgnoreFilter | None:
        if path not in self._path_filters:
            text = rules_text(Path(self._top_path, path, ".gitignore"), through_links=False)
            patterns = () if text is None else read_ignore_patterns(BytesIO(text))
            self._path_filters[path] = None if text is None else IgnoreFilter(patterns)
        return self._path_filters[path]


def _named(path: bytes, filters: Sequence[tuple[bytes, IgnoreFilter]]) -> bool:
    """Whether a filter of the folders above a path names it, or a folder that it is in."""
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
