"""Plan the restore of a checkpoint, find files that others changed, and remove old checkpoints.

Every checkpoint in the journal has the tree of each folder at its time. Between two checkpoints,
changes belong to the session as follows. All changes during a turn that may run commands are the
turn's. If only file tools could write, a change is the turn's if the file still has the content
that a tool wrote. All changes between the end of a turn and the next checkpoint are others'.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.errors import AcpAgentError, SessionNotFoundError, WorkspaceError
from acp_agent.events import (
    AnyEvent,
    CheckpointMade,
    ChildWorked,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
)
from acp_agent.ids import SessionId
from acp_agent.session.services import Services
from acp_agent.workspace.checkpoints import prune
from acp_agent.workspace.checkpoints.base import (
    Deadline,
    Kind,
    Snapshot,
    Span,
    absolute_path,
    path_text,
)
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints, FolderRestore
from acp_agent.workspace.checkpoints.restore import SkippedFile

PRUNE_SECONDS = 10.0
SWEEP_SECONDS = 120.0
_MAX_FILES = 20  # left-out files that an event or a response lists

_log = logging.getLogger(__name__)

_Reason = Literal["turn", "turn_end", "restore", "restore_end", "now"]
# By folder: files changed by others, with reasons.
ChangesByOthers = Mapping[Path, Mapping[bytes, str]]


class FileChange(Struct, frozen=True, kw_only=True):
    """The change of a file by a restore; `by_others` if others than the session changed the file.

    The path is relative to the session's folder, or absolute for files in another folder.
    """

    path: str
    change: Kind
    by_others: bool = False


class UnchangedFile(Struct, frozen=True, kw_only=True):
    """A file that a restore leaves unchanged, and why; `by_others` as in `FileChange`."""

    path: str
    why: str
    by_others: bool = False


class NotSaved(Struct, frozen=True, kw_only=True):
    """The files and folders that a checkpoint left out: the first ones, and their number."""

    files: tuple[UnchangedFile, ...] = ()
    count: int = 0


class RestoredFiles(Struct, frozen=True, kw_only=True):
    """The changes of a restore, planned or done.

    `replaced` is the checkpoint with the files from before the restore; "" if nothing was done.
    """

    changes: tuple[FileChange, ...] = ()
    unchanged: tuple[UnchangedFile, ...] = ()
    replaced: str = ""

    @property
    def by_others(self) -> tuple[UnchangedFile, ...]:
        """The files that are left unchanged because others changed them."""
        return tuple(file for file in self.unchanged if file.by_others)


def changed_files(
    checkpoints: FolderCheckpoints,
    trees: Mapping[Path, str],
    snapshots: Mapping[Path, Snapshot],
    deadline: Deadline,
) -> list[str]:
    """Return the absolute paths of files that differ from earlier trees."""
    return [
        absolute_path(root, change.path)
        for root, old in trees.items()
        if root in snapshots and snapshots[root].tree != old
        for change in checkpoints.changes(root, old, snapshots[root].tree, deadline)
    ]


def plan_restore(
    checkpoints: FolderCheckpoints,
    snapshots: Mapping[Path, Snapshot],
    checkpoint: str,
    owners: Callable[[Path], Sequence[Span]],
    deadline: Deadline,
    *,
    force: bool,
) -> tuple[list[FolderRestore], ChangesByOthers]:
    """Return the plan to restore a checkpoint in each folder, and the files that others changed.

    Args:
        force: whether files that others changed are restored, too.
    """
    plans = checkpoints.plan(snapshots, checkpoint, deadline)
    by_others = {
        plan.root: checkpoints.changed_by_others(plan.root, checkpoint, owners(plan.root), deadline)
        for plan in plans
    }
    return plans if force else [_without(plan, by_others[plan.root]) for plan in plans], by_others


def _without(plan: FolderRestore, by_others: Mapping[bytes, str]) -> FolderRestore:
    skipped = (
        SkippedFile(change.path, by_others[change.path])
        for change in plan.changes
        if change.path in by_others
    )
    return FolderRestore(
        root=plan.root,
        changes=tuple(change for change in plan.changes if change.path not in by_others),
        skipped=(*plan.skipped, *skipped),
    )


def restored_files(
    home: Path,
    folders: Sequence[FolderRestore],
    by_others: ChangesByOthers,
    replaced: str = "",
) -> RestoredFiles:
    """Return the changes of a restore in all folders, planned or done.

    Args:
        home: the session's folder, resolved.
        by_others: by folder, the files that others than this session changed, with reasons.
        replaced: the checkpoint with the files from before the restore, if it was done.
    """
    changes: list[FileChange] = []
    unchanged: list[UnchangedFile] = []
    for folder in folders:
        reasons = by_others.get(folder.root, {})
        changes.extend(
            FileChange(
                path=path_name(home, folder.root, change.path),
                change=change.kind,
                by_others=change.path in reasons,
            )
            for change in folder.changes
        )
        unchanged.extend(
            UnchangedFile(
                path=path_name(home, folder.root, file.path),
                why=file.reason,
                by_others=reasons.get(file.path) == file.reason,
            )
            for file in folder.skipped
        )
    return RestoredFiles(changes=tuple(changes), unchanged=tuple(unchanged), replaced=replaced)


def path_name(home: Path, root: Path, path: bytes) -> str:
    """Return the name of a file: relative to `home`, or absolute outside of it."""
    name = path_text(path)
    return name if root == home else f"{root}/{name}"


def skipped_names(home: Path, snapshots: Mapping[Path, Snapshot]) -> tuple[str, ...]:
    """Return the names of the first files that are not saved, in the order of folders."""
    names = (
        path_name(home, root, file.path)
        for root, snapshot in snapshots.items()
        for file in snapshot.unsaved
    )
    return tuple(islice(names, _MAX_FILES))


def not_saved(home: Path, skipped: Sequence[tuple[Path, SkippedFile]]) -> NotSaved:
    """Return the files that a checkpoint left out, with names relative to `home`."""
    files = (
        UnchangedFile(path=path_name(home, root, file.path), why=file.reason)
        for root, file in skipped[:_MAX_FILES]
    )
    return NotSaved(files=tuple(files), count=len(skipped))


def spans(
    history: Sequence[AnyEvent], checkpoint: str, folder: str, now: str, *, only_tools: bool
) -> list[Span]:
    """Return the spans between the trees of a folder, from a checkpoint until now.

    Args:
        folder: the folder, resolved.
        only_tools: whether only file tools could write in the running turn, if there is one.
    """
    collector = _SpanCollector(folder)
    started = False
    for event in _flatten(history):
        match event:
            case ToolEnded():
                collector.wrote(event.wrote)
            case TurnEnded() | TurnInterrupted():
                collector.in_turn = False
            case CheckpointMade():
                tree = dict(event.trees).get(folder)
                collector.trees[event.checkpoint] = tree or ""
                started = started or event.checkpoint == checkpoint
                if started and tree is not None:
                    collector.add_tree(
                        tree, event.why, only_tools=event.only_tools, target=event.target
                    )
    collector.add_tree(now, "now", only_tools=only_tools)
    return collector.spans


def _flatten(history: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Yield the session's events, and the ends of calls of its child sessions."""
    for event in history:
        if not isinstance(event, ChildWorked):
            yield event
        elif isinstance(event.did, ToolEnded):
            yield event.did


