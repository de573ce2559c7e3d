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

_FROM_LATER = "[You went on from here, came back, and told yourself this:]"
_FILES_STAY = "The files are unchanged."
_NAMED = 20  # files left unchanged that the note for the model lists

What = Literal["files", "conversation", "both"]
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
    found: list[tuple[str, Kind, str, int]] = []
    begun: tuple[str, int] | None = None  # an unfinished restore: its checkpoint and time
    files: dict[str, str] = {}
    without_files: list[str] = []
    line: list[str] = []
    left: dict[str, list[str]] = {}
    for at, event in history:
        if begun is not None and _is_apart(event, begun[0]):
            _cut_off(found, files, begun)
            begun = None
        match event:
            case UserMessage() if not (event.steering or event.local):
                found.append((event.message, "message", first_title(event) or "(no words)", at))
                without_files.append(event.message)
                line.append(event.message)
            case CheckpointMade(why="turn" | "restore"):
                files.update((point, event.checkpoint) for point in without_files)
                without_files.clear()
                begun = (event.checkpoint, at) if event.why == "restore" else None
            case Rewound():
                begun = None
                found.append((event.rewind, "rewind", event.title, at))
                if event.replaced:
                    files[event.rewind] = event.replaced
                else:
                    without_files.append(event.rewind)
                left[event.rewind] = list(line)
                if event.conversation:
                    line = _back(line, left, event)
            case _:
                pass
    if begun is not None:
        _cut_off(found, files, begun)
    now = set(line)
    return [
        Point(
            number=number,
            id=name,
            kind=kind,
            title=title,
            files=files.get(name, ""),
            current=kind != "message" or name in now,
            at=at,
        )
        for number, (name, kind, title, at) in enumerate(found, 1)
    ]


def _is_apart(event: AnyEvent, checkpoint: str) -> bool:
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


def _cut_off(
    found: list[tuple[str, Kind, str, int]], files: dict[str, str], begun: tuple[str, int]
) -> None:
    """Add the point of a restore that was interrupted."""
    checkpoint, at = begun
    found.append((checkpoint, "restore", "files were put back, and it was cut off", at))
    files[checkpoint] = checkpoint


def _back(line: list[str], left: dict[str, list[str]], event: Rewound) -> list[str]:
    """Return the messages of the conversation after a rewind; see `acp_agent.agent.context`."""
    if event.to in left and event.to != event.rewind:
        return list(left[event.to])
    for one in (line, *reversed(left.values())):
        if event.to in one:
            return one[: one.index(event.to) + event.keeps_words]
    return line


def find_point(known: Sequence[Point], wanted: str) -> Point:
    """Return a point by its id or its number.

    Raises:
        InvalidInputError: there is no such point.
    """
    for point in known:
        if wanted in {point.id, str(point.number)}:
            return point
    raise InvalidInputError(
        f"point: there is no point {wanted[:80]!r} to go back to", field="point"
    )


class RewindResult(Struct, frozen=True, kw_only=True):
    """The changes of a rewind, planned or done. `rewind` is its id once it is done.

    `not_saved` are the files that the point's checkpoint left out and that cannot be restored.
    """

    point: Point
    what: What
    files: RestoredFiles = RestoredFiles()
    not_saved: NotSaved = NotSaved()
    rewind: str = ""


