"""Rewind a session: list the points to which it can go back, and restore one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.localization import Translator
from acp_agent.errors import InvalidInputError, ToolError
from acp_agent.events import AnyEvent, CheckpointMade, Rewound, UserMessage
from acp_agent.ids import new_rewind_id
from acp_agent.session.core import SessionCore
from acp_agent.session.history.checkpoint_files import NotSaved, RestoredFiles
from acp_agent.session.history.checkpoints import Checkpoints
from acp_agent.session.turns.titles import first_title
from acp_agent.workspace.file_io import display_name

_NOTE_HEADING = "[You went on from here, came back, and told yourself this:]"
_FILES_STAY = "The files are unchanged."
_MAX_FILES = 20  # files left unchanged that the note for the model lists

Scope = Literal["files", "conversation", "both"]
Kind = Literal["message", "rewind", "restore"]


class Point(Struct, frozen=True, kw_only=True):
    """A point to which the session can go back: before a turn's first message, or before a rewind.

    If a process died while it restored files, the replaced files are a point, too (`restore`).

    `number` counts the points from 1. `files` is the checkpoint with the files of that time; "" if
    the session has not changed any since. `current` is false for messages that a rewind removed.
    `at` is the time in milliseconds since 1970 (UTC), 0 if it is not known.
    """

    number: int
    id: str
    kind: Kind
    title: str
    files: str = ""
    current: bool = True
    at: int = 0


def points(history: Iterable[tuple[int, AnyEvent]]) -> list[Point]:
    """Return the points of a session, oldest first; `history` has every event with its time."""
    entries: list[tuple[str, Kind, str, int]] = []
    restore: tuple[str, int] | None = None  # an unfinished restore: its checkpoint and time
    files: dict[str, str] = {}
    without_files: list[str] = []
    branch: list[str] = []
    branches: dict[str, list[str]] = {}
    for time, event in history:
        if restore is not None and _ends_restore(event, restore[0]):
            _add_interrupted_restore(entries, files, restore)
            restore = None
        match event:
            case UserMessage() if not (event.steering or event.local):
                entries.append((event.message, "message", first_title(event) or "(no words)", time))
                without_files.append(event.message)
                branch.append(event.message)
            case CheckpointMade(why="turn" | "restore"):
                files.update((point, event.checkpoint) for point in without_files)
                without_files.clear()
                restore = (event.checkpoint, time) if event.why == "restore" else None
            case Rewound():
                restore = None
                entries.append((event.rewind, "rewind", event.title, time))
                if event.replaced:
                    files[event.rewind] = event.replaced
                else:
                    without_files.append(event.rewind)
                branches[event.rewind] = list(branch)
                if event.conversation:
                    branch = _rewind_branch(branch, branches, event)
    if restore is not None:
        _add_interrupted_restore(entries, files, restore)
    current = set(branch)
    return [
        Point(
            number=number,
            id=name,
            kind=kind,
            title=title,
            files=files.get(name, ""),
            current=kind != "message" or name in current,
            at=time,
        )
        for number, (name, kind, title, time) in enumerate(entries, 1)
    ]


def _ends_restore(event: AnyEvent, checkpoint: str) -> bool:
    """Return whether an event cannot be part of the restore that began with a checkpoint."""
    match event:
        case UserMessage():
            return True
        case CheckpointMade():
            return event.why != "restore_end"
        case Rewound():  # a later rewind without changes to files
            return event.replaced != checkpoint
        case _:
            return False


def _add_interrupted_restore(
    entries: list[tuple[str, Kind, str, int]], files: dict[str, str], restore: tuple[str, int]
) -> None:
    """Add the point of a restore that was interrupted."""
    checkpoint, time = restore
    entries.append((checkpoint, "restore", "files were put back, and it was cut off", time))
    files[checkpoint] = checkpoint


def _rewind_branch(branch: list[str], branches: dict[str, list[str]], event: Rewound) -> list[str]:
    """Return the messages of the conversation after a rewind; see `acp_agent.agent.context`."""
    if event.to in branches and event.to != event.rewind:
        return list(branches[event.to])
    for candidate in (branch, *reversed(branches.values())):
        if event.to in candidate:
            return candidate[: candidate.index(event.to) + event.keeps_words]
    return branch


def find_point(points: Sequence[Point], name: str) -> Point:
    """Return a point by its id or its number. Raises InvalidInputError."""
    for point in points:
        if name in {point.id, str(point.number)}:
            return point
    raise InvalidInputError(f"point: there is no point {name[:80]!r} to go back to", field="point")


class RewindResult(Struct, frozen=True, kw_only=True):
    """The changes of a rewind, planned or done. `rewind` is its id once it is done.

    `not_saved` are the files that the point's checkpoint left out and that cannot be restored.
    """

    point: Point
    scope: Scope
    files: RestoredFiles = RestoredFiles()
    not_saved: NotSaved = NotSaved()
    rewind: str = ""


class Rewinder:
    """Rewinds a session to a point: its files, its conversation, or both."""

    def __init__(self, core: SessionCore, checkpoints: Checkpoints) -> None:
        self._core = core
        self._checkpoints = checkpoints
        self._lock = asyncio.Lock()

    async def points(self) -> list[Point]:
        """Return the points; `files` is "" for a point whose checkpoint no longer exists."""
        await self._checkpoints.wait_saved()
        entries = points(await self._core.journal.dated_history())
        names = {point.files for point in entries if point.files}
        saved = await asyncio.to_thread(self._saved, names)
        return [
            point if not point.files or point.files in saved else replace(point, files="")
            for point in entries
        ]

    async def not_saved(self, points: Sequence[Point]) -> NotSaved:
        """Return the files that the newest checkpoint of these points left out."""
        newest = next((point.files for point in reversed(points) if point.files), "")
        return await self._checkpoints.skipped_files(newest) if newest else NotSaved()

    def _saved(self, names: set[str]) -> set[str]:
        return {name for name in names if self._checkpoints.has(name)}

    async def preview(self, name: str, scope: Scope, *, force: bool = False) -> RewindResult:
        """Return the changes that `rewind` would make, without making them.

        Raises:
            InvalidInputError: there is no such point.
            WorkspaceError: the checkpoint cannot be read.
        """
        point = find_point(await self.points(), name)
        files, not_saved = RestoredFiles(), NotSaved()
        if scope != "conversation" and point.files:
            files = await self._checkpoints.preview(
                point.files, await self._core.history(), force=force
            )
            not_saved = await self._checkpoints.skipped_files(point.files)
        return RewindResult(point=point, scope=scope, files=files, not_saved=not_saved)

    async def rewind(
        self,
        name: str,
        scope: Scope,
        *,
        force: bool = False,
        in_turn: bool = False,
        remember: str | None = None,
    ) -> RewindResult:
        """Rewind to a point. The current files are saved first, so that this can be undone.

        Args:
            name: the point, by id or number.
            scope: what is rewound.
            force: whether files that others than the session changed are restored, too.
            in_turn: whether the running turn requests it; otherwise no turn may run, see
                `acp_agent.session.turns.runner.TurnRunner.idle`.
            remember: the model's note to itself, if the model requests the rewind: the message of
                the point then stays in the conversation, followed by the note.

        Raises:
            InvalidInputError: there is no such point, or it does not have what is to be rewound.
            WorkspaceError: the checkpoint cannot be read, or the current files cannot be saved.
            StoreError: the journal cannot be written.
        """
        async with self._lock:
            point = find_point(await self.points(), name)
            if point.kind == "restore":
                if scope == "conversation":
                    raise InvalidInputError(
                        f"what: only files can go back to the point {point.number}", field="what"
                    )
                scope = "files"
            if scope == "files" and not point.files:
                raise InvalidInputError(
                    f"point: no files are saved for the point {point.number}", field="point"
                )
            files, not_saved = RestoredFiles(), NotSaved()
            if scope != "conversation" and point.files:
                not_saved = await self._checkpoints.skipped_files(point.files)
                history = await self._core.history()
                files = await self._checkpoints.restore(point.files, history, force=force)
            rewind = new_rewind_id()
            await self._core.emit(
                Rewound(
                    rewind=rewind,
                    to=point.id,
                    conversation=scope != "files",
                    keeps_words=remember is not None,
                    note="" if remember is None else _note(remember, scope, files),
                    restored=point.files if files.replaced else "",
                    replaced=files.replaced,
                    changed=len(files.changes) if files.replaced else 0,
                    title=point.title,
                    in_turn=in_turn,
                )
            )
            return RewindResult(
                point=point, scope=scope, files=files, not_saved=not_saved, rewind=rewind
            )

    async def rewind_by_model(self, number: int | None, message: str, files: bool) -> str:
        """Rewind to just after a message of the user; return a result for the model.

        Args:
            number: the number of the user's message in the conversation, from 1; None: the last.
            message: the model's note to itself.
            files: whether the files are restored, too.

        Raises:
            ToolError: there is no such message.
            WorkspaceError: the files cannot be restored.
        """
        messages = [
            point for point in await self.points() if point.kind == "message" and point.current
        ]
        if number is not None and number > len(messages):
            raise ToolError(
                f"there is no message {number}", advice=f"the last one is {len(messages)}"
            )
        point = messages[-1 if number is None else number - 1]
        scope: Scope = "both" if files else "conversation"
        result = await self.rewind(point.id, scope, in_turn=True, remember=message)
        return f"Back to after “{point.title}”. {_describe_files(scope, result.files)}"


def _note(message: str, scope: Scope, files: RestoredFiles) -> str:
    return f"{_NOTE_HEADING}\n{message}\n[{_describe_files(scope, files)}]"


def _describe_files(scope: Scope, files: RestoredFiles) -> str:
    """Return the part of the note about files."""
    if scope == "conversation":
        return _FILES_STAY
    count = len(files.changes) if files.replaced else 0
    restored = f"Restored {count} file{'' if count == 1 else 's'} to how they were here."
    unchanged = [f"{display_name(file.path)} ({file.why})" for file in files.unchanged]
    if not unchanged:
        return restored
    suffix = f" and {len(unchanged) - _MAX_FILES} more" if len(unchanged) > _MAX_FILES else ""
    return f"{restored} Left unchanged: {', '.join(unchanged[:_MAX_FILES])}{suffix}."


def parse_scope(text: str) -> Scope:
    """Return a text as a value of `Scope`. Raises InvalidInputError if it is no such value."""
    match text:
        case "files" | "conversation" | "both":
            return text
        case _:
            raise InvalidInputError(
                f"what: {text[:40]!r} cannot go back; files, conversation and both can",
                field="what",
            )


def changed_lines(files: RestoredFiles, limit: int, translate: Translator) -> Sequence[str]:
    """Return a line for each of the first `limit` changes, and one with the number of others."""
    signs = {"add": "+", "modify": "~", "delete": "-"}
    lines = [
        f"{signs[change.change]} {display_name(change.path)}"
        + (translate(" (changed by someone else)") if change.by_others else "")
        for change in files.changes[:limit]
    ]
    if len(files.changes) > limit:
        lines.append(translate("… and {count} more", count=f"{len(files.changes) - limit:,}"))
    return lines
