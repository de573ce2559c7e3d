"""Delete old checkpoints and those of deleted sessions, to limit disk use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.platform.posix import find_git
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.checkpoints.store import CheckpointStore, all_stores, remove_leftovers

SWEEP_INTERVAL = 86_400.0  # between two sweeps

_MAX_LOOSE_FILES = 4_000  # a repository with more files is packed
# Each removes the oldest quarter of the checkpoints of a repository that is too large.
_MAX_ROUNDS = 8


def sessions_with_checkpoints(folder: Path) -> set[str]:
    """Return the sessions that have checkpoints of any folder."""
    return {session for store in all_stores(folder) for session in store.sessions()}


def is_due(folder: Path) -> bool:
    """Return whether a sweep is due; if so, record that one starts now."""
    marker = folder / "swept"
    try:
        if time.time() - marker.stat().st_mtime < SWEEP_INTERVAL:
            return False
    except FileNotFoundError:
        pass
    except OSError:
        return False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.touch(0o600)
    except OSError:
        return False
    return True


def forget_session(folder: Path, session: str, deadline: Deadline) -> None:
    """Remove the checkpoints of a deleted session, and the objects that only they use.

    Objects that other sessions use are preserved. The next sweep does what there is no time for.

    Raises:
        CheckpointTooSlowError: the time is up.
        WorkspaceError: a repository cannot be read.
    """

    def forget(store: CheckpointStore) -> None:
        if session in store.sessions():
            with store.locked(deadline):
                store.needs_sweep.touch(0o600)
                store.drop_session(session)
                _sweep(store, (), None, deadline)

    _for_each_store(folder, forget)


def copy_session(folder: Path, source: str, session: str, deadline: Deadline) -> None:
    """Copy the checkpoints of a session to its fork."""
    for store in all_stores(folder):
        if source in store.sessions():
            with store.locked(deadline):
                store.copy(source, session)


def sweep(
    folder: Path, deleted_sessions: Collection[str], max_bytes: int, deadline: Deadline
) -> None:
    """Remove deleted sessions, then the oldest checkpoints of stores that are too large.

    Args:
        deleted_sessions: sessions that no longer exist.
        max_bytes: size limit for the checkpoints of one folder.
        deadline: the time limit; the next sweep does the rest.

    Raises:
        CheckpointTooSlowError: the time is up.
        WorkspaceError: a repository cannot be read.
    """
    remove_leftovers(folder)

    def clean(store: CheckpointStore) -> None:
        with store.locked(deadline):
            _sweep(store, deleted_sessions, max_bytes, deadline)

    _for_each_store(folder, clean)


def _for_each_store(folder: Path, work: Callable[[CheckpointStore], None]) -> None:
    """Call `work` with each store; raise the last WorkspaceError once all are processed."""
    failure: WorkspaceError | None = None
    for store in all_stores(folder):
        try:
            work(store)
        except WorkspaceError as error:
            failure = error
    if failure is not None:
        raise failure


def _sweep(
    store: CheckpointStore,
    deleted_sessions: Collection[str],
    max_bytes: int | None,
    deadline: Deadline,
) -> None:
    dropped = store.sessions() & set(deleted_sessions)
    for session in dropped:
        store.drop_session(session)
    if not store.records():
        store.remove()
        return
    from acp_agent.workspace.checkpoints.git_repository import GitRepository  # noqa: PLC0415 - rare

    size, files = _measure(store.path / "objects")
    repository = GitRepository(store, find_git(store.root))
    max_size = float("inf") if max_bytes is None else max_bytes
    if dropped or store.needs_sweep.exists() or files > _MAX_LOOSE_FILES or size > max_size:
        repository.sweep(deadline)
        store.needs_sweep.unlink(missing_ok=True)
        size, _ = _measure(store.path / "objects")
    for _ in range(_MAX_ROUNDS):
        records = store.records()
        if size <= max_size or len(records) < 2:
            return
        for _, session, checkpoint in records[: max(len(records) // 4, 1)]:
            store.drop(session, checkpoint)
        repository.sweep(deadline)
        size, _ = _measure(store.path / "objects")


def _measure(folder: Path) -> tuple[int, int]:
    """Return the total size and the number of the files in a folder."""
    size = files = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - faster
            except OSError:
                continue
            files += 1
    return size, files
