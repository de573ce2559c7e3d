"""The editor's view of files, weighed against the disk.

An editor has unsaved changes that the disk lacks; the disk has changes, made by commands, that an
editor has not loaded yet. Which of the two a read gives:

1. The editor has no such file: the disk, and a later write goes to disk as well. It has no such
   method: the disk. It refuses for any other reason: neither, and the read fails with that reason.
2. The editor answers "" and there is no file: the file is missing.
3. Both have the same text, but for line endings, a byte order mark, or a last newline that only
   the disk has (editors drop it): the disk.
4. They differ, a command of ours has run, and when we last looked (or wrote) the editor had
   nothing unsaved; the editor still shows that text and the disk does not: the editor is behind,
   so the disk.
5. They differ, a command of ours has run, and we never looked at the file before: the editor is
   asked again for half a second, in which it usually catches up (then 3 holds).
6. Otherwise: the editor, for what the user has not saved must not be lost.

A write goes back in the style in which the editor showed the file: an editor that hides CRLF or
the byte order mark puts them back by itself.
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

_CATCH_UP = (0.05, 0.15, 0.3)  # seconds between the looks of rule 5
_ASKED_AT_ONCE = 16
_REFUSALS_SECONDS = 20.0  # for all the files of one search


class _Look(Struct, frozen=True):
    """Digests of the texts that editor and disk had at the last comparison."""

    editor: str
    disk: str | None
    saved: bool
    commands: int


class _Style(Struct, frozen=True):
    """How the editor shows a file."""

    crlf: bool
    marked: bool


class EditorBuffers(Protocol):
    """The editor's view of files, unsaved changes included. Implemented by the server's surface.

    Both raise `NoEditorMethodError` where the editor lacks the method, reading also
    `NoEditorFileError` where it has no such file, and `WorkspaceError` for every other error.
    """

    @property
    def can_read(self) -> bool:
        """Whether the editor offers to read."""
        ...

    @property
    def can_write(self) -> bool:
        """Whether the editor offers to write."""
        ...

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        """Return a file's text as the editor sees it, or only its first `lines`."""
        ...

    async def write_text(self, path: Path, text: str) -> None:
        """Let the editor change and save a file."""
        ...


class EditorView:
    """The files of one session as its editor shows them.

    Args:
        buffers: the editor.
        as_opened: gives a resolved path as the editor knows it.
    """

    def __init__(self, buffers: EditorBuffers, as_opened: Callable[[Path], Path]) -> None:
        self._buffers = buffers
        self._as_opened = as_opened
        self._looks: dict[Path, _Look] = {}
        self._styles: dict[Path, _Style] = {}
        self._foreign: set[Path] = set()
        self._commands = 0

    @property
    def can_read(self) -> bool:
        """Whether reads may go through the editor."""
        return self._buffers.can_read

    def can_write(self, path: Path) -> bool:
        """Whether a write of this file goes through the editor."""
        return self._buffers.can_write and path not in self._foreign

    def commands_ran(self) -> None:
        """A command may have changed files behind the editor's back."""
        self._commands += 1

    async def read(
        self, path: Path, read_disk: Callable[[], Awaitable[TextFile | None]]
    ) -> TextFile | None:
        """The file by the rules above; None: it is missing.

        Args:
            path: the file.
            read_disk: gives the file on disk, None where it is missing.

        Raises:
            MissingFileError: it is not on disk, and the editor refuses.
            WorkspaceError: from `read_disk`, the editor refuses, or what it shows is not text.
        """
        disk = await read_disk()
        shown = await self._ask(path, disk)
        if shown is None or disk is None:
            return shown or disk
        if not _same(shown, disk) and self._commands and path not in self._looks:
            for delay in _CATCH_UP:
                await asyncio.sleep(delay)
                disk = await read_disk()
                shown = await self._ask(path, disk)
                if shown is None or disk is None:
                    return shown or disk
                if _same(shown, disk):
                    break
        if _same(shown, disk):
            self._looks[path] = _Look(disk.digest, disk.digest, True, self._commands)
            return disk
        if self._is_behind(path, shown, disk):
            return disk
        self._looks[path] = _Look(shown.digest, disk.digest, False, self._commands)
        # What the editor hides of the file's style is what the disk says.
        return msgspec.structs.replace(
            shown,
            newline=shown.newline if "\r\n" in shown.text else disk.newline,
            encoding=disk.encoding,
        )

    async def refused(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Return which of these files the editor refuses to read, with the reasons.

        One that it has not answered for in time counts as refused.
        """
        reasons = dict.fromkeys(paths, "the editor did not answer in time")
        asking = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def ask(path: Path) -> None:
            async with asking:
                try:
                    await self._buffers.read_text(self._as_opened(path), lines=1)
                except NoEditorFileError:
                    del reasons[path]
                except WorkspaceError as error:
                    reasons[path] = str(error)
                else:
                    del reasons[path]

        with suppress(TimeoutError):
            async with asyncio.timeout(_REFUSALS_SECONDS), asyncio.TaskGroup() as group:
                for path in paths:
                    group.create_task(ask(path))
        return reasons

    async def write(
        self, path: Path, text: str, *, newline: str, encoding: str, before: TextFile | None
    ) -> None:
        """Let the editor write; `before` is the file on disk as it was until now.

        Raises:
            NoEditorMethodError: it cannot write after all; nothing was written.
            WorkspaceError: the editor refused or failed.
        """
        style = self._styles.get(path)
        marked = encoding == "utf-8-sig" if style is None else style.marked
        text = with_newline(text, newline) if style is None or style.crlf else with_lf(text)
        await self._buffers.write_text(
            self._as_opened(path), BYTE_ORDER_MARK + text if marked else text
        )
        self._looks[path] = _Look(
            text_digest(text), before.digest if before else None, True, self._commands
        )

    async def _ask(self, path: Path, disk: TextFile | None) -> TextFile | None:
        try:
            text = await self._buffers.read_text(self._as_opened(path))
        except NoEditorMethodError:
            return None
        except NoEditorFileError:
            if disk is not None:
                self._foreign.add(path)
            return None
        except WorkspaceError as error:
            if disk is None:  # many editors have no code of their own for a missing file
                raise MissingFileError(f"no such file: {path.name}; {error}") from error
            raise
        self._foreign.discard(path)
        if not text and disk is None:
            return None
        if "\0" in text or not is_utf8(text):
            raise WorkspaceError(f"{path.name} is not text in the editor; it cannot be read")
        shown = text_file(path, text)
        if disk is None or disk.text:  # an empty answer says nothing of line endings
            self._styles[path] = _Style("\r\n" in text, shown.encoding == "utf-8-sig")
        return shown

    def _is_behind(self, path: Path, shown: TextFile, disk: TextFile) -> bool:
        look = self._looks.get(path)
        return (
            look is not None
            and look.saved
            and look.commands < self._commands
            and look.editor == shown.digest
            and disk.digest not in (look.disk, look.editor)
        )


def _same(shown: TextFile, disk: TextFile) -> bool:
    return shown.digest == disk.digest or with_lf(shown.text) + "\n" == with_lf(disk.text)
