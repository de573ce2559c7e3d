"""The files of a session: check paths, and read and write through the editor or on disk."""

from __future__ import annotations

import asyncio
import copy
import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
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
    delete_file,
    display_path,
    encode,
    file_kind,
    is_utf8,
    make_parents,
    read_regular,
    rename_file,
    replace_file,
)
from acp_agent.workspace.path_cleaning import clean_path, listed_paths
from acp_agent.workspace.threads import run_to_end

TEXT_LIMIT = 10_000_000  # bytes of a text file that can be read or written
_MAX_SUGGESTIONS = 3  # files that an error suggests
_MAX_SEARCH_SECONDS = 0.5  # seconds to search for them


class WorkspaceFiles:
    """Files below the session's folders.

    Changes end before a cancellation takes effect: an abandoned thread could overwrite a later one.

    Args:
        cwd: the working folder, absolute.
        directories: the additional folders, absolute.
        buffers: reads and writes through the editor; None if the editor does not support it.
        readable: further folders from which files may be read, such as the one for long outputs.
        refused: returns the files that searches must not show, with the reasons.
        before_write: called with the path of each file before it is written.
        confine: wraps the command line of programs that search the files.
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
        # Existence is not checked here: a missing folder is reported when it is used.
        self._folders = (cwd, *directories)
        self.roots = tuple(_resolve_links(str(folder)) for folder in self._folders)
        self._readable = tuple(_resolve_links(str(folder)) for folder in readable)
        self._editor = EditorView(buffers, self.editor_path) if buffers is not None else None
        self._seen_digests: dict[str, str] = {}
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def resolve(self, path: str, *, to_read: bool = False) -> Path:
        """Return the absolute path, with symlinks resolved, after checking that it is in a root.

        Relative paths start at the working folder; `~` is the home folder. With `to_read`, the
        path may also lie in one of the further readable folders.

        Raises:
            OutsideWorkspaceError: the path, or the target of a symlink in it, lies outside.
            WorkspaceError: the path is invalid, or the working folder is missing.
        """
        if not path.strip():
            raise WorkspaceError("the path is empty", advice="name a file or a folder")
        if "\0" in path:
            raise WorkspaceError("the path has a NUL character", advice="leave it out")
        if not is_utf8(path):
            raise WorkspaceError("the path has a broken character", advice="leave it out")
        path = self.clean_path(path, existing=to_read)
        if path == "~" or path.startswith("~/"):
            path = str(Path(path).expanduser())
        real = _resolve_links(str(self.roots[0] / path))
        self._check_inside(real, to_read=to_read)
        if not is_utf8(str(real)):  # the target of a symlink; model and editor cannot name it
            raise WorkspaceError(
                f"the name of {self._label(real)} is not valid UTF-8",
                advice="rename it, or use `shell`",
            )
        cwd = self.roots[0]
        if real.is_relative_to(cwd) and file_kind(cwd) != "folder":
            raise WorkspaceError(
                f"the working folder {cwd} is gone; restore it, or open the session in another one"
            )
        return real

    def clean_path(self, path: str, *, existing: bool) -> str:
        """Return the path that the model probably meant; see `clean_path`."""
        return clean_path(path, self.roots[0], existing=existing)

    def listed_paths(self, text: str) -> list[str]:
        """Return the paths of a text that lists several; see `listed_paths`."""
        return listed_paths(text, self.roots[0])

    def editor_path(self, path: Path) -> Path:
        """Return a resolved path in the form that the editor uses, below the unresolved root.

        An editor that opened a folder through a symlink knows its files only by that path.
        """
        for folder, root in zip(self._folders, self.roots, strict=True):
            if path.is_relative_to(root):
                return folder / path.relative_to(root)
        return path

    async def read_text(self, path: Path) -> TextFile:
        """Return a text file; by the rules of `editor_files` if the editor supports reading.

        Args:
            path: a path that `resolve` returned.

        Raises:
            MissingFileError: there is no such file, neither on disk nor in the editor.
            WorkspaceError: it is a folder, unreadable, binary, not UTF-8, over `TEXT_LIMIT`, or
                refused by the editor.
        """
        self._check_inside(path, to_read=True)

        async def read_disk() -> TextFile | None:
            return await self._read_disk(path)

        if self._editor is not None and self._editor.can_read and self._is_in_roots(path):
            file = await self._editor.read(path, read_disk)
        else:
            file = await read_disk()
        if file is None:
            raise self._missing(path)
        return file

    async def refused_reads(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Return the files that searches must not show, with the reasons.

        These are files that permission rules refuse, and files that the editor refuses to read.
        """
        by_rules = self._refused([str(path) for path in paths])
        refused = {path: by_rules[str(path)] for path in paths if str(path) in by_rules}
        root_paths = [path for path in paths if self._is_in_roots(path) and is_utf8(str(path))]
        if self._editor is None or not self._editor.can_read or not root_paths:
            return refused
        return {**await self._editor.refused(root_paths), **refused}

    async def read_bytes(self, path: Path, *, limit: int) -> bytes:
        """Return a file's bytes from disk.

        Raises:
            MissingFileError: there is no such file.
            WorkspaceError: it is not a regular file, is over `limit` bytes, or cannot be read.
        """
        self._check_inside(path, to_read=True)
        try:
            return await read_regular(path, limit=limit, label=self._label(path))
        except MissingFileError:
            raise self._missing(path) from None

    async def write_text(
        self, path: Path, text: str, *, newline: str = "\n", encoding: str = "utf-8"
    ) -> None:
        """Create or replace a text file, and create missing parent folders.

        Writes through the editor if that supports it; otherwise to disk, atomically and with the
        file's mode preserved. See `TextFile` for `newline` and `encoding`.

        Raises:
            OutsideWorkspaceError: the path lies outside the roots.
            WorkspaceError: the file cannot be written; its old content is unchanged.
        """
        self._check_inside(path, to_read=False)
        label = self._label(path)
        data = await asyncio.to_thread(encode, text, newline=newline, encoding=encoding)
        if len(data) > TEXT_LIMIT:
            raise WorkspaceError(
                f"the text for {label} is too long: {len(data):,} bytes, "
                f"the limit is {TEXT_LIMIT:,}",
                advice="write it in parts, or make it with a command",
            )
        self._before_write(str(path))
        if self._editor is None or not self._editor.can_write(path):
            await run_to_end(asyncio.to_thread(replace_file, path, data, label=label))
            return
        before = await self._read_disk(path)
        # The protocol requires the editor to create the file, but not all create the folders.
        await asyncio.to_thread(make_parents, path, label=label)
        try:
            await self._editor.write(path, text, newline=newline, encoding=encoding, before=before)
        except NoEditorMethodError:
            await run_to_end(asyncio.to_thread(replace_file, path, data, label=label))
        except WorkspaceError as error:
            raise WorkspaceError(
                f"{label} was not written: {error.shown}", advice=error.advice
            ) from error

    async def delete(self, path: Path) -> None:
        """Delete a file from disk.

        Raises:
            OutsideWorkspaceError: the path lies outside the roots.
            WorkspaceError: the file cannot be deleted.
        """
        self._check_inside(path, to_read=False)
        self._before_write(str(path))
        await run_to_end(asyncio.to_thread(delete_file, path, label=self._label(path)))

    async def rename(self, path: Path, new_path: Path) -> None:
        """Rename a file on disk, and create missing parent folders.

        Raises:
            OutsideWorkspaceError: a path lies outside the roots.
            WorkspaceError: the file cannot be renamed, or the new path exists.
        """
        for changed in (path, new_path):
            self._check_inside(changed, to_read=False)
            self._before_write(str(changed))
        label, new_label = self._label(path), self._label(new_path)
        rename = asyncio.to_thread(rename_file, path, new_path, label=label, new_label=new_label)
        await run_to_end(rename)

    def mark_seen(self, file: TextFile) -> None:
        """Record that the model has seen the current content of the file."""
        self._seen_digests[file.path] = file.digest

    def was_seen(self, file: TextFile) -> bool:
        """Return whether the model has seen the current content of the file."""
        return self._seen_digests.get(file.path) == file.digest

    def locked(self, path: Path) -> asyncio.Lock:
        """Return the lock that serialises changes of a file; `copy_unseen` shares it."""
        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock

    def copy_unseen(self) -> WorkspaceFiles:
        """Return a copy for another model, which has not seen any file yet."""
        clone = copy.copy(self)
        clone._seen_digests = {}  # noqa: SLF001 - its own class
        return clone

    async def check_unchanged(self, path: Path) -> TextFile:
        """Return the file if its text is what the model last saw.

        Raises:
            MissingFileError: there is no such file.
            WorkspaceError: the model has not read it, or it changed since; the advice is to read
                it.
        """
        file = await self.read_text(path)
        last_digest = self._seen_digests.get(file.path)
        if last_digest is None:
            raise WorkspaceError(
                f"{self._label(path)} has not been read yet", advice="read it first"
            )
        if last_digest != file.digest:
            raise WorkspaceError(
                f"{self._label(path)} changed since it was read",
                advice="read it again, then try again",
            )
        return file

    def note_commands_ran(self) -> None:
        """Note that a command ran, which may have changed files without the editor's knowledge."""
        if self._editor is not None:
            self._editor.commands_ran()

    def _is_in_roots(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.roots)

    def _check_inside(self, path: Path, *, to_read: bool) -> None:
        if self._is_in_roots(path):
            return
        if to_read and any(path.is_relative_to(folder) for folder in self._readable):
            return
        folders = ", ".join(str(root) for root in self.roots)
        raise OutsideWorkspaceError(
            f"{display_path(path, self.roots[0])} lies outside the session's folders ({folders})",
            advice="ask the user to open its folder as an additional one",
        )

    def _label(self, path: Path) -> str:
        return display_path(path, self.roots[0])

    async def _read_disk(self, path: Path) -> TextFile | None:
        label = self._label(path)
        try:
            data = await read_regular(path, limit=TEXT_LIMIT, label=label)
        except MissingFileError:
            return None
        return await asyncio.to_thread(decode, path, data, label=label)

    def _missing(self, path: Path) -> MissingFileError:
        return MissingFileError(f"no such file: {self._label(path)}")

    async def with_suggestions(self, missing: MissingFileError, path: Path) -> MissingFileError:
        """Return the error with suggestions: files of the same name, or of a similar name.

        Takes a few milliseconds, and up to `_MAX_SEARCH_SECONDS` seconds in a large project.
        """
        suggestions = await self._find_same_name(path) or await asyncio.to_thread(
            self._find_similar, path
        )
        hint = f"did you mean {' or '.join(suggestions)}?" if suggestions else "find it with `glob`"
        return MissingFileError(missing.shown, advice=hint)

    async def _find_same_name(self, path: Path) -> list[str]:
        """Return the files of the same name below the working folder."""
        from acp_agent.workspace.search import list_files  # noqa: PLC0415 - rarely needed

        cwd = self.roots[0]
        try:
            names = await list_files(
                cwd, timeout=_MAX_SEARCH_SECONDS, partial=True, confine=self.confine
            )
        except WorkspaceError:
            return []
        lower_name = os.fsencode(path.name.lower())

        def matches() -> list[str]:
            found = (name for name in names if name.lower().endswith(lower_name))
            found = (name for name in found if name.rsplit(b"/", 1)[-1].lower() == lower_name)
            return sorted(os.fsdecode(name).removeprefix("./") for name in found)

        return (await asyncio.to_thread(matches))[:_MAX_SUGGESTIONS]

    def _find_similar(self, path: Path) -> list[str]:
        try:
            with listed_folder(path.parent) as folder, os.scandir(folder) as entries:
                names = [entry.name for _, entry in zip(range(2_000), entries, strict=False)]
        except OSError:
            names = []
        matches = difflib.get_close_matches(path.name, names, n=_MAX_SUGGESTIONS, cutoff=0.6)
        return [self._label(path.parent / name) for name in matches]


def _resolve_links(path: str) -> Path:
    try:
        return Path(real_path(path))
    except OSError as error:
        raise WorkspaceError(f"the path cannot be resolved: {error.strerror}") from error
