"""Reads and writes of files through the editor, reconciled with the disk.

The editor may have unsaved changes that the disk lacks. The disk may have changes, made by
commands, that the editor has not loaded yet. These rules decide which version a read returns:

1. The editor does not know the file: the disk, and later writes go to disk too. The editor lacks
   the method: the disk. The editor fails for any other reason: the read fails with that reason.
2. The editor returns "" and there is no file on disk: the file is missing.
3. Both have the same text, except for line endings, a byte order mark, or a final newline that
   only the disk has (editors drop it): the disk.
4. They differ, and one of our commands has run since the last read or write of the file. At that
   time the editor had no unsaved changes; it still shows the same text, while the disk has
   changed. The editor is behind: the disk.
5. They differ, one of our commands has run, and the file was never read before: the editor is
   asked again for half a second, in which it usually catches up (then rule 3 applies).
6. Otherwise: the editor, because unsaved changes of the user must not be lost.

A write uses the style in which the editor showed the file: an editor that hides CRLF or the byte
order mark restores them itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from acp_agent.errors import (
    MissingFileError,
    NoEditorFileError,
    NoEditorMethodError,
    WorkspaceError,
)
from acp_agent.workspace.file_io import (
    BYTE_ORDER_MARK,
    TextFile,
    is_utf8,
    text_digest,
    text_file,
    with_lf,
    with_newline,
)

_CATCH_UP_DELAYS = (0.05, 0.15, 0.3)  # seconds between the repeated reads of rule 5
_MAX_CONCURRENT = 16
_MAX_REFUSAL_SECONDS = 20.0  # for all files of one search


class _Comparison(Struct, frozen=True):
    """Digests of the editor's and the disk's text at the last comparison or write.

    `saved` means that the editor had no unsaved changes; `commands` is the number of commands
    that had run by then.
    """

    editor: str
    disk: str | None
    saved: bool
    commands: int


class _Style(Struct, frozen=True):
    """How the editor shows a file: with CRLF line endings, with a byte order mark."""

    crlf: bool
    has_mark: bool


class EditorBuffers(Protocol):
    """The editor's version of files, including unsaved changes. Implemented by the server.

    Both methods raise `NoEditorMethodError` if the editor lacks the method, and `WorkspaceError`
    for any other error. Reading also raises `NoEditorFileError` if the editor has no such file.
    """

    @property
    def can_read(self) -> bool:
        """Return whether the editor supports reading."""

    @property
    def can_write(self) -> bool:
        """Return whether the editor supports writing."""

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        """Return the editor's text of a file, or only its first `lines` lines."""

    async def write_text(self, path: Path, text: str) -> None:
        """Ask the editor to replace the text of a file and save it."""


