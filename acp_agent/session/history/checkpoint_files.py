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
from acp_agent.workspace.checkpoints.base import Deadline, Kind, Snapshot, Span, shown
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints, RestorePlan, RestoreResult
from acp_agent.workspace.checkpoints.restore import SkippedFile

PRUNE_SECONDS = 10.0
SWEEP_SECONDS = 120.0
_NAMED = 20  # left-out files that an event or a response lists

_log = logging.getLogger(__name__)

_Why = Literal["turn", "turn_end", "restore", "restore_end", "now"]
Others = Mapping[Path, Mapping[bytes, str]]  # by folder: files changed by others, with reasons


class FileChange(Struct, frozen=True, kw_only=True):
    """The change of a file by a restore; `by_others` if others than the session changed the file.

    The path is relative to the session's folder, or absolute for files in another folder.
    """

    path: str
    change: Kind
    by_others: bool = False


class LeftAlone(Struct, frozen=True, kw_only=True):
    """A file that a restore leaves unchanged, and why; `by_others` as in `FileChange`."""

    path: str
    why: str
    by_others: bool = False


class NotSaved(Struct, frozen=True, kw_only=True):
    """The files and folders that a checkpoint left out: the first ones, and their number."""

    named: tuple[LeftAlone, ...] = ()
    count: int = 0