class Rewinder:
    """Rewinds a session to a point: its files, its conversation, or both.

    Args:
        core: the session.
        checkpoints: its saved files.
    """

    def __init__(self, core: SessionCore, checkpoints: Checkpoints) -> None:
        self._core = core
        self._checkpoints = checkpoints
        self._lock = asyncio.Lock()

    async def points(self) -> list[Point]:
        """Return the points; `files` is "" for a point whose checkpoint no longer exists."""
        await self._checkpoints.settled()
        found = points(await self._core.dated_history())
        names = {point.files for point in found if point.files}
        saved = await asyncio.to_thread(self._saved, names)
        return [
            point if not point.files or point.files in saved else _without_files(point)
            for point in found
        ]

    async def not_saved(self, known: Sequence[Point]) -> NotSaved:
        """Return the files that the newest checkpoint of these points left out."""
        newest = next((point.files for point in reversed(known) if point.files), "")
        return await self._checkpoints.left_out(newest) if newest else NotSaved()

    def _saved(self, names: set[str]) -> set[str]:
        return {name for name in names if self._checkpoints.has(name)}

    async def preview(self, wanted: str, what: What, *, force: bool = False) -> RewindResult:
        """Return the changes that `go` would make, without making them.

        Raises:
            InvalidInputError: there is no such point.
            WorkspaceError: the checkpoint cannot be read.
        """
        point = find_point(await self.points(), wanted)
        files, not_saved = RestoredFiles(), NotSaved()
        if what != "conversation" and point.files:
            files = await self._checkpoints.preview(
                point.files, await self._core.history(), force=force
            )
            not_saved = await self._checkpoints.left_out(point.files)
        return RewindResult(point=point, what=what, files=files, not_saved=not_saved)

    async def go(
        self,
        wanted: str,
        what: What,
        *,
        force: bool = False,
        in_turn: bool = False,
        remember: str | None = None,
    ) -> RewindResult:
        """Rewind to a point. The current files are saved first, so that this can be undone.

        Args:
            wanted: the point, by id or number.
            what: what is rewound.
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
            point = find_point(await self.points(), wanted)
            if point.kind == "restore":
                if what == "conversation":
                    raise InvalidInputError(
                        f"what: only files can go back to the point {point.number}", field="what"
                    )
                what = "files"
            if what == "files" and not point.files:
                raise InvalidInputError(
                    f"point: no files are saved for the point {point.number}", field="point"
                )
            files, not_saved = RestoredFiles(), NotSaved()
            if what != "conversation" and point.files:
                not_saved = await self._checkpoints.left_out(point.files)
                history = await self._core.history()
                files = await self._checkpoints.restore(point.files, history, force=force)
            rewind = new_rewind_id()
            await self._core.emit(
                Rewound(
                    rewind=rewind,
                    to=point.id,
                    conversation=what != "files",
                    keeps_words=remember is not None,
                    note="" if remember is None else _note(remember, what, files),
                    restored=point.files if files.replaced else "",
                    replaced=files.replaced,
                    changed=len(files.changes) if files.replaced else 0,
                    title=point.title,
                    in_turn=in_turn,
                )
            )
            return RewindResult(
                point=point, what=what, files=files, not_saved=not_saved, rewind=rewind
            )

    async def by_model(self, number: int | None, message: str, files: bool) -> str:
        """Rewind to just after a message of the user; return a result for the model.

        Args:
            number: the number of the user's message in the conversation, from 1; None: the last.
            message: the model's note to itself.
            files: whether the files are restored, too.

        Raises:
            ToolError: there is no such message.
            WorkspaceError: the files cannot be restored.
        """
        known = [one for one in await self.points() if one.kind == "message" and one.current]
        if number is not None and number > len(known):
            raise ToolError(f"there is no message {number}", advice=f"the last one is {len(known)}")
        point = known[-1 if number is None else number - 1]
        what: What = "both" if files else "conversation"
        back = await self.go(point.id, what, in_turn=True, remember=message)
        return f"Back to after “{point.title}”. {_about_files(what, back.files)}"


def _note(message: str, what: What, files: RestoredFiles) -> str:
    return f"{_FROM_LATER}\n{message}\n[{_about_files(what, files)}]"


def _about_files(what: What, files: RestoredFiles) -> str:
    """Return the part of the note about files."""
    if what == "conversation":
        return _FILES_STAY
    count = len(files.changes) if files.replaced else 0
    restored = f"Restored {count} file{'' if count == 1 else 's'} to how they were here."
    alone = [f"{display_name(one.path)} ({one.why})" for one in files.left_alone]
    if not alone:
        return restored
    more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
    return f"{restored} Left unchanged: {', '.join(alone[:_NAMED])}{more}."


def _without_files(point: Point) -> Point:
    return replace(point, files="")


def parse_what(text: str) -> What:
    """Return a text as a value of `What`.

    Raises:
        InvalidInputError: it is no such value.
    """
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
