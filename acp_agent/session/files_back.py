"""What going back does to a session's files, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.workspace.checkpoints.base import (
    Deadline,
    Kind,
    Snapshot,
    Span,
    shown,
)
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints, RestorePlan, RestoreResult
from acp_agent.workspace.checkpoints.restore import SkippedFile

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
    """What a checkpoint does not have: the first files and folders, and how many there are."""

    named: tuple[LeftAlone, ...] = ()
    count: int = 0


class FilesBack(Struct, frozen=True, kw_only=True):
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


def planned(
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
        checkpoints: what has the checkpoints.
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


def told_of(
    home: Path,
    folders: Sequence[RestorePlan | RestoreResult],
    others: Others,
    replaced: str = "",
) -> FilesBack:
    """What going back would change, or has changed, in all folders.

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
                path=named(home, folder.root, change.path),
                change=change.kind,
                by_others=change.path in by_others,
            )
            for change in found
        )
        alone.extend(
            LeftAlone(
                path=named(home, folder.root, one.path),
                why=one.why,
                by_others=by_others.get(one.path) == one.why,
            )
            for one in folder.skipped
        )
    return FilesBack(changes=tuple(changes), left_alone=tuple(alone), replaced=replaced)


def named(home: Path, root: Path, path: bytes) -> str:
    """A file of one of the session's folders: relative to `home`, else absolute."""
    name = shown(path)
    return name if root == home else f"{root}/{name}"
