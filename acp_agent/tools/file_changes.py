"""A change to one text file: shown as a diff first, made later if the file is still the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.content import DiffPart, Location
from acp_agent.errors import MissingFileError, ToolError, WorkspaceError
from acp_agent.permissions.access import WriteAccess
from acp_agent.tools.base import Outcome, Prepared, Run
from acp_agent.workspace.checkpoints.base import blob_id
from acp_agent.workspace.file_io import TextFile
from acp_agent.workspace.files import TEXT_LIMIT, WorkspaceFiles
from acp_agent.workspace.scrub import REPLACEMENT, scrub


class Change(Struct, frozen=True, kw_only=True):
    """A file's text before (None: there is no file) and after.

    `asked` is the path as the model wrote it, `path` what it leads to, `opened` that as the editor
    knows it; `line` is the first one that differs, from 1.
    """

    asked: str
    path: Path
    opened: Path
    shown: str
    before: TextFile | None
    after: str
    line: int = 1

    @property
    def diff(self) -> DiffPart:
        """The change as the user is shown it."""
        old = self.before.text if self.before is not None else None
        return DiffPart(path=str(self.opened), old_text=old, new_text=self.after)

    @property
    def location(self) -> Location:
        """Where the change begins."""
        return Location(path=str(self.opened), line=self.line)


def prepare_change(change: Change, *, title: str, run: Run) -> Prepared:
    """A call that makes the change: what it shows and what it will touch."""
    return Prepared(
        title=title,
        run=run,
        access=WriteAccess(paths=(str(change.path),), asked=(change.asked,)),
        locations=(change.location,),
        content=(change.diff,),
    )


def hidden_value_error() -> ToolError:
    """Return the error for a text with what stands for a hidden value."""
    return ToolError(
        f"the text contains {REPLACEMENT}, which stands for a hidden value", advice="edit around it"
    )


def refuse_hidden(change: DiffPart, secrets: Sequence[str]) -> None:
    """Refuse a change that puts what stands for a hidden value into the file that has the value.

    A model sees `[secret]` in place of a key; written back, it would take the key's place.

    Args:
        change: the whole text before and after.
        secrets: the values that the model does not see.

    Raises:
        ToolError: the text after has more of these than the one before, in which one was hidden.
    """
    old = change.old_text
    if old is None or change.new_text.count(REPLACEMENT) <= old.count(REPLACEMENT):
        return
    if scrub(old, secrets).count(REPLACEMENT) > old.count(REPLACEMENT):
        raise hidden_value_error()


async def apply_change(change: Change, files: WorkspaceFiles, done: str) -> Outcome:
    """Write the change.

    Between the diff and this the user was asked, which takes as long as it takes: the path and the
    text are looked at again.

    Args:
        change: what to write.
        files: the session's.
        done: what the model reads when it is written; what else it must know follows.

    Raises:
        ToolError: the file is not what the diff was made of; nothing is written.
        WorkspaceError: the file cannot be written.
    """
    async with files.locked(change.path):
        note = await _make(change, files)
        wrote = await _on_disk(change.path, files)
    return Outcome(text=f"{done}{note}", wrote=wrote)


async def _make(change: Change, files: WorkspaceFiles) -> str:
    if files.resolve(change.asked) != change.path:
        raise ToolError(f"{change.shown} leads to another place by now; nothing was changed")
    now = await _read(change.path, files)
    before = change.before
    if (now.digest if now else None) != (before.digest if before else None):
        raise ToolError(
            f"{change.shown} changed while this was prepared; nothing was written",
            advice="read it again",
        )
    newline = before.newline if before else "\n"
    encoding = before.encoding if before else "utf-8"
    await files.write_text(change.path, change.after, newline=newline, encoding=encoding)
    try:
        written = await files.read_text(change.path)
    except WorkspaceError:
        return " It cannot be read back yet: read it before you change it again."
    if with_final_newline(written.text) != with_final_newline(change.after):
        return " Its text changed on saving, by a formatter perhaps: read it before the next edit."
    files.mark_seen(written)
    return ""


async def _on_disk(path: Path, files: WorkspaceFiles) -> tuple[tuple[str, str], ...]:
    """The file with the id of its content right after it was written, which an editor may format.

    By it a later restore tells this change from one that somebody else makes.
    """
    try:
        return ((str(path), blob_id(await files.read_bytes(path, limit=TEXT_LIMIT))),)
    except WorkspaceError:
        return ()


async def _read(path: Path, files: WorkspaceFiles) -> TextFile | None:
    try:
        return await files.read_text(path)
    except MissingFileError:
        return None


def with_final_newline(text: str) -> str:
    """`text` with LF line endings and one at its end, which editors add on saving."""
    return text.replace("\r\n", "\n").removesuffix("\n") + "\n"
