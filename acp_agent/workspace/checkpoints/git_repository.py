"""Keeps a folder's files with git."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.workspace.checkpoints.contract import (
    EMPTY_TREE,
    Blob,
    Change,
    Deadline,
    LeftOut,
    Rules,
    Snapshot,
    join,
)
from acp_agent.workspace.checkpoints.judge import Judge, is_private
from acp_agent.workspace.checkpoints.place import (
    exclusions,
    outer_rules,
    project_top,
    rules_at,
)
from acp_agent.workspace.checkpoints.sealed_git import SealedGit, end
from acp_agent.workspace.checkpoints.shadow import Shadow

_CHUNK = 20_000  # files that are hashed before what was done so far is written down
_NESTED_LIMIT = 50  # repositories in the folder that are looked into
_CLOSED = re.compile(rb"warning: could not open directory '(.+/)': Permission denied$")
_OTHERS = ("ls-files", "-z", "--others", "--exclude-standard")


class _State(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the index held when it was last looked at, and the marks to see that it is that one."""

    tree: str
    index: tuple[int, int, int]
    private: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class GitRepository:
    """One folder's files in one shadow repository.

    Args:
        shadow: where they are kept.
        program: the git that is run.
        exclude: patterns of what is left out.
    """

    def __init__(self, shadow: Shadow, program: str, exclude: Sequence[str] = ()) -> None:
        self._shadow = shadow
        self._top = project_top(shadow.root)
        self._exclude = tuple(exclude)
        self._program = program
        self._lines: bytes | None = None  # the exclusions, once they were looked at
        self._git = self._over(self._top)

    def _over(self, top: Path) -> SealedGit:
        shadow = self._shadow
        return SealedGit(
            self._program, shadow.path, os.fsencode(top), shadow.index, lambda: shadow.lock
        )

    @property
    def _prefix(self) -> bytes:
        """The session's folder as a path below the top, with a slash; empty where it is the top."""
        if self._top == self._shadow.root:
            return b""
        return os.fsencode(self._shadow.root.relative_to(self._top)) + b"/"

    @property
    def _within(self) -> list[bytes]:
        """What limits git to the session's folder."""
        return [b"--", self._prefix] if self._prefix else []

    def _look(self, deadline: Deadline) -> None:
        """See once which ignore files hold, and write down what else is left out."""
        if self._lines is not None:
            return
        shadow = self._shadow
        excluded = shadow.path / "info" / "exclude"
        before = excluded.read_bytes() if excluded.exists() else None
        if self._prefix and self._git.run(
            "check-ignore", b"./" + self._prefix.rstrip(b"/"), deadline=deadline, codes=(0, 1)
        ):
            # The repository around the folder leaves all of it out: it is not its project.
            self._top = shadow.root
            self._git = self._over(self._top)
        wanted = exclusions(shadow.root, self._top, shadow.data, self._exclude)
        if wanted != before:
            shadow.index.unlink(missing_ok=True)  # it may have what is to be left out now
            shadow.write(excluded, wanted)
        self._lines = wanted

    # -- keeping -----------------------------------------------------------------------------

    def snapshot(self, rules: Rules, deadline: Deadline) -> Snapshot:
        """Keep the files as they are now; see `Repository.snapshot`."""
        self._look(deadline)
        known = self._state()
        private = set() if known is None else set(map(bytes.fromhex, known.private))
        absent = set() if known is None else set(map(bytes.fromhex, known.left_out))
        paths, left_out = self._differing(deadline)
        if len(paths) > rules.max_files:
            raise CheckpointTooSlowError(f"it has more than {rules.max_files:,} files")
        judge = Judge(self._top, self._shadow.data, rules)
        changed: list[bytes] = []
        gone: list[bytes] = []
        for path in paths:
            found = judge.judge(path)
            if isinstance(found, LeftOut):
                left_out.append(found)
            if isinstance(found, os.stat_result):
                changed.append(path)
                (private.add if is_private(found) else private.discard)(path)
            else:
                gone.append(path)
                private.discard(path)
        left_out.sort(key=lambda one: one.path)
        if known is not None and not changed and absent.issuperset(gone):
            tree = known.tree
        else:
            tree = self._write(changed, gone, deadline)
            state = _State(
                tree=tree,
                index=self._marks(),
                private=tuple(sorted(map(bytes.hex, private))),
                left_out=tuple(one.path.hex() for one in left_out),
            )
            self._shadow.write(self._state_file, msgspec.json.encode(state))
        start = len(self._prefix)
        return Snapshot(
            tree=tree,
            left_out=tuple(LeftOut(one.path[start:], one.why) for one in left_out),
            private=frozenset(path[start:] for path in private),
            outer=outer_rules(self._shadow.root, self._top, self._lines or b""),
        )

    def _differing(self, deadline: Deadline) -> tuple[list[bytes], list[LeftOut]]:
        """The files that are not as the index has them, and folders that are not looked into.

        Repositories in the folder count as ordinary folders, without what git keeps in them.
        """
        warnings: list[bytes] = []
        found = _split(
            self._git.run(
                *_OTHERS, "--modified", *self._within, deadline=deadline, warnings=warnings
            )
        )
        paths = [path for path in found if not path.endswith(b"/")]
        nested = [path for path in found if path.endswith(b"/")]
        looked = 0
        left_out = [
            LeftOut(closed[1], "unreadable")
            for line in warnings
            if (closed := _CLOSED.match(line)) is not None
        ]
        top = os.fsencode(self._top)
        none = self._shadow.path / "no-index"
        while nested:
            folder = nested.pop()
            if looked == _NESTED_LIMIT:
                left_out.append(LeftOut(folder, "folders"))
                continue
            looked += 1
            inner = self._git.run(
                *_OTHERS, deadline=deadline, work_tree=join(top, folder), index=none
            )
            for path in _split(inner):
                (nested if path.endswith(b"/") else paths).append(join(folder, path))
        return list(dict.fromkeys(paths)), left_out

    def _write(self, changed: Sequence[bytes], gone: Sequence[bytes], deadline: Deadline) -> str:
        """Bring the index up to what the folder has; the tree of that."""
        self._state_file.unlink(missing_ok=True)  # from here on until the end it is not so
        if gone:
            self._remove(gone, deadline)
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
            )
        if any(path.endswith(b".gitignore") for path in (*changed, *gone)):
            ignored = self._git.run(
                "ls-files", "-z", "--cached", "--ignored", "--exclude-standard", deadline=deadline
            )
            if ignored:
                self._remove(_split(ignored), deadline)
        if not self._prefix:
            return self._git.run("write-tree", deadline=deadline).decode().strip()
        try:
            out = self._git.run("write-tree", b"--prefix=" + self._prefix, deadline=deadline)
        except CheckpointTooSlowError:
            raise
        except WorkspaceError:
            if self._git.run("ls-files", "-z", *self._within, deadline=deadline):
                raise
            return EMPTY_TREE
        return out.decode().strip()

    def _remove(self, paths: Sequence[bytes], deadline: Deadline) -> None:
        lines = b"".join(b"0 " + b"0" * 40 + b"\t" + path + b"\0" for path in paths)
        self._git.run("update-index", "-z", "--index-info", given=lines, deadline=deadline)

    @property
    def _state_file(self) -> Path:
        return self._shadow.path / "state.json"

    def _marks(self) -> tuple[int, int, int]:
        try:
            found = self._shadow.index.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def _state(self) -> _State | None:
        """What the index holds, if nobody wrote it since that was written down."""
        try:
            state = msgspec.json.decode(self._state_file.read_bytes(), type=_State)
        except (OSError, msgspec.DecodeError):
            return None
        return state if state.index == self._marks() else None

    # -- looking at what is kept -------------------------------------------------------------

    def changes(self, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """What is different between two trees."""
        out = self._git.run("diff-tree", "-r", "-z", "--no-renames", old, new, deadline=deadline)
        fields = out.split(b"\0")
        return [_change(fields[at], fields[at + 1]) for at in range(0, len(fields) - 1, 2)]

    def contents(self, blobs: Iterable[str], deadline: Deadline) -> Iterator[bytes]:
        """The contents of files by their ids, in their order."""
        process = self._git.start("cat-file", "--batch")
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for blob in blobs:
                deadline.check()
                process.stdin.write(f"{blob}\n".encode())
                process.stdin.flush()
                head = process.stdout.readline().split()
                if len(head) != 3 or head[1] != b"blob":
                    raise WorkspaceError(f"the checkpoint has lost a file's content ({blob})")
                data = process.stdout.read(int(head[2]))
                process.stdout.read(1)
                yield data
        except OSError as error:
            raise WorkspaceError(f"the checkpoint cannot be read: {error}") from None
        finally:
            end(process)

    def ignored_under(
        self, kept: Snapshot, paths: Sequence[bytes], deadline: Deadline
    ) -> frozenset[bytes]:
        """Those of the paths that were left out by the rules that held for a snapshot."""
        start = b"./" + (kept.outer.below + b"/" if kept.outer.below else b"")
        with tempfile.TemporaryDirectory(dir=self._shadow.path) as name:
            folder = os.fsencode(name)
            self._put_ignore_files(kept, folder, deadline)
            out = self._git.run(
                "check-ignore",
                "--no-index",
                "-z",
                "--stdin",
                given=b"".join(start + path + b"\0" for path in paths),
                work_tree=folder,
                codes=(0, 1),
                deadline=deadline,
            )
        return frozenset(path.removeprefix(start) for path in _split(out))

    def _put_ignore_files(self, kept: Snapshot, folder: bytes, deadline: Deadline) -> None:
        out = self._git.run("ls-tree", "-r", "-z", kept.tree, deadline=deadline)
        files: dict[bytes, str] = {}
        for line in _split(out):
            head, _, path = line.partition(b"\t")
            if path.rpartition(b"/")[2] == b".gitignore" and head.startswith(b"100"):
                files[path] = head.split()[2].decode()
        contents = self.contents(files.values(), deadline)
        inner = zip((path.rpartition(b"/")[0] for path in files), contents, strict=True)
        for place, data in rules_at(kept.outer, inner).items():
            where = join(folder, place)
            os.makedirs(where, exist_ok=True)  # noqa: PTH103 - bytes
            with open(join(where, b".gitignore"), "wb") as written:  # noqa: PTH123 - bytes
                written.write(data)

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """What the project's ignore files leave out at the moment, folders as one."""
        self._look(deadline)
        out = self._git.run(*_OTHERS, "--ignored", "--directory", *self._within, deadline=deadline)
        return [path.removeprefix(self._prefix) or b"./" for path in _split(out)]

    def sweep(self, deadline: Deadline) -> None:
        """Forget what no checkpoint has any more, and pack the rest."""
        self._git.run("repack", "-a", "-d", "-q", "--no-write-bitmap-index", deadline=deadline)
        self._git.run("prune", "--expire=now", deadline=deadline)


def _split(out: bytes) -> list[bytes]:
    return [path for path in out.split(b"\0") if path]


def _change(head: bytes, path: bytes) -> Change:
    """A pair of fields of `git diff-tree -z` (git-diff-tree(1), Raw output format)."""
    old_mode, new_mode, old, new, _ = head.lstrip(b":").split()
    return Change(path, _blob(old_mode, old), _blob(new_mode, new))


def _blob(mode: bytes, name: bytes) -> Blob | None:
    number = int(mode, 8)
    return Blob(number, name.decode()) if number else None
