"""Takes a session back to a point: its files, what the model is sent, or both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.errors import InvalidInputError, ToolError, TurnRunsError
from acp_agent.events import Rewound
from acp_agent.ids import new_rewind_id
from acp_agent.session.checkpoints import Checkpoints
from acp_agent.session.files_back import FilesBack, NotSaved
from acp_agent.session.points import Point, find_point, points
from acp_agent.workspace.file_io import display_name

if TYPE_CHECKING:
    from acp_agent.session.session import Session

_FROM_LATER = "[You went on from here, came back, and told yourself this:]"
_FILES_STAY = "The files are unchanged."
_NAMED = 20  # files left unchanged that the model is given the names of

What = Literal["files", "conversation", "both"]


class Back(Struct, frozen=True, kw_only=True):
    """What going back to a point changes, or has changed. `rewind` is its id once it is done.

    `not_saved` is what the checkpoint of the point does not have, and so can never restore.
    """

    point: Point
    what: What
    files: FilesBack = FilesBack()
    not_saved: NotSaved = NotSaved()
    rewind: str = ""


class Rewinder:
    """Goes back in one session.

    Args:
        session: the session.
        checkpoints: its files.
    """

    def __init__(self, session: Session, checkpoints: Checkpoints) -> None:
        self._session = session
        self._checkpoints = checkpoints
        self._going = asyncio.Lock()

    async def points(self) -> list[Point]:
        """Where one can go back to; a point whose files are no longer saved has none."""
        await self._checkpoints.settled()
        found = points(await self._session.dated_history())
        names = {point.files for point in found if point.files}
        kept = await asyncio.to_thread(self._kept, names)
        return [
            point if not point.files or point.files in kept else _without_files(point)
            for point in found
        ]

    async def not_saved(self, known: Sequence[Point]) -> NotSaved:
        """What the newest checkpoint of these points does not have."""
        newest = next((point.files for point in reversed(known) if point.files), "")
        return await self._checkpoints.left_out(newest) if newest else NotSaved()

    def _kept(self, names: set[str]) -> set[str]:
        return {name for name in names if self._checkpoints.has(name)}

    async def preview(self, wanted: str, what: What, *, force: bool = False) -> Back:
        """Return what going back would change. Changes nothing. See `go`.

        Raises:
            InvalidInputError: there is no such point.
            WorkspaceError: the files of that time cannot be had.
        """
        point = find_point(await self.points(), wanted)
        files, not_saved = FilesBack(), NotSaved()
        if what != "conversation" and point.files:
            files = await self._checkpoints.preview(
                point.files, await self._session.history(), force=force
            )
            not_saved = await self._checkpoints.left_out(point.files)
        return Back(point=point, what=what, files=files, not_saved=not_saved)

    async def go(
        self,
        wanted: str,
        what: What,
        *,
        force: bool = False,
        in_turn: bool = False,
        remember: str | None = None,
    ) -> Back:
        """Go back. What is replaced is saved first, and can be restored in turn.

        Args:
            wanted: the point, by id or number.
            what: what goes back.
            force: whether files that others than the session changed are restored, too.
            in_turn: whether it is the turn that runs which asks for it.
            remember: the model's message to itself, where it asks for it: then the message of the
                point stays in the conversation, and the model reads this behind it.

        Raises:
            InvalidInputError: there is no such point, or nothing to go back with.
            TurnRunsError: a turn runs.
            WorkspaceError: the files of that time cannot be had, or the present ones not saved.
            StoreError: the journal cannot be written.
        """
        if in_turn:
            return await self._go(wanted, what, force, in_turn=True, remember=remember)
        self._check_idle()
        async with self._session.prompter.silence():
            self._check_idle()  # a turn may have begun in the meantime, and none can from here on
            return await self._go(wanted, what, force, in_turn=False, remember=remember)

    def _check_idle(self) -> None:
        if self._session.turn is not None:
            raise TurnRunsError("a turn runs in the session; stop it before going back")

    async def _go(
        self, wanted: str, what: What, force: bool, *, in_turn: bool, remember: str | None
    ) -> Back:
        async with self._going:
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
            files, not_saved = FilesBack(), NotSaved()
            if what != "conversation" and point.files:
                not_saved = await self._checkpoints.left_out(point.files)
                history = await self._session.history()
                files = await self._checkpoints.restore(point.files, history, force=force)
            rewind = new_rewind_id()
            await self._session.emit(
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
            if what != "files":
                self._session.prompter.forget()
            return Back(point=point, what=what, files=files, not_saved=not_saved, rewind=rewind)

    async def by_model(self, number: int | None, message: str, files: bool) -> str:
        """Go back to right after a message of the user's, with a message to the model.

        Args:
            number: which of the user's messages in the conversation, from 1; None: the last.
            message: what the model is told then.
            files: whether the files go back as well.

        Raises:
            ToolError: there is no such message.
            WorkspaceError: the files cannot go back.
        """
        known = [one for one in await self.points() if one.kind == "message" and one.current]
        if number is not None and number > len(known):
            raise ToolError(f"there is no message {number}", advice=f"the last one is {len(known)}")
        point = known[-1 if number is None else number - 1]
        what: What = "both" if files else "conversation"
        back = await self.go(point.id, what, in_turn=True, remember=message)
        return f"Back to after “{point.title}”. {_about_files(what, back.files)}"


def _note(message: str, what: What, files: FilesBack) -> str:
    return f"{_FROM_LATER}\n{message}\n[{_about_files(what, files)}]"


def _about_files(what: What, files: FilesBack) -> str:
    """What the model reads of the files."""
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
    return Point(
        number=point.number,
        id=point.id,
        kind=point.kind,
        title=point.title,
        current=point.current,
        at=point.at,
    )


def wanted_what(text: str) -> What:
    """What is to go back, by its name.

    Raises:
        InvalidInputError: there is nothing of the name.
    """
    match text:
        case "files" | "conversation" | "both":
            return text
        case _:
            raise InvalidInputError(
                f"what: {text[:40]!r} cannot go back; files, conversation and both can",
                field="what",
            )


def changed_lines(files: FilesBack, limit: int, translate: Translator) -> Sequence[str]:
    """A line for each change, `limit` at most."""
    signs = {"add": "+", "modify": "~", "delete": "-"}
    lines = [
        f"{signs[change.change]} {display_name(change.path)}"
        + (translate(" (changed by someone else)") if change.by_others else "")
        for change in files.changes[:limit]
    ]
    if len(files.changes) > limit:
        lines.append(translate("… and {count} more", count=f"{len(files.changes) - limit:,}"))
    return lines
