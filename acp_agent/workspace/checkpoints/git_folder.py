"""A session's folder as git sees it: its project, its ignore rules and its files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from acp_agent.sandbox.launch import ConfineWriting, unconfined_writing
from acp_agent.workspace.checkpoints.base import Deadline, LeftOut, OuterRules, join
from acp_agent.workspace.checkpoints.isolated_git import IsolatedGit, split
from acp_agent.workspace.checkpoints.rules import exclusions, outer_rules, project_top
from acp_agent.workspace.checkpoints.store import CheckpointStore

_NESTED_LIMIT = 50  # nested repositories whose files are saved
_CLOSED = re.compile(
    rb"^warning: could not open directory '(.+?/)': (?:Permission denied|File name too long)$",
    re.MULTILINE | re.DOTALL,
)
_OTHERS = ("ls-files", "-z", "--others", "--exclude-standard")
# info/exclude is relative to the top, so its patterns would not fit a nested repository.
_INNER = ("ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")


class GitFolder:
    """The folder of a session, read by git with the checkpoint repository.

    Args:
        store: the store of the folder's checkpoints.
        program: the git program.
        exclude: patterns of files to exclude.
        confine: wraps the command line of git processes that read the folder; they may write to
            the store.

    Attributes:
        top: the folder that paths are relative to: the session's, or the top of its project.
        git: runs git on that folder.
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
        self._seen: OuterRules | None = None  # the rules for which `_leaves_us_out` is valid
        self._leaves_us_out = False
        self.top = project_top(store.root)
        self.git = self._over(self.top)

    def _over(self, top: Path) -> IsolatedGit:
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

    def look(self, deadline: Deadline) -> OuterRules:
        """Apply the current ignore rules; return those from outside the session's folder."""
        store = self._store
        rules = self._rules_below(project_top(store.root))
        if rules != self._seen:
            self._leaves_us_out = bool(
                self.prefix
                and self.git.run(
                    "check-ignore",
                    b"./" + self.prefix.rstrip(b"/"),
                    deadline=deadline,
                    codes=(0, 1),
                )
            )
            self._seen = rules
        if self._leaves_us_out:  # the surrounding repository is not the folder's project
            rules = self._rules_below(store.root)
        # Rebuild the index: its files may be ignored now, and its paths are relative to the top.
        mark = hashlib.sha256(repr((os.fsencode(self.top), rules)).encode()).hexdigest().encode()
        if _text(self._rules_file) != mark:
            store.index.unlink(missing_ok=True)
            store.write(self._rules_file, mark)
        return rules

    def _rules_below(self, top: Path) -> OuterRules:
        """Use a folder as the top of the project; return the outer rules that then apply."""
        store = self._store
        if top != self.top:
            self.top, self.git = top, self._over(top)
        lines = exclusions(store.root, top, store.data, self._exclude)
        excluded = store.path / "info" / "exclude"
        if _text(excluded) != lines:
            store.write(excluded, lines)
        return outer_rules(store.root, top, lines)

    @property
    def _rules_file(self) -> Path:
        """The file with a hash of the rules that the index was built with."""
        return self._store.path / "rules"

    def differing(self, deadline: Deadline) -> tuple[list[bytes], list[LeftOut], list[bytes]]:
        """Return the files that differ from the index, what cannot be read, and unchanged files.

        Nested repositories count as ordinary folders, without their `.git`.
        """
        warnings: list[bytes] = []
        found = split(
            self.git.run(
                *_OTHERS,
                "-t",
                "--cached",
                "--modified",
                *self.within,
                deadline=deadline,
                warnings=warnings,
            )
        )
        paths = [line[2:] for line in found if not line.startswith(b"H ") and line[-1:] != b"/"]
        nested = [line[2:] for line in found if line.endswith(b"/")]
        differing = set(paths)
        same = [line[2:] for line in found if line.startswith(b"H ") and line[2:] not in differing]
        left_out = [
            LeftOut(closed[1], "unreadable") for closed in _CLOSED.finditer(b"\n".join(warnings))
        ]
        inner, too_many = self._in_repositories(nested, deadline)
        return list(dict.fromkeys(paths + inner)), left_out + too_many, same

    def has_attributes(self, paths: Sequence[bytes]) -> bool:
        """Return whether git parses a .gitattributes file when it reads one of these files."""
        top, folders = os.fsencode(self.top), {b""}
        for path in paths:
            while (path := path.rpartition(b"/")[0]) not in folders:
                folders.add(path)
        return any(os.path.lexists(join(join(top, one), b".gitattributes")) for one in folders)

    def _in_repositories(
        self, nested: list[bytes], deadline: Deadline
    ) -> tuple[list[bytes], list[LeftOut]]:
        """Return the files of nested repositories, and the repositories over the limit."""
        paths: list[bytes] = []
        left_out: list[LeftOut] = []
        top = os.fsencode(self.top)
        none = self._store.path / "no-index"
        looked = 0
        while nested:
            folder = nested.pop()
            if looked == _NESTED_LIMIT:
                left_out.append(LeftOut(folder, "folders"))
                continue
            looked += 1
            inner = self.git.run(
                *_INNER, deadline=deadline, work_tree=join(top, folder), index=none
            )
            for path in split(inner):
                (nested if path.endswith(b"/") else paths).append(join(folder, path))
        ignored = self.ignored_among(paths, deadline) if paths else frozenset[bytes]()
        return [path for path in paths if path not in ignored], left_out

    def ignored_among(
        self, paths: Sequence[bytes], deadline: Deadline, work_tree: bytes | None = None
    ) -> frozenset[bytes]:
        """Return those of the paths below the top that ignore files exclude."""
        out = self.git.run(
            "check-ignore",
            "--no-index",
            "-z",
            "--stdin",
            given=b"".join(b"./" + path + b"\0" for path in paths),
            work_tree=work_tree,
            codes=(0, 1),
            deadline=deadline,
        )
        return frozenset(path.removeprefix(b"./") for path in split(out))

    def ignored(self, deadline: Deadline) -> Sequence[bytes]:
        """Return what the project's ignore files exclude now; a folder counts as one entry."""
        out = self.git.run(*_OTHERS, "--ignored", "--directory", *self.within, deadline=deadline)
        return [path.removeprefix(self.prefix) or b"./" for path in split(out)]


def _text(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
