"""A session's folder as git sees it: its project, its ignore rules and its files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from acp_agent.extensions.definitions.locations import project_top
from acp_agent.sandbox.launch import ConfineWriting, unconfined_writing
from acp_agent.workspace.checkpoints.base import Deadline, OuterRules, UnsavedFile, join
from acp_agent.workspace.checkpoints.isolated_git import IsolatedGit, split_records
from acp_agent.workspace.checkpoints.rules import exclusions, outer_rules
from acp_agent.workspace.checkpoints.store import CheckpointStore

_NESTED_LIMIT = 50  # nested repositories whose files are saved
_UNREADABLE_WARNING = re.compile(
    rb"^warning: could not open directory '(.+?/)': (?:Permission denied|File name too long)$",
    re.MULTILINE | re.DOTALL,
)
_LIST_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
# info/exclude is relative to the top, so its patterns would not fit a nested repository.
_LIST_NESTED = ("ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")


class GitFolder:
    """The folder of a session, read by git with the checkpoint repository.

    Args:
        confine: wraps the command line of git processes that read the folder; they may write to
            the store.

    Attributes:
        top: the folder that paths are relative to: the session's, or the top of its project.
    """

    def __init__(
        self,
        store: CheckpointStore,
        program: str,
        exclude: Sequence[str] = (),
        confine: ConfineWriting = unconfined_writing,
    ) -> None:
        self._store = store
        self._confine = confine([os.path.realpath(store.path)])
        self._exclude = tuple(exclude)
        self._program = program
        self._last_rules: OuterRules | None = (
            None  # the rules for which `_excludes_folder` is valid
        )
        self._excludes_folder = False
        self.top = project_top(store.root)
        self.git = self._git_for(self.top)

    def _git_for(self, top: Path) -> IsolatedGit:
        store = self._store
        return IsolatedGit(
            self._program,
            store.path,
            os.fsencode(top),
            store.index,
            lock=lambda: store.lock,
            confine=self._confine,
        )

    @property
    def prefix(self) -> bytes:
        """The session's folder relative to the top, with a slash; empty if it is the top."""
        if self.top == self._store.root:
            return b""
        return os.fsencode(self._store.root.relative_to(self.top)) + b"/"

    @property
    def within(self) -> list[bytes]:
        """The arguments that limit git to the session's folder."""
        return [b"--", self.prefix] if self.prefix else []

    def apply_rules(self, deadline: Deadline) -> OuterRules:
        """Apply the current ignore rules; return those from outside the session's folder."""
        store = self._store
        rules = self._use_top(project_top(store.root))
        if rules != self._last_rules:
            self._excludes_folder = bool(
                self.prefix
                and self.git.run(
                    "check-ignore",
                    b"./" + self.prefix.rstrip(b"/"),
                    deadline=deadline,
                    codes=(0, 1),
                )
            )
            self._last_rules = rules
        if self._excludes_folder:  # the surrounding repository is not the folder's project
            rules = self._use_top(store.root)
        # Rebuild the index: its files may be ignored now, and its paths are relative to the top.
        digest = hashlib.sha256(repr((os.fsencode(self.top), rules)).encode()).hexdigest().encode()
        if _read_if_exists(self._rules_file) != digest:
            store.index.unlink(missing_ok=True)
            store.write(self._rules_file, digest)
        return rules

    def _use_top(self, top: Path) -> OuterRules:
        """Use a folder as the top of the project; return the outer rules that then apply."""
        store = self._store
        if top != self.top:
            self.top, self.git = top, self._git_for(top)
        lines = exclusions(store.root, top, store.data, self._exclude)
        exclude_file = store.path / "info" / "exclude"
        if _read_if_exists(exclude_file) != lines:
            store.write(exclude_file, lines)
        return outer_rules(store.root, top, lines)

    @property
    def _rules_file(self) -> Path:
        """The file with a hash of the rules that the index was built with."""
        return self._store.path / "rules"

    def list_changes(
        self, deadline: Deadline
    ) -> tuple[list[bytes], list[UnsavedFile], list[bytes]]:
        """Return the files that differ from the index, what cannot be read, and unchanged files.

        Nested repositories count as ordinary folders, without their `.git`.
        """
        warnings: list[bytes] = []
        lines = split_records(
            self.git.run(
                *_LIST_UNTRACKED,
                "-t",
                "--cached",
                "--modified",
                *self.within,
                deadline=deadline,
                warnings=warnings,
            )
        )
        paths = [line[2:] for line in lines if not line.startswith(b"H ") and line[-1:] != b"/"]
        nested = [line[2:] for line in lines if line.endswith(b"/")]
        list_changes = set(paths)
        unchanged = [
            line[2:] for line in lines if line.startswith(b"H ") and line[2:] not in list_changes
        ]
        unsaved = [
            UnsavedFile(match[1], "unreadable")
            for match in _UNREADABLE_WARNING.finditer(b"\n".join(warnings))
        ]
        nested_paths, too_many = self._list_nested(nested, deadline)
        return list(dict.fromkeys(paths + nested_paths)), unsaved + too_many, unchanged

    def has_attributes(self, paths: Sequence[bytes]) -> bool:
        """Return whether git parses a .gitattributes file when it reads one of these files."""
        top, folders = os.fsencode(self.top), {b""}
        for path in paths:
            while (path := path.rpartition(b"/")[0]) not in folders:
                folders.add(path)
        return any(
            os.path.lexists(join(join(top, folder), b".gitattributes")) for folder in folders
        )

    def _list_nested(
        self, nested: list[bytes], deadline: Deadline
    ) -> tuple[list[bytes], list[UnsavedFile]]:
        """Return the files of nested repositories, and the repositories over the limit."""
        paths: list[bytes] = []
        unsaved: list[UnsavedFile] = []
        top = os.fsencode(self.top)
        missing_index = self._store.path / "no-index"
        visited = 0
        while nested:
            folder = nested.pop()
            if visited == _NESTED_LIMIT:
                unsaved.append(UnsavedFile(folder, "folders"))
                continue
            visited += 1
            inner = self.git.run(
                *_LIST_NESTED, deadline=deadline, work_tree=join(top, folder), index=missing_index
            )
            for path in split_records(inner):
                (nested if path.endswith(b"/") else paths).append(join(folder, path))
        ignored = self.ignored_among(paths, deadline) if paths else frozenset[bytes]()
        return [path for path in paths if path not in ignored], unsaved

    def ignored_among(
        self, paths: Sequence[bytes], deadline: Deadline, work_tree: bytes | None = None
    ) -> frozenset[bytes]:
        """Return those of the paths below the top that ignore files exclude."""
        output = self.git.run(
            "check-ignore",
            "--no-index",
            "-z",
            "--stdin",
            stdin_data=b"".join(b"./" + path + b"\0" for path in paths),
            work_tree=work_tree,
            codes=(0, 1),
            deadline=deadline,
        )
        return frozenset(path.removeprefix(b"./") for path in split_records(output))

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """Return what the project's ignore files exclude now; a folder counts as one entry."""
        output = self.git.run(
            *_LIST_UNTRACKED, "--ignored", "--directory", *self.within, deadline=deadline
        )
        return [path.removeprefix(self.prefix) or b"./" for path in split_records(output)]


def _read_if_exists(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
