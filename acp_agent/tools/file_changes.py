"""A change to a text file: shown as a diff, then applied if the file is unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

import msgspec
from msgspec import Struct

from acp_agent.content import DiffPart, JsonObject, Location
from acp_agent.diffs import changed_blocks
from acp_agent.errors import MissingFileError, ToolError, WorkspaceError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import WriteAccess
from acp_agent.tools.base import Outcome, Prepared, Run, Tool, ToolParams, Touches, path_argument
from acp_agent.tools.editing.replace import EditResult, hidden_value_error
from acp_agent.workspace.checkpoints.base import DELETED, blob_id
from acp_agent.workspace.file_io import TextFile, display_path, with_lf
from acp_agent.workspace.files import TEXT_LIMIT, WorkspaceFiles
from acp_agent.workspace.scrub import REPLACEMENT, scrub


class FileParams(ToolParams):
    """Parameters of a tool that changes one file."""

    path: str


_Params = TypeVar("_Params", bound=FileParams)


class FileTool(Tool[_Params]):
    """A tool that changes one file."""

    kind: ClassVar[ToolKind] = "edit"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Edit src/a.py"."""
        return f"{self.name.capitalize()} {path_argument(self, arguments) or 'a file'}"

    def cleaned_path(self, params: _Params) -> str:
        """Return the cleaned path; that of a new file unless a subclass overrides it."""
        return self.workspace.files.clean_path(params.path, existing=False)

    def touches(self, params: _Params) -> Touches:
        """Return the file."""
        return Touches(writes=(str(self.workspace.files.resolve(self.cleaned_path(params))),))

    def target(self, requested: str) -> tuple[Path, str]:
        """Return the file that a path leads to, and how it is shown.

        Raises:
            WorkspaceError: it is not a file of the session's folders.
        """
        path = self.workspace.files.resolve(requested)
        return path, display_path(path, self.workspace.files.roots[0])


