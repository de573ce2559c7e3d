"""The checkpoints of one session, which save and restore all its folders together.

All functions block on the disk: call them in a thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.platform.posix import find_git
from acp_agent.sandbox.launch import ConfineWriting, unconfined_writing
from acp_agent.workspace.checkpoints.base import (
    DELETED,
    EMPTY_TREE,
    Change,
    Deadline,
    Reason,
    Rules,
    Snapshot,
    Span,
    UnsavedFile,
)
from acp_agent.workspace.checkpoints.restore import Restorer, SkippedFile
from acp_agent.workspace.checkpoints.store import CheckpointStore

if TYPE_CHECKING:
    from acp_agent.workspace.checkpoints.git_repository import GitRepository

RETRY_SECONDS = 3_600.0  # before a folder that took too long is tried again

CHANGED_BY_OTHERS = "someone else changed it since"
CHANGED_BY_UNKNOWN = "it is not known who changed it since"

_NOT_SAVED = "the checkpoint does not have it as it was then"
_IGNORED_AT_CHECKPOINT = "it was left out then"
_IGNORED = "ignored"
_REASONS: Mapping[Reason, str] = {
    "size": "too large",
    "unreadable": "not readable",
    "name": "a name that git does not take",
    "folders": "a repository among too many",
}


class FolderRestore(Struct, frozen=True, kw_only=True):
    """The changes that restoring a checkpoint makes in one folder, planned or done."""

    root: Path
    changes: tuple[Change, ...]
    skipped: tuple[SkippedFile, ...] = ()


class FolderCheckpoints:
    """Saves and restores the files of a session's folders.

    Args:
        roots: the session's folders, resolved.
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
        self._open_stores: dict[Path, tuple[CheckpointStore, GitRepository]] = {}
        self.roots = tuple(dict.fromkeys(roots))

    def _open_root(self, root: Path) -> tuple[CheckpointStore, GitRepository]:
        """Return the store and the repository of a folder. Lock the store before use."""
        opened = self._open_stores.get(root)
        if opened is None:
            from acp_agent.workspace.checkpoints.git_repository import GitRepository  # noqa: PLC0415 - to save

            store = CheckpointStore(self._folder, root)
            repository = GitRepository(store, self._program, self._rules.exclude, self._confine)
            opened = self._open_stores[root] = (store, repository)
        return opened

    def save(self, checkpoint: str | None, deadline: Deadline) -> dict[Path, Snapshot]:
        """Save the current files as a checkpoint; with None, only until the next sweep.

        Raises:
            CheckpointTooSlowError: it takes too long.
            WorkspaceError: the files cannot be saved.
        """
        snapshots: dict[Path, Snapshot] = {}
        for root in self.roots:
            store, repository = self._open_root(root)
            with store.locked(deadline):
                snapshots[root] = _snapshot(store, repository, self._rules, deadline)
                if checkpoint is not None:
                    store.save(self._session, checkpoint, snapshots[root])
        return snapshots

    def folders(self, root: Path, tree: str, deadline: Deadline) -> Sequence[bytes]:
        """Return the folders in a saved tree of `root`, relative to it. Raises WorkspaceError."""
        store, repository = self._open_root(root)
        with store.locked(deadline):
            return [] if tree == EMPTY_TREE else repository.folders(tree, deadline)

    def read_files(
        self, root: Path, tree: str, paths: Sequence[bytes], deadline: Deadline, *, contents: bool
    ) -> dict[bytes, bytes]:
        """Return the contents of files in a saved tree of `root`, without those that it lacks.

        Without `contents` each value is a zero byte, and no file is read.

        Raises:
            WorkspaceError: the tree cannot be read.
        """
        store, repository = self._open_root(root)
        with store.locked(deadline):
            return repository.read_files(tree, paths, deadline, contents=contents)

    def changes(self, root: Path, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
        """Return the differences between two saved trees of `root`. Raises WorkspaceError."""
        store, repository = self._open_root(root)
        with store.locked(deadline):
            return repository.changes(old, new, deadline)

    def has(self, checkpoint: str) -> bool:
        """Return whether a checkpoint still exists for any of the folders."""
        return any(
            CheckpointStore(self._folder, root).find(self._session, checkpoint)
            for root in self.roots
        )

    def plan(
        self, snapshots: Mapping[Path, Snapshot], checkpoint: str, deadline: Deadline
    ) -> list[FolderRestore]:
        """Return what restoring a checkpoint would change.

        Args:
            snapshots: the snapshots of the current files, taken a moment ago.
            deadline: the time limit.

        Raises:
            WorkspaceError: the checkpoint no longer exists.
        """
        plans = []
        for root in self.roots:
            store, repository = self._open_root(root)
            target = store.find(self._session, checkpoint)
            if target is None or root not in snapshots:
                continue
            with store.locked(deadline):
                plans.append(_plan(root, repository, snapshots[root], target, deadline))
        if not plans:
            raise WorkspaceError("the files of this checkpoint are no longer saved")
        return plans

    def restore(
        self, plans: Sequence[FolderRestore], checkpoint: str, deadline: Deadline
    ) -> list[FolderRestore]:
        """Carry out the plans; skip files that have changed since.

        Raises:
            CheckpointTooSlowError: the time is up; some files may be restored.
        """
        results = []
        for plan in plans:
            store, repository = self._open_root(plan.root)
            with store.locked(deadline):
                target = store.find(self._session, checkpoint)
                private = frozenset[bytes]() if target is None else target.private
                restorer = Restorer(plan.root, private, store.record_temporary_files, deadline)
                restorer.apply(plan.changes, repository.contents)
            results.append(
                FolderRestore(
                    root=plan.root,
                    changes=tuple(sorted(restorer.applied, key=lambda change: change.path)),
                    skipped=(*plan.skipped, *restorer.skipped),
                )
            )
        return results

    def changed_by_others(
        self, root: Path, checkpoint: str, spans: Sequence[Span], deadline: Deadline
    ) -> dict[bytes, str]:
        """Return the files that somebody other than the session changed since, with the reason.

        A change no longer counts if the file later returned to its state in the checkpoint.

        Args:
            spans: the changes since the checkpoint, in order.
        """
        store, repository = self._open_root(root)
        target = store.find(self._session, checkpoint)
        reasons: dict[bytes, str] = {}
        if target is None:
            return reasons
        with store.locked(deadline):
            for span in spans:
                if span.old == span.new:
                    continue
                if not span.is_own:
                    reason = CHANGED_BY_OTHERS if span.is_known else CHANGED_BY_UNKNOWN
                    reasons |= dict.fromkeys(_foreign_changes(repository, span, deadline), reason)
                if reasons:
                    differs = _paths(repository, target.tree, span.new, deadline)
                    reasons = {path: reason for path, reason in reasons.items() if path in differs}
        return reasons

    def unsaved(self, checkpoint: str, deadline: Deadline) -> list[tuple[Path, SkippedFile]]:
        """Return the files that a checkpoint lacks, each with its session folder.

        Files that could not be saved come first, then what the projects' ignore files exclude
        now. An ignored folder counts as one entry.
        """
        result: list[tuple[Path, SkippedFile]] = []
        ignored: list[tuple[Path, SkippedFile]] = []
        for root in self.roots:
            store, repository = self._open_root(root)
            target = store.find(self._session, checkpoint)
            if target is None:
                continue
            result += [
                (root, SkippedFile(file.path, _REASONS[file.reason])) for file in target.unsaved
            ]
            if not os.path.isdir(root):
                continue
            with store.locked(deadline):
                paths = repository.ignored(deadline)
            ignored += [(root, SkippedFile(path, _IGNORED)) for path in paths]
        return result + ignored


def _foreign_changes(repository: GitRepository, span: Span, deadline: Deadline) -> set[bytes]:
    """Return the files that, at the end of a span, are not as the session left them."""
    changed = {
        change.path
        for change in repository.changes(span.old, span.new, deadline)
        if span.wrote.get(change.path) != (DELETED if change.new is None else change.new.id)
    }
    if changed and span.target:
        changed &= _paths(repository, span.target, span.new, deadline)
    return changed


def _paths(repository: GitRepository, old: str, new: str, deadline: Deadline) -> set[bytes]:
    return {change.path for change in repository.changes(old, new, deadline)}


def _snapshot(
    store: CheckpointStore, repository: GitRepository, rules: Rules, deadline: Deadline
) -> Snapshot:
    """Save the current files; a folder that took too long recently is not tried again."""
    if not store.root.is_dir():  # deleted: an empty tree, from which everything can be restored
        return Snapshot(tree=EMPTY_TREE)
    marker = store.path / "too-slow"
    limits = f"{rules!r} {deadline.seconds}".encode()  # other limits may be enough
    if (
        marker.exists()
        and time.time() - marker.stat().st_mtime < RETRY_SECONDS
        and marker.read_bytes() == limits
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
        if not deadline.is_cancelled:
            store.write(marker, limits)
        raise


def _plan(
    root: Path, repository: GitRepository, current: Snapshot, target: Snapshot, deadline: Deadline
) -> FolderRestore:
    changes = repository.changes(current.tree, target.tree, deadline)
    unsaved_files = {file.path: file for file in (*current.unsaved, *target.unsaved)}
    deleted = [change.path for change in changes if change.new is None]
    ignored: frozenset[bytes] = frozenset()
    rules_changed = current.outer != target.outer
    if deleted and (rules_changed or any(file.path.endswith(b".gitignore") for file in changes)):
        ignored = repository.ignored_under(target, deleted, deadline)
    folders = tuple(path for path in unsaved_files if path.endswith(b"/"))
    skipped: list[SkippedFile] = []
    planned: list[Change] = []
    for change in changes:
        unsaved_path = next((file for file in folders if change.path.startswith(file)), change.path)
        if unsaved_path in unsaved_files:
            skipped.append(
                SkippedFile(change.path, _skip_reason(unsaved_files[unsaved_path], current))
            )
        elif change.path in ignored:
            skipped.append(SkippedFile(change.path, _IGNORED_AT_CHECKPOINT))
        else:
            planned.append(change)
    return FolderRestore(root=root, changes=tuple(planned), skipped=tuple(skipped))


def _skip_reason(unsaved: UnsavedFile, current: Snapshot) -> str:
    return "it cannot be saved as it is now" if unsaved in current.unsaved else _NOT_SAVED