class _SpanCollector:
    """Collects the spans between the trees of a folder."""

    def __init__(self, folder: str) -> None:
        self.spans: list[Span] = []
        self.trees: dict[str, str] = {}  # by checkpoint
        self.in_turn = False  # a turn that saved the files before it wrote
        self._folder = os.fsencode(folder.rstrip("/")) + b"/"
        self._tree: str | None = None
        self._reason: _Reason = "now"
        self._target = ""
        self._wrote: dict[bytes, str] = {}

    def wrote(self, files: Iterable[tuple[str, str]]) -> None:
        """Record the files that a tool wrote."""
        for name, content in files:
            path = os.fsencode(name)
            if path.startswith(self._folder):
                self._wrote[path.removeprefix(self._folder)] = content

    def add_tree(self, tree: str, why: _Reason, *, only_tools: bool, target: str = "") -> None:
        """Add the span to the next tree."""
        if self._tree is not None:
            self.spans.append(self._span(self._tree, tree, why, only_tools=only_tools))
        self._tree, self._reason, self._target = tree, why, target
        self._wrote = {}
        if why in {"turn", "turn_end"}:
            self.in_turn = why == "turn"

    def _span(self, old: str, new: str, why: _Reason, *, only_tools: bool) -> Span:
        in_turn = self.in_turn or (self._reason == "turn" and why == "turn_end")
        restored = self._reason == "restore" and why == "restore_end"
        interrupted = self._reason == "restore" and not restored
        return Span(
            old=old,
            new=new,
            is_own=restored or (in_turn and not only_tools),
            wrote=self._wrote if in_turn or self._reason == "turn" else {},
            target=self.trees.get(self._target, "") if interrupted else "",
            is_known=not interrupted and (in_turn or self._reason != "turn"),
        )


async def copy_checkpoints(folder: Path, source: str, session: str) -> None:
    """Copy the checkpoints of a fork's source; if that fails, log it: the fork then has none."""
    try:
        await asyncio.to_thread(
            prune.copy_session, folder, source, session, Deadline(PRUNE_SECONDS)
        )
    except WorkspaceError as error:
        _log.warning("the fork %s has no checkpoints of its source: %s", session, error)


async def remove_session_files(folder: Path, outputs: Path, session: str) -> None:
    """Remove the outputs and checkpoints of a deleted session.

    If the checkpoints cannot be removed in time, the next sweep removes them.

    Args:
        session: an id that was in the store, so that it is safe as the name of a folder.
    """
    await asyncio.to_thread(shutil.rmtree, outputs / session, ignore_errors=True)
    try:
        await asyncio.to_thread(prune.forget_session, folder, session, Deadline(PRUNE_SECONDS))
    except WorkspaceError as error:
        _log.warning("the checkpoints of %s are forgotten later: %s", session, error)


async def sweep(services: Services, deadline: Deadline) -> None:
    """Once a day, remove checkpoints of deleted sessions, and the oldest beyond the size limit."""
    folder = services.checkpoints
    try:
        if not await asyncio.to_thread(prune.is_due, folder):
            return
        deleted = set()
        for session in await asyncio.to_thread(prune.sessions_with_checkpoints, folder):
            try:
                await services.store.get(SessionId(session))
            except SessionNotFoundError:
                deleted.add(session)
        max_bytes = services.config.checkpoints.max_bytes
        await asyncio.to_thread(prune.sweep, folder, deleted, max_bytes, deadline)
    except AcpAgentError as error:  # the next turn tries again
        _log.info("old checkpoints were not removed: %s", error)