class EditorView:
    """The files of one session as its editor shows them.

    Args:
        buffers: reads and writes through the editor.
        as_opened: maps a resolved path to the path that the editor uses.
    """

    def __init__(self, buffers: EditorBuffers, editor_path: Callable[[Path], Path]) -> None:
        self._buffers = buffers
        self._editor_path = editor_path
        self._comparisons: dict[Path, _Comparison] = {}
        self._styles: dict[Path, _Style] = {}
        self._disk_only: set[Path] = set()
        self._command_count = 0

    @property
    def can_read(self) -> bool:
        """Return whether files can be read through the editor."""
        return self._buffers.can_read

    def can_write(self, path: Path) -> bool:
        """Return whether a write of this file goes through the editor."""
        return self._buffers.can_write and path not in self._disk_only

    def commands_ran(self) -> None:
        """Note that a command ran, which may have changed files without the editor's knowledge."""
        self._command_count += 1

    async def read(
        self, path: Path, read_disk: Callable[[], Awaitable[TextFile | None]]
    ) -> TextFile | None:
        """Return the file chosen by the rules above, or None if it is missing.

        Args:
            read_disk: returns the file on disk, or None if it is missing.

        Raises:
            MissingFileError: the file is not on disk, and the editor refuses.
            WorkspaceError: `read_disk` failed, the editor refuses, or its content is not text.
        """
        disk = await read_disk()
        editor_file = await self._read_editor(path, disk)
        if editor_file is None or disk is None:
            return editor_file or disk
        if (
            not _is_same(editor_file, disk)
            and self._command_count
            and path not in self._comparisons
        ):
            for delay in _CATCH_UP_DELAYS:
                await asyncio.sleep(delay)
                disk = await read_disk()
                editor_file = await self._read_editor(path, disk)
                if editor_file is None or disk is None:
                    return editor_file or disk
                if _is_same(editor_file, disk):
                    break
        if _is_same(editor_file, disk):
            self._comparisons[path] = _Comparison(
                disk.digest, disk.digest, True, self._command_count
            )
            return disk
        if self._is_behind(path, editor_file, disk):
            return disk
        self._comparisons[path] = _Comparison(
            editor_file.digest, disk.digest, False, self._command_count
        )
        # The disk supplies what the editor may hide: line endings and the byte order mark.
        return msgspec.structs.replace(
            editor_file,
            newline=editor_file.newline if "\r\n" in editor_file.text else disk.newline,
            encoding=disk.encoding,
        )

    async def refused(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Return the files that the editor refuses to read, with the reasons.

        A file without an answer in time counts as refused.
        """
        reasons = dict.fromkeys(paths, "the editor did not answer in time")
        semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

        async def check(path: Path) -> None:
            async with semaphore:
                try:
                    await self._buffers.read_text(self._editor_path(path), lines=1)
                except NoEditorFileError:
                    del reasons[path]
                except WorkspaceError as error:
                    reasons[path] = str(error)
                else:
                    del reasons[path]

        with suppress(TimeoutError):
            async with asyncio.timeout(_MAX_REFUSAL_SECONDS), asyncio.TaskGroup() as group:
                for path in paths:
                    group.create_task(check(path))
        return reasons

    async def write(
        self, path: Path, text: str, *, newline: str, encoding: str, before: TextFile | None
    ) -> None:
        """Write a file through the editor; `before` is the file on disk before the write.

        Raises:
            NoEditorMethodError: the editor cannot write after all; nothing was written.
            WorkspaceError: the editor refused or failed.
        """
        style = self._styles.get(path)
        has_mark = encoding == "utf-8-sig" if style is None else style.has_mark
        text = with_newline(text, newline) if style is None or style.crlf else with_lf(text)
        await self._buffers.write_text(
            self._editor_path(path), BYTE_ORDER_MARK + text if has_mark else text
        )
        self._comparisons[path] = _Comparison(
            text_digest(text), before.digest if before else None, True, self._command_count
        )

    async def _read_editor(self, path: Path, disk: TextFile | None) -> TextFile | None:
        try:
            text = await self._buffers.read_text(self._editor_path(path))
        except NoEditorMethodError:
            return None
        except NoEditorFileError:
            if disk is not None:
                self._disk_only.add(path)
            return None
        except WorkspaceError as error:
            if disk is None:  # many editors have no error code for a missing file
                raise MissingFileError(f"no such file: {path.name}; {error}") from error
            raise
        self._disk_only.discard(path)
        if not text and disk is None:
            return None
        if "\0" in text or not is_utf8(text):
            raise WorkspaceError(f"{path.name} is not text in the editor; it cannot be read")
        editor_file = text_file(path, text)
        if disk is None or disk.text:  # an empty answer does not show the line endings
            self._styles[path] = _Style("\r\n" in text, editor_file.encoding == "utf-8-sig")
        return editor_file

    def _is_behind(self, path: Path, editor_file: TextFile, disk: TextFile) -> bool:
        comparison = self._comparisons.get(path)
        return (
            comparison is not None
            and comparison.saved
            and comparison.commands < self._command_count
            and comparison.editor == editor_file.digest
            and disk.digest not in (comparison.disk, comparison.editor)
        )


def _is_same(editor_file: TextFile, disk: TextFile) -> bool:
    return editor_file.digest == disk.digest or with_lf(editor_file.text) + "\n" == with_lf(
        disk.text
    )
