"""The files of a session: paths checked, read and written through the editor or on disk."""

from __future__ import annotations

import asyncio
import copy
import difflib
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from acp_agent.errors import (
    MissingFileError,
    NoEditorMethodError,
    OutsideWorkspaceError,
    WorkspaceError,
)
from acp_agent.platform.nofollow import listed_folder, real_path
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.editor_files import EditorBuffers, EditorView
from acp_agent.workspace.file_io import (
    TextFile,
    decode,
    display_path,
    encode,
    file_kind,
    is_utf8,
    make_parents,
    read_regular,
    replace_file,
)
from acp_agent.workspace.path_cleaning import clean_path

TEXT_LIMIT = 10_000_000  # bytes of a text file that may be read or written as a whole
_NAMED = 3  # files that an error suggests
_SEARCH = 0.5  # seconds to look for them


class WorkspaceFiles:
    """Files below the session's folders.

    Args:
        cwd: the working folder, absolute.
        directories: the additional folders, absolute.
        buffers: the editor's view, None where the editor offers none.
        readable: further folders from which files may be read, such as that of long outputs.
        refused: returns the files that no search may show, with the reasons.
        before_write: is told the path of each file that is about to be written.
        confine: says how a program is started that searches them.
    """

    def __init__(
        self,
        cwd: Path,
        directories: Sequence[Path] = (),
        buffers: EditorBuffers | None = None,
        *,
        readable: Sequence[Path] = (),
        refused: Callable[[Sequence[str]], Mapping[str, str]] = lambda _: {},
        before_write: Callable[[str], None] = lambda _: None,
        confine: Confine = unconfined,
    ) -> None:
        self.confine = confine
        self._refused = refused
        self._before_write = before_write
        # Resolved without asking whether they exist: a missing folder is reported when it is used.
        self._given = (cwd, *directories)
        self._roots = tuple(_real(str(folder)) for folder in self._given)
        self._readable = tuple(_real(str(folder)) for folder in readable)
        self._editor = EditorView(buffers, self.editor_path) if buffers is not None else None
        self._seen: dict[str, str] = {}
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    @property
    def roots(self) -> tuple[Path, ...]:
        """The working folder, then the additional ones; resolved."""
        return self._roots

    def resolve(self, path: str, *, to_read: bool = False) -> Path:
        """An absolute path inside the roots, symlinks followed, also those above a new file.

        Relative paths start at the working folder; `~` is the home folder. What is resolved
        `to_read` may lie in the further readable folders as well.

        Raises:
            OutsideWorkspaceError: the path, or what a symlink on it points to, lies outside.
            WorkspaceError: it is no path, or the working folder is gone.
        """
        if not path.strip():
            raise WorkspaceError("the path is empty", advice="name a file or a folder")
        if "\0" in path:
            raise WorkspaceError("the path has a NUL character", advice="leave it out")
        if not is_utf8(path):
            raise WorkspaceError("the path has a broken character", advice="leave it out")
        path = self.cleaned(path, existing=to_read)
        if path == "~" or path.startswith("~/"):
            path = str(Path(path).expanduser())
        real = _real(str(self._roots[0] / path))
        self._check_inside(real, to_read=to_read)
        if not is_utf8(str(real)):  # by a symlink; neither model nor editor could name it
            raise WorkspaceError(
                f"the name of {self._shown(real)} is not valid UTF-8",
                advice="rename it, or use `shell`",
            )
        cwd = self._roots[0]
        if real.is_relative_to(cwd) and file_kind(cwd) != "folder":
            raise WorkspaceError(
                f"the working folder {cwd} is gone; restore it, or open the session in another one"
            )
        return real

    def cleaned(self, path: str, *, existing: bool) -> str:
        """The path that a model meant; see `clean_path`."""
        return clean_path(path, self._roots[0], existing=existing)

    def editor_path(self, path: Path) -> Path:
        """A resolved path as the editor knows it: below a root as it was given, not resolved.

        An editor that opened a folder through a symlink does not know its files by another path.
        """
        for given, root in zip(self._given, self._roots, strict=True):
            if path.is_relative_to(root):
                return given / path.relative_to(root)
        return path

    async def read_text(self, path: Path) -> TextFile:
        """A whole text file, by the rules of `editor_view` where the editor offers to read.

        Args:
            path: as `resolve` gave it.

        Raises:
            MissingFileError: there is no such file, neither on disk nor in the editor.
            WorkspaceError: a folder, unreadable, binary, not UTF-8, over `TEXT_LIMIT`, or refused
                by the editor.
        """
        self._check_inside(path, to_read=True)

        async def read_disk() -> TextFile | None:
            return await self._read_disk(path)

        if self._editor is not None and self._editor.can_read and self._is_ours(path):
            file = await self._editor.read(path, read_disk)
        else:
            file = await read_disk()
        if file is None:
            raise self._missing(path)
        return file

    async def refused_reads(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Return which of these files no search may show, with the reasons.

        They are those that rules refuse, and that the editor does not let the agent read.
        """
        by_rules = self._refused([str(path) for path in paths])
        refused = {path: by_rules[str(path)] for path in paths if str(path) in by_rules}
        ours = [path for path in paths if self._is_ours(path) and is_utf8(str(path))]
        if self._editor is None or not self._editor.can_read or not ours:
            return refused
        return {**await self._editor.refused(ours), **refused}

    async def read_bytes(self, path: Path, *, limit: int) -> bytes:
        """A file's bytes from disk.

        Raises:
            MissingFileError: there is no such file.
            WorkspaceError: it is no regular file, is over `limit` bytes, or cannot be read.
        """
        self._check_inside(path, to_read=True)
        try:
            return await read_regular(path, limit=limit, shown=self._shown(path))
        except MissingFileError:
            raise self._missing(path) from None

    async def write_text(
        self, path: Path, text: str, *, newline: str = "\n", encoding: str = "utf-8"
    ) -> None:
        """Create or replace a text file, and the folders above it where they are missing.

        It goes through the editor where that offers to write, else to disk, atomically and with
        the file's mode kept; never both. See the contract for `newline` and `encoding`.

        Raises:
            OutsideWorkspaceError: the path lies outside the roots.
            WorkspaceError: it cannot be written; what was there is still there.
        """
        self._check_inside(path, to_read=False)
        shown = self._shown(path)
        data = await asyncio.to_thread(encode, text, newline=newline, encoding=encoding)
        if len(data) > TEXT_LIMIT:
            raise WorkspaceError(
                f"the text for {shown} is too long: {len(data):,} bytes, "
                f"the limit is {TEXT_LIMIT:,}",
                advice="write it in parts, or make it with a command",
            )
        self._before_write(str(path))
        if self._editor is None or not self._editor.can_write(path):
            await _uninterrupted(asyncio.to_thread(replace_file, path, data, shown=shown))
            return
        before = await self._read_disk(path)
        # The protocol has the editor create the file; not every editor makes the folders.
        await asyncio.to_thread(make_parents, path, shown=shown)
        try:
            await self._editor.write(path, text, newline=newline, encoding=encoding, before=before)
        except NoEditorMethodError:
            await _uninterrupted(asyncio.to_thread(replace_file, path, data, shown=shown))
        except WorkspaceError as error:
            raise WorkspaceError(
                f"{shown} was not written: {error.shown}", advice=error.advice
            ) from error

    def mark_seen(self, file: TextFile) -> None:
        """Record that the model has seen the current content of the file."""
        self._seen[file.path] = file.digest

    def was_seen(self, file: TextFile) -> bool:
        """Whether the model has seen the current content of the file."""
        return self._seen.get(file.path) == file.digest

    def locked(self, path: Path) -> asyncio.Lock:
        """Return the lock of a file that is about to be changed; copies of these files share it."""
        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock

    def copy_unseen(self) -> WorkspaceFiles:
        """Return the same files for another model, which has seen none of them."""
        other = copy.copy(self)
        other._seen = {}  # noqa: SLF001 - its own class
        return other

    async def check_unchanged(self, path: Path) -> TextFile:
        """The file, if its text is what the model last saw.

        Raises:
            MissingFileError: there is no such file (any more).
            WorkspaceError: the model never read it, or it changed since; says to read it again.
        """
        file = await self.read_text(path)
        known = self._seen.get(file.path)
        if known is None:
            raise WorkspaceError(
                f"{self._shown(path)} has not been read yet", advice="read it first"
            )
        if known != file.digest:
            raise WorkspaceError(
                f"{self._shown(path)} changed since it was read",
                advice="read it again, then try again",
            )
        return file

    def note_commands_ran(self) -> None:
        """A command of ours may have changed files on disk behind the editor's back."""
        if self._editor is not None:
            self._editor.commands_ran()

    def _is_ours(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self._roots)

    def _check_inside(self, path: Path, *, to_read: bool) -> None:
        if self._is_ours(path):
            return
        if to_read and any(path.is_relative_to(folder) for folder in self._readable):
            return
        folders = ", ".join(str(root) for root in self._roots)
        raise OutsideWorkspaceError(
            f"{display_path(path, self._roots[0])} lies outside the session's folders ({folders})",
            advice="ask the user to open its folder as an additional one",
        )

    def _shown(self, path: Path) -> str:
        return display_path(path, self._roots[0])

    async def _read_disk(self, path: Path) -> TextFile | None:
        shown = self._shown(path)
        try:
            data = await read_regular(path, limit=TEXT_LIMIT, shown=shown)
        except MissingFileError:
            return None
        return await asyncio.to_thread(decode, path, data, shown=shown)

    def _missing(self, path: Path) -> MissingFileError:
        return MissingFileError(f"no such file: {self._shown(path)}")

    async def with_suggestions(self, missing: MissingFileError, path: Path) -> MissingFileError:
        """Return the error with files of the same name elsewhere, or of similar names.

        Takes some milliseconds, in a large project up to `_SEARCH` seconds.
        """
        near = await self._of_same_name(path) or await asyncio.to_thread(self._similar, path)
        hint = f"did you mean {' or '.join(near)}?" if near else "find it with `glob`"
        return MissingFileError(missing.shown, advice=hint)

    async def _of_same_name(self, path: Path) -> list[str]:
        """Files of the same name in the working folder."""
        from acp_agent.workspace.search import list_files  # noqa: PLC0415 - rarely needed

        cwd = self._roots[0]
        try:
            names = await list_files(cwd, timeout=_SEARCH, partial=True, confine=self.confine)
        except WorkspaceError:
            return []
        wanted = os.fsencode(path.name.lower())
        same = (name for name in names if name.rsplit(b"/", 1)[-1].lower() == wanted)
        return sorted(os.fsdecode(name).removeprefix("./") for name in same)[:_NAMED]

    def _similar(self, path: Path) -> list[str]:
        try:
            with listed_folder(path.parent) as folder, os.scandir(folder) as entries:
                names = [entry.name for _, entry in zip(range(2_000), entries, strict=False)]
        except OSError:
            names = []
        near = difflib.get_close_matches(path.name, names, n=_NAMED, cutoff=0.6)
        return [self._shown(path.parent / name) for name in near]


async def _uninterrupted(write: Coroutine[Any, Any, None]) -> None:
    """Wait until a file is written, and only then raise a cancellation.

    A thread cannot be stopped. One that was left behind could put back an old text over what was
    written since.
    """
    task = asyncio.create_task(write)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        task.exception()  # of no interest any more
        raise


def _real(path: str) -> Path:
    try:
        return Path(real_path(path))
    except OSError as error:
        raise WorkspaceError(f"the path cannot be resolved: {error.strerror}") from error
