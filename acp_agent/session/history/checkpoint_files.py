"""Files of checkpoints: what restoring them changes, who changed them since, when they are removed.

Every checkpoint in the journal has the tree of each folder at its time. From one to the next it is
known who may have changed files: while a turn runs that may run commands, its changes count as the
turn's; where only the tools for files could write, theirs are those that left what they wrote; from
the end of a turn to the next checkpoint every change is somebody else's.
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
_NAMED = 20  # files left out that an event or an answer names

_log = logging.getLogger(__name__)

_Why = Literal["turn", "turn_end", "restore", "restore_end", "now"]
Others = Mapping[Path, Mapping[bytes, str]]  # by folder: the files that others changed, and why


class FileChange(Struct, frozen=True, kw_only=True):
    """What going back does to a file; `by_others` where others than this session changed it.

    The path is relative to the session's folder, or absolute where it is in another one.
    """

    path: str
    change: Kind
    by_others: bool = False


class LeftAlone(Struct, frozen=True, kw_only=True):
    """A file that going back leaves unchanged, and why; `by_others` as in `FileChange`."""

    path: str
    why: str
    by_others: bool = False


class NotSaved(Struct, frozen=True, kw_only=True):
    """What a checkpoint does not have: the first files and folders, and their number."""

    named: tuple[LeftAlone, ...] = ()
    count: int = 0


class RestoredFiles(Struct, frozen=True, kw_only=True):
    """What going back changes, or has changed.

    `replaced` is the checkpoint that has what was there until then, "" where nothing was done.
    """

    changes: tuple[FileChange, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    replaced: str = ""

    @property
    def by_others(self) -> tuple[LeftAlone, ...]:
        """The files that are left unchanged as others changed them."""
        return tuple(one for one in self.left_alone if one.by_others)


def changed_files(
    checkpoints: FolderCheckpoints,
    trees: Mapping[Path, str],
    found: Mapping[Path, Snapshot],
    deadline: Deadline,
) -> list[str]:
    """Return the absolute paths of files that are not as they are in earlier trees.

    Args:
        checkpoints: stores the trees.
        trees: the earlier trees, by folder.
        found: the files as they are.
        deadline: when it has to be known.
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
    """Return what going back changes in each folder, and what others changed there.

    Args:
        checkpoints: stores the checkpoints.
        now: the files as they are.
        checkpoint: where to go back to.
        owners: what happened to a folder since.
        deadline: when it has to be known.
        force: whether the files that others changed are restored, too.
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
    """Return what going back would change, or has changed, in all folders.

    Args:
        home: the session's folder, resolved.
        folders: what is planned, or was done.
        others: by folder, what others than this session changed, and why that is thought.
        replaced: the checkpoint that has what was there, where it was done.
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
    """Return the name of a file of the session: relative to `home`, else absolute."""
    name = shown(path)
    return name if root == home else f"{root}/{name}"


def left_out_names(home: Path, found: Mapping[Path, Snapshot]) -> tuple[str, ...]:
    """Return the names of the first files that are not saved, by folder."""
    names = (
        path_name(home, root, one.path)
        for root, snapshot in found.items()
        for one in snapshot.left_out
    )
    return tuple(islice(names, _NAMED))


def not_saved(home: Path, found: Sequence[tuple[Path, SkippedFile]]) -> NotSaved:
    """Return what a checkpoint does not have, named relative to `home`."""
    named = (
        LeftAlone(path=path_name(home, root, one.path), why=one.why) for root, one in found[:_NAMED]
    )
    return NotSaved(named=tuple(named), count=len(found))


def spans(
    history: Sequence[AnyEvent], checkpoint: str, folder: str, now: str, *, only_tools: bool
) -> list[Span]:
    """Return what happened to a folder from a checkpoint until now, piece by piece.

    Args:
        history: the session's events.
        checkpoint: where to begin.
        folder: the folder, resolved.
        now: the tree of the folder as it is.
        only_tools: whether in the turn that runs, if one does, only tools for files could write.
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
    """Yield the events; those of children as the session's, except the ends of their turns."""
    for event in history:
        if not isinstance(event, ChildWorked):
            yield event
        elif isinstance(event.did, ToolEnded):
            yield event.did


class _Walk:
    """The way from one tree of a folder to the next."""

    def __init__(self, folder: str) -> None:
        self.found: list[Span] = []
        self.trees: dict[str, str] = {}  # by checkpoint
        self.turn_runs = False  # one that saved the files before it wrote
        self._folder = os.fsencode(folder.rstrip("/")) + b"/"
        self._tree: str | None = None
        self._since: _Why = "now"
        self._target = ""
        self._wrote: dict[bytes, str] = {}

    def wrote(self, files: Iterable[tuple[str, str]]) -> None:
        """Record what a tool wrote."""
        for name, content in files:
            path = os.fsencode(name)
            if path.startswith(self._folder):
                self._wrote[path.removeprefix(self._folder)] = content

    def reach(self, tree: str, why: _Why, *, only_tools: bool, target: str = "") -> None:
        """Go on to the next tree."""
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
    """Give a fork the checkpoints of its source; a failure is logged, and the fork has none."""
    try:
        await asyncio.to_thread(
            prune.copy_session, folder, source, session, Deadline(PRUNE_SECONDS)
        )
    except WorkspaceError as error:
        _log.warning("the fork %s has no checkpoints of its source: %s", session, error)


async def forget(folder: Path, outputs: Path, session: str) -> None:
    """Remove the outputs and the checkpoints of a session that was deleted.

    Where its checkpoints cannot be removed, or not in time, the next sweep removes them.

    Args:
        folder: where checkpoints are stored.
        outputs: where outputs are, in a folder for each session.
        session: one that was in the store: its id is safe as a folder's name.
    """
    await asyncio.to_thread(shutil.rmtree, outputs / session, ignore_errors=True)
    try:
        await asyncio.to_thread(prune.forget_session, folder, session, Deadline(PRUNE_SECONDS))
    except WorkspaceError as error:
        _log.warning("the checkpoints of %s are forgotten later: %s", session, error)


async def sweep(services: Services, deadline: Deadline) -> None:
    """Once a day, remove the checkpoints of sessions that are gone, and the oldest."""
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
    except AcpAgentError as error:  # it is due again with the next turn
        _log.info("old checkpoints were not removed: %s", error)
