"""The checkpoints of one session, which save and restore all its folders together.

All functions block on the disk: call them in a thread.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.platform.programs import find_git
from acp_agent.sandbox.launch import ConfineWriting, unconfined_writing
from acp_agent.workspace.checkpoints.base import (
    EMPTY_TREE,
    Change,
    Deadline,
    LeftOut,
    Reason,
    Repository,
    Rules,
    Snapshot,
    Span,
)
from acp_agent.workspace.checkpoints.restore import Restorer, SkippedFile
from acp_agent.workspace.checkpoints.store import CheckpointStore

NO_GIT = "git is not installed; install it, or the extra `dulwich`, to save files for /rewind"
AGAIN_SECONDS = 3_600.0  # before a folder that took too long is tried again

BY_OTHERS = "someone else changed it since"
BY_UNKNOWN = "it is not known who changed it since"

_NOT_SAVED = "the checkpoint does not have it as it was then"
_IGNORED_THEN = "it was left out then"
_IGNORED = "ignored"
_REASONS: Mapping[Reason, str] = {
    "size": "too large",
    "unreadable": "not readable",
    "name": "a name that git does not take",
    "folders": "a repository among too many",
}


class RestorePlan(Struct, frozen=True, kw_only=True):
    """The changes that restoring a checkpoint makes in one folder."""

    root: Path
    changes: tuple[Change, ...]
    skipped: tuple[SkippedFile, ...] = ()


class RestoreResult(Struct, frozen=True, kw_only=True):
    """The result of restoring a folder."""

    root: Path
    done: tuple[Change, ...]
    skipped: tuple[SkippedFile, ...]


class FolderCheckpoints:
    """Saves and restores the files of a session's folders.

    Args:
        folder: the folder that stores all checkpoints.
        session: the session's id.
        roots: the session's folders, resolved.
        rules: which files are saved.
        program: the git program to use; None for the installed one.
        confine: wraps the command line of git processes that read the folders.
    """

    def __init__(
        self,
        folder: Path,
        session: str,
        roots: Sequence[Path],
        rules: Rules,
        program: str | None = None,
        *,
        confine: ConfineWriting = unconfined_writing,
    ) -> None:
        self._folder = folder
        self._confine = confine
        self._session = session
        self._rules = rules
        self._program = program or find_git(*roots)
        self._open: dict[Path, tuple[CheckpointStore, Repository]] = {}
        self.roots = tuple(dict.fromkeys(roots))

    def _of(self, root: Path) -> tuple[CheckpointStore, Repository]:
        """Return the store and the repository of a folder. Lock the store before use."""
        found = self._open.get(root)
        if found is None:
            store = CheckpointStore(self._folder, root)
            found = self._open[root] = (
                store,
                open_repository(store, self._program, self._rules.exclude, self._confine),
            )
        return found

    def save(self, checkpoint: str | None, deadline: Deadline) -> dict[Path, Snapshot]:
        """Save the current files as a checkpoint; with None, only until the next sweep.

        Raises:
            CheckpointTooSlowError: it takes too long.
            WorkspaceError: the files cannot be saved.
        """
        found: dict[Path, Snapshot] = {}
        for root in self.roots:
            store, repository = self._of(root)
            with store.locked(deadline):
                found[root] = _snapshot(store, repository, self._rules, deadline)
                if checkpoint is not None:
                    store.save(self._session, checkpoint, found[root])
        return found

    def folders(self, root: Path, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """Return the folders in a saved tree of `root`, relative to it.

        Raises:
            WorkspaceError: the tree cannot be read.
        """
        store, repository = self._of(root)
        with store.locked(deadline):
            return [] if tree == EMPTY_TREE else repository.folders(tree, deadline)

    def files_of(
        self, root: Path, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """Return the contents of files in a saved tree of `root`, without those that it lacks.

        Without `contents` each value is a zero byte, and no file is read.

        Raises:
            WorkspaceError: the tree cannot be read.
        """
        store, repository = self._of(root)
        with store.locked(deadline):
            return repository.files_of(tree, paths, deadline, contents=contents)

    def changes(self, root: Path, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """Return the differences between two saved trees of `root`.

        Raises:
            WorkspaceError: the trees cannot be read.
        """
        store, repository = self._of(root)
        with store.locked(deadline):
            return repository.changes(old, new, deadline)

    def has(self, checkpoint: str) -> bool:
        """Return whether a checkpoint still exists for any of the folders."""
        return any(
            CheckpointStore(self._folder, root).find(self._session, checkpoint)
            for root in self.roots
        )

    def plan(
        self, now: Mapping[Path, Snapshot], checkpoint: str, deadline: Deadline
    ) -> list[RestorePlan]:
        """Return what restoring a checkpoint would change.

        Args:
            now: the snapshots of the current files, taken a moment ago.
            checkpoint: the checkpoint's id.
            deadline: the time limit.

        Raises:
            WorkspaceError: the checkpoint no longer exists.
        """
        plans = []
        for root in self.roots:
            store, repository = self._of(root)
            target = store.find(self._session, checkpoint)
            if target is None or root not in now:
                continue
            with store.locked(deadline):
                plans.append(_plan(root, repository, now[root], target, deadline))
        if not plans:
            raise WorkspaceError("the files of this checkpoint are no longer saved")
        return plans

    def restore(
        self, plans: Sequence[RestorePlan], checkpoint: str, deadline: Deadline
    ) -> list[RestoreResult]:
        """Carry out the plans; skip files that have changed since.

        Raises:
            CheckpointTooSlowError: the time is up; some files may be restored.
        """
        results = []
        for plan in plans:
            store, repository = self._of(plan.root)
            with store.locked(deadline):
                target = store.find(self._session, checkpoint)
                private = frozenset[bytes]() if target is None else target.private
                restorer = Restorer(plan.root, private, store.restoring, deadline)
                restorer.apply(plan.changes, repository.contents)
            results.append(
                RestoreResult(
                    root=plan.root,
                    done=tuple(sorted(restorer.done, key=lambda one: one.path)),
                    skipped=(*plan.skipped, *restorer.skipped),
                )
            )
        return results

    def by_others(
        self, root: Path, checkpoint: str, spans: Sequence[Span], deadline: Deadline
    ) -> dict[bytes, str]:
        """Return the files that somebody other than the session changed since, with the reason.

        A change no longer counts if the file later returned to its state in the checkpoint.

        Args:
            root: the folder.
            checkpoint: the checkpoint's id.
            spans: the changes since the checkpoint, in order.
            deadline: the time limit.
        """
        store, repository = self._of(root)
        target = store.find(self._session, checkpoint)
        found: dict[bytes, str] = {}
        if target is None:
            return found
        with store.locked(deadline):
            for span in spans:
                if span.old == span.new:
                    continue
                if not span.is_own:
                    why = BY_OTHERS if span.is_known else BY_UNKNOWN
                    found |= dict.fromkeys(_not_own(repository, span, deadline), why)
                if found:
                    differs = _paths(repository, target.tree, span.new, deadline)
                    found = {path: why for path, why in found.items() if path in differs}
        return found

    def left_out(self, checkpoint: str, deadline: Deadline) -> list[tuple[Path, SkippedFile]]:
        """Return the files that a checkpoint lacks, each with its session folder.

        Files that could not be saved come first, then what the projects' ignore files exclude
        now. An ignored folder counts as one entry.
        """
        found: list[tuple[Path, SkippedFile]] = []
        ignored: list[tuple[Path, SkippedFile]] = []
        for root in self.roots:
            store, repository = self._of(root)
            target = store.find(self._session, checkpoint)
            if target is None:
                continue
            found += [(root, SkippedFile(one.path, _REASONS[one.why])) for one in target.left_out]
            if not os.path.isdir(root):  # noqa: PTH112 - the folder above may not be searched
                continue
            with store.locked(deadline):
                paths = repository.ignored(deadline)
            ignored += [(root, SkippedFile(path, _IGNORED)) for path in paths]
        return found + ignored


def _not_own(repository: Repository, span: Span, deadline: Deadline) -> set[bytes]:
    """Return the files that, at the end of a span, are not as the session left them."""
    changed = {
        change.path
        for change in repository.changes(span.old, span.new, deadline)
        if change.new is None or span.wrote.get(change.path) != change.new.id
    }
    if changed and span.target:
        changed &= _paths(repository, span.target, span.new, deadline)
    return changed


def _paths(repository: Repository, old: str, new: str, deadline: Deadline) -> set[bytes]:
    return {change.path for change in repository.changes(old, new, deadline)}


def _snapshot(
    store: CheckpointStore, repository: Repository, rules: Rules, deadline: Deadline
) -> Snapshot:
    """Save the current files; a folder that took too long recently is not tried again."""
    if not store.root.is_dir():  # deleted: an empty tree, from which everything can be restored
        return Snapshot(tree=EMPTY_TREE)
    mark = store.path / "too-slow"
    asked = f"{rules!r} {deadline.seconds}".encode()  # other limits may be enough
    if (
        mark.exists()
        and time.time() - mark.stat().st_mtime < AGAIN_SECONDS
        and mark.read_bytes() == asked
    ):
        raise CheckpointTooSlowError("the folder took too long less than an hour ago")
    try:
        try:
            return repository.snapshot(rules, deadline)
        except CheckpointTooSlowError:
            raise
        except WorkspaceError:
            # A file was deleted meanwhile, or the index is damaged: retry once with a new index.
            store.index.unlink(missing_ok=True)
            return repository.snapshot(rules, deadline)
    except CheckpointTooSlowError:
        if not deadline.given_up:
            store.write(mark, asked)
        raise


def open_repository(
    store: CheckpointStore,
    program: str | None,
    exclude: Sequence[str] = (),
    confine: ConfineWriting = unconfined_writing,
) -> Repository:
    """Open the repository in a store folder with git, or with dulwich if git is missing.

    Raises:
        WorkspaceError: neither is installed.
    """
    if program is not None:
        from acp_agent.workspace.checkpoints.git_repository import GitRepository  # noqa: PLC0415 - one of two

        return GitRepository(store, program, exclude, confine)
    if importlib.util.find_spec("dulwich") is None:
        raise WorkspaceError(NO_GIT)
    from acp_agent.workspace.checkpoints.dulwich_repository import (  # noqa: PLC0415 - optional
        DulwichRepository,
    )

    return DulwichRepository(store, exclude)


def _plan(
    root: Path, repository: Repository, now: Snapshot, target: Snapshot, deadline: Deadline
) -> RestorePlan:
    changes = repository.changes(now.tree, target.tree, deadline)
    absent = {one.path: one for one in (*now.left_out, *target.left_out)}
    deleted = [change.path for change in changes if change.new is None]
    ignored: frozenset[bytes] = frozenset()
    rules_changed = now.outer != target.outer
    if deleted and (rules_changed or any(one.path.endswith(b".gitignore") for one in changes)):
        ignored = repository.ignored_under(target, deleted, deadline)
    folders = tuple(path for path in absent if path.endswith(b"/"))
    skipped: list[SkippedFile] = []
    planned: list[Change] = []
    for change in changes:
        place = next((one for one in folders if change.path.startswith(one)), change.path)
        if place in absent:
            skipped.append(SkippedFile(change.path, _why(absent[place], now)))
        elif change.path in ignored:
            skipped.append(SkippedFile(change.path, _IGNORED_THEN))
        else:
            planned.append(change)
    return RestorePlan(root=root, changes=tuple(planned), skipped=tuple(skipped))


def _why(left_out: LeftOut, now: Snapshot) -> str:
    return "it cannot be saved as it is now" if left_out in now.left_out else _NOT_SAVED