class Change(Struct, frozen=True, kw_only=True):
    """A file's text before (None: there is no file) and after.

    A file that is `deleted` has no text after. A file that is renamed was at `source`; the model
    wrote that path as `requested_source`, and the text before is the one there.

    `requested_path` is the path as the model wrote it, `path` the resolved one, `editor_path` that
    of the editor.
    `redo` makes the same edits in another text of the file; None if only the text `before` will do.
    """

    requested_path: str
    path: Path
    editor_path: Path
    display_path: str
    before: TextFile | None
    result: EditResult
    redo: Callable[[TextFile], EditResult] | None = None
    deleted: bool = False
    source: Path | None = None
    requested_source: str = ""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that change."""
        return (self.path,) if self.source is None else (self.source, self.path)

    @property
    def diff(self) -> DiffPart:
        """The diff that the user sees."""
        old, new = self.result.view or (self.before.text if self.before else "", self.result.text)
        old_text = old if self.before is not None else None
        return DiffPart(path=str(self.editor_path), old_text=old_text, new_text=new)

    @property
    def location(self) -> Location:
        """Where the change begins."""
        return Location(path=str(self.editor_path), line=self.result.line)


def prepare_change(change: Change, *, title: str, run: Run) -> Prepared:
    """Return the prepared call that makes the change."""
    return Prepared(
        title=title,
        run=run,
        access=WriteAccess(paths=(str(change.path),), requested_names=(change.requested_path,)),
        locations=(change.location,),
        content=(change.diff,),
    )


def prepare_changes(changes: Sequence[Change], *, title: str, run: Run) -> Prepared:
    """Return the prepared call that makes changes in several files."""
    return Prepared(
        title=title,
        run=run,
        access=WriteAccess(
            paths=tuple(str(path) for change in changes for path in change.paths),
            requested_names=tuple(
                name
                for change in changes
                for name in (change.requested_source, change.requested_path)
                if name
            ),
            deletes=any(change.deleted or change.source for change in changes),
        ),
        locations=tuple(change.location for change in changes),
        content=tuple(change.diff for change in changes),
    )


def refuse_hidden(change: DiffPart, secrets: Sequence[str]) -> None:
    """Refuse a change that writes the placeholder of a hidden value into the file with the value.

    A model sees `[secret]` instead of a key; writing that back would overwrite the key.

    Args:
        change: the whole text before and after.
        secrets: the values that the model does not see.

    Raises:
        ToolError: the change adds placeholders to a file in which values were hidden.
    """
    old = change.old_text
    if old is None or change.new_text.count(REPLACEMENT) <= old.count(REPLACEMENT):
        return
    if scrub(old, secrets).count(REPLACEMENT) > old.count(REPLACEMENT):
        raise hidden_value_error()


async def apply_change(
    change: Change, files: WorkspaceFiles, describe: Callable[[EditResult], str]
) -> Outcome:
    """Write the change.

    Time has passed since the diff was made, so the path and the text are checked again. If other
    parts of the text have changed, the same edits are applied to the new text.

    Args:
        describe: returns the result for the model; notes are appended to it.

    Raises:
        ToolError: the file is not what the diff was made of; nothing is written.
        WorkspaceError: the file cannot be written.
    """
    async with files.locked(change.path):
        change, was_reapplied = await _refresh(change, files)
        saved_text, note = await _write(change, files)
        wrote = await _written_files(change.path, files)
    view = change.result.view or (change.before.text if change.before else "", saved_text)
    excerpt = await asyncio.to_thread(changed_lines, *view) if change.redo else ""
    return Outcome(
        text=f"{describe(change.result)}{_REAPPLIED_NOTE if was_reapplied else ''}{note}{excerpt}",
        wrote=wrote,
        content=(change.diff,) if was_reapplied else None,
        locations=(change.location,) if was_reapplied else None,
    )


async def apply_changes(
    changes: Sequence[Change], files: WorkspaceFiles, describe: Callable[[Change], str]
) -> Outcome:
    """Write changes of several files, or none if one of them can no longer be made.

    Args:
        changes: the changes, each of a different file.
        describe: returns the result of a change for the model.

    Raises:
        ToolError: a file is not what its diff was made of; nothing is written.
        WorkspaceError: a file cannot be written; the message names those that were.
    """
    texts: list[str] = []
    wrote: list[tuple[str, str]] = []
    async with AsyncExitStack() as locks:
        for path in sorted(path for change in changes for path in change.paths):
            await locks.enter_async_context(files.locked(path))
        current = [await _refresh(change, files) for change in changes]
        for change, was_reapplied in current:
            try:
                saved_text, note = await _write(change, files)
            except WorkspaceError as error:
                progress_note = (
                    "; written before: " + ", ".join(saved_path for saved_path, _ in wrote)
                    if wrote
                    else ""
                )
                raise ToolError(f"{error.shown}{progress_note}", advice=error.advice) from error
            wrote += [(str(path), DELETED) for path in change.paths if path != change.path]
            wrote += (
                [(str(change.path), DELETED)]
                if change.deleted
                else await _written_files(change.path, files)
            )
            old = change.before.text if change.before else ""
            excerpt = await asyncio.to_thread(changed_lines, old, saved_text) if change.redo else ""
            texts.append(
                f"{describe(change)}{_REAPPLIED_NOTE if was_reapplied else ''}{note}{excerpt}"
            )
    diffs = tuple(change.diff for change, _ in current)
    return Outcome(
        text="\n".join(texts),
        wrote=tuple(wrote),
        content=diffs if any(was_reapplied for _, was_reapplied in current) else None,
    )


_REAPPLIED_NOTE = " The file had changed elsewhere meanwhile; those changes are still there."


async def _refresh(change: Change, files: WorkspaceFiles) -> tuple[Change, bool]:
    """Return the change for the current file, and whether it differs from the shown one."""
    names = (change.requested_source, change.requested_path)
    if tuple(files.resolve(name) for name in names if name) != change.paths:
        raise ToolError(f"{change.display_path} leads to another place now; nothing was changed")
    current = await _read_if_exists(change.paths[0], files)
    before, result = change.before, change.result
    if (current.digest if current else None) == (before.digest if before else None):
        return change, False
    if current is not None and change.redo is not None and not _adds_hidden_values(result):
        with suppress(ToolError):
            reapplied = await asyncio.to_thread(change.redo, current)
            # The user has seen exactly these removed and added lines.
            if reapplied.changes == result.changes:
                return msgspec.structs.replace(change, before=current, result=reapplied), True
    raise ToolError(
        f"{change.display_path} changed while this was prepared; nothing was written",
        advice="read it again",
    )


def _adds_hidden_values(result: EditResult) -> bool:
    """Return whether the edits add placeholders of hidden values."""
    return any(new.count(REPLACEMENT) > old.count(REPLACEMENT) for old, new in result.changes)


async def _write(change: Change, files: WorkspaceFiles) -> tuple[str, str]:
    """Write the text; return the text of the file afterwards, and a note for the model."""
    before, text = change.before, change.result.text
    newline = before.newline if before else "\n"
    encoding = before.encoding if before else "utf-8"
    if change.deleted:
        await files.delete(change.path)
        return "", ""
    if change.source is not None:
        await files.rename(change.source, change.path)
    was_read = before is None or files.was_seen(before)
    await files.write_text(change.path, text, newline=newline, encoding=encoding)
    try:
        saved = await files.read_text(change.path)
    except WorkspaceError:
        return text, " It cannot be read back yet: read it before you change it again."
    if with_final_newline(saved.text) != with_final_newline(text):
        return saved.text, " Its text changed on saving, by a formatter perhaps."
    if was_read:  # an edit of an unread file shows only a part of it
        files.mark_seen(saved)
    return text, ""


async def _written_files(path: Path, files: WorkspaceFiles) -> tuple[tuple[str, str], ...]:
    """Return the file with the id of its content right after the write, which an editor may format.

    A later restore compares the id to detect changes by others.
    """
    try:
        return ((str(path), blob_id(await files.read_bytes(path, limit=TEXT_LIMIT))),)
    except WorkspaceError:
        return ()


async def _read_if_exists(path: Path, files: WorkspaceFiles) -> TextFile | None:
    try:
        return await files.read_text(path)
    except MissingFileError:
        return None


def with_final_newline(text: str) -> str:
    """`text` with LF line endings and one at its end, which editors add on saving."""
    return text.replace("\r\n", "\n").removesuffix("\n") + "\n"


def count_lines(text: str) -> str:
    """Return the number of lines as text: "1 line"."""
    count = text.count("\n") + (not text.endswith("\n") and text != "")
    return f"{count} line{'' if count == 1 else 's'}"


_CONTEXT_LINES = 2  # lines around what changed
_MAX_BLOCK_LINES = 24  # lines of one place
_MAX_LINES = 60  # of all places
_MAX_LINE_LENGTH = 200  # characters


def changed_lines(before: str, after: str) -> str:
    """Return the changed lines as number, tab, text; "" if nothing changed.

    Long blocks are cut in the middle; only the first of many blocks are included.
    """
    old, new = with_lf(before).split("\n"), with_lf(after).split("\n")
    ranges: list[tuple[int, int]] = []
    for block in changed_blocks(old, new):
        start, end = (
            max(0, block.new_start - _CONTEXT_LINES),
            min(len(new), block.new_end + _CONTEXT_LINES),
        )
        if ranges and start <= ranges[-1][1]:
            start = ranges.pop()[0]
        ranges.append((start, end))
    pieces: list[str] = []
    line_count = 0
    for start, end in ranges:
        if line_count >= _MAX_LINES:
            pieces.append("[more changed lines]")
            break
        line_count += min(end - start, _MAX_BLOCK_LINES)
        pieces.append(_numbered_lines(new, start, end))
    return "\nIt is now:\n" + "\n…\n".join(pieces) if pieces else ""


def _numbered_lines(lines: list[str], start: int, end: int) -> str:
    if end == len(lines) and lines[-1] == "":
        end -= 1  # not a line, but what follows the last line feed
    numbers = list(range(start, end))
    rows = [f"{number + 1}\t{_cut(lines[number])}" for number in numbers]
    if len(rows) > _MAX_BLOCK_LINES:
        half = _MAX_BLOCK_LINES // 2
        rows[half : len(rows) - half] = [f"[{len(rows) - 2 * half} more lines]"]
    return "\n".join(rows)


def _cut(line: str) -> str:
    return (
        line if len(line) <= _MAX_LINE_LENGTH else f"{line[:_MAX_LINE_LENGTH]} [… more characters]"
    )