class RestoredFiles(Struct, frozen=True, kw_only=True):
    """The changes of a restore, planned or done.

    `replaced` is the checkpoint with the files from before the restore; "" if nothing was done.
    """

    changes: tuple[FileChange, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    replaced: str = ""

    @property
    def by_others(self) -> tuple[LeftAlone, ...]:
        """The files that are left unchanged because others changed them."""
        return tuple(one for one in self.left_alone if one.by_others)


def changed_files(
    checkpoints: FolderCheckpoints,
    trees: Mapping[Path, str],
    found: Mapping[Path, Snapshot],
    deadline: Deadline,
) -> list[str]:
    """Return the absolute paths of files that differ from earlier trees.

    Args:
        checkpoints: stores the trees.
        trees: the earlier trees, by folder.
        found: the current files, by folder.
        deadline: the deadline of the comparison.
    """
    return [
        os.fsdecode(os.path.join(os.fsencode(root), one.path))  # noqa: PTH118 - bytes
        for root, old in trees.items()
        if root in found and found[root].tree != old
        for one in checkpoints.changes(root, old, found[root].tree, deadline)
    ]


def plan_restore(
    checkpoints: FolderCheckpoints,
    now: Mapping[Path, Snapshot],
    checkpoint: str,
    owners: Callable[[Path], Sequence[Span]],
    deadline: Deadline,
    *,
    force: bool,
) -> tuple[list[RestorePlan], Others]:
    """Return the plan to restore a checkpoint in each folder, and the files that others changed.

    Args:
        checkpoints: stores the checkpoints.
        now: the current files.
        checkpoint: the checkpoint to restore.
        owners: returns the spans of a folder since the checkpoint.
        deadline: the deadline of the planning.
        force: whether files that others changed are restored, too.
    """
    plans = checkpoints.plan(now, checkpoint, deadline)
    others = {
        plan.root: checkpoints.by_others(plan.root, checkpoint, owners(plan.root), deadline)
        for plan in plans
    }
    return plans if force else [_without(plan, others[plan.root]) for plan in plans], others


def _without(plan: RestorePlan, others: Mapping[bytes, str]) -> RestorePlan:
    left = (SkippedFile(one.path, others[one.path]) for one in plan.changes if one.path in others)
    return RestorePlan(
        root=plan.root,
        changes=tuple(one for one in plan.changes if one.path not in others),
        skipped=(*plan.skipped, *left),
    )


def restored_files(
    home: Path,
    folders: Sequence[RestorePlan | RestoreResult],
    others: Others,
    replaced: str = "",
) -> RestoredFiles:
    """Return the changes of a restore in all folders, planned or done.

    Args:
        home: the session's folder, resolved.
        folders: the plans or results, one for each folder.
        others: by folder, the files that others than this session changed, with reasons.
        replaced: the checkpoint with the files from before the restore, if it was done.
    """
    changes: list[FileChange] = []
    alone: list[LeftAlone] = []
    for folder in folders:
        by_others = others.get(folder.root, {})
        found = folder.changes if isinstance(folder, RestorePlan) else folder.done
        changes.extend(
            FileChange(
                path=path_name(home, folder.root, change.path),
                change=change.kind,
                by_others=change.path in by_others,
            )
            for change in found
        )
        alone.extend(
            LeftAlone(
                path=path_name(home, folder.root, one.path),
                why=one.why,
                by_others=by_others.get(one.path) == one.why,
            )
            for one in folder.skipped
        )
    return RestoredFiles(changes=tuple(changes), left_alone=tuple(alone), replaced=replaced)


def path_name(home: Path, root: Path, path: bytes) -> str:
    """Return the name of a file: relative to `home`, or absolute outside of it."""
    name = shown(path)
    return name if root == home else f"{root}/{name}"


def left_out_names(home: Path, found: Mapping[Path, Snapshot]) -> tuple[str, ...]:
    """Return the names of the first files that are not saved, in the order of folders."""
    names = (
        path_name(home, root, one.path)
        for root, snapshot in found.items()
        for one in snapshot.left_out
    )
    return tuple(islice(names, _NAMED))


def not_saved(home: Path, found: Sequence[tuple[Path, SkippedFile]]) -> NotSaved:
    """Return the files that a checkpoint left out, with names relative to `home`."""
    named = (
        LeftAlone(path=path_name(home, root, one.path), why=one.why) for root, one in found[:_NAMED]
    )
    return NotSaved(named=tuple(named), count=len(found))


def spans(
    history: Sequence[AnyEvent], checkpoint: str, folder: str, now: str, *, only_tools: bool
) -> list[Span]:
    """Return the spans between the trees of a folder, from a checkpoint until now.

    Args:
        history: the session's events.
        checkpoint: the first checkpoint.
        folder: the folder, resolved.
        now: the current tree of the folder.
        only_tools: whether only file tools could write in the running turn, if there is one.
    """
    walk = _Walk(folder)
    begun = False
    for event in _flat(history):
        match event:
            case ToolEnded():
                walk.wrote(event.wrote)
            case TurnEnded() | TurnInterrupted():
                walk.turn_runs = False
            case CheckpointMade():
                tree = dict(event.trees).get(folder)
                walk.trees[event.checkpoint] = tree or ""
                begun = begun or event.checkpoint == checkpoint
                if begun and tree is not None:
                    walk.reach(tree, event.why, only_tools=event.only_tools, target=event.target)
            case _:
                pass
    walk.reach(now, "now", only_tools=only_tools)
    return walk.found


def _flat(history: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Yield the session's events, and the ends of calls of its child sessions."""
    for event in history:
        if not isinstance(event, ChildWorked):
            yield event
        elif isinstance(event.did, ToolEnded):
            yield event.did


class _Walk:
    """Collects the spans between the trees of a folder."""

    def __init__(self, folder: str) -> None:
        self.found: list[Span] = []
        self.trees: dict[str, str] = {}  # by checkpoint
        self.turn_runs = False  # a turn that saved the files before it wrote
        self._folder = os.fsencode(folder.rstrip("/")) + b"/"
        self._tree: str | None = None
        self._since: _Why = "now"
        self._target = ""
        self._wrote: dict[bytes, str] = {}

    def wrote(self, files: Iterable[tuple[str, str]]) -> None:
        """Record the files that a tool wrote."""
        for name, content in files:
            path = os.fsencode(name)
            if path.startswith(self._folder):
                self._wrote[path.removeprefix(self._folder)] = content

    def reach(self, tree: str, why: _Why, *, only_tools: bool, target: str = "") -> None:
        """Add the span to the next tree."""
        if self._tree is not None:
            self.found.append(self._span(self._tree, tree, why, only_tools=only_tools))
        self._tree, self._since, self._target = tree, why, target
        self._wrote = {}
        if why in {"turn", "turn_end"}:
            self.turn_runs = why == "turn"

    def _span(self, old: str, new: str, why: _Why, *, only_tools: bool) -> Span:
        in_turn = self.turn_runs or (self._since == "turn" and why == "turn_end")
        restored = self._since == "restore" and why == "restore_end"
        cut_off = self._since == "restore" and not restored
        return Span(
            old=old,
            new=new,
            is_own=restored or (in_turn and not only_tools),
            wrote=self._wrote if in_turn or self._since == "turn" else {},
            target=self.trees.get(self._target, "") if cut_off else "",
            is_known=not cut_off and (in_turn or self._since != "turn"),
        )


async def adopt(folder: Path, source: str, session: str) -> None:
    """Copy the checkpoints of a fork's source; if that fails, log it: the fork then has none."""
    try:
        await asyncio.to_thread(
            prune.copy_session, folder, source, session, Deadline(PRUNE_SECONDS)
        )
    except WorkspaceError as error:
        _log.warning("the fork %s has no checkpoints of its source: %s", session, error)


async def forget(folder: Path, outputs: Path, session: str) -> None:
    """Remove the outputs and checkpoints of a deleted session.

    If the checkpoints cannot be removed in time, the next sweep removes them.

    Args:
        folder: the folder of checkpoints.
        outputs: the folder of outputs, with a folder for each session.
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
        gone = set()
        for session in await asyncio.to_thread(prune.sessions_with_checkpoints, folder):
            try:
                await services.store.get(SessionId(session))
            except SessionNotFoundError:
                gone.add(session)
        most = services.config.checkpoints.max_bytes
        await asyncio.to_thread(prune.sweep, folder, gone, most, deadline)
    except AcpAgentError as error:  # the next turn tries again
        _log.info("old checkpoints were not removed: %s", error)
