"""Notes that outlive a session: Markdown files of the user and of each project.

A note is a file that people can read, change and delete. Its first line is a summary, and the only
part that the model of a new session sees. The files are outside of the project, so that they are
not committed by accident, and a repository cannot add any.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.workspace.file_io import replace_file

Scope = Literal["project", "user"]
SCOPES: tuple[Scope, ...] = ("project", "user")

MAX_NOTE_LENGTH = 16_000  # characters of one note
_MAX_NOTES = 200  # notes per scope
_MAX_INDEX_LENGTH = 4_000  # characters of the index for the model
_MAX_SUMMARY_LENGTH = 160  # characters of a note's summary in the index
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Note(Struct, frozen=True, kw_only=True):
    """A note. `changed` is when its file was last written, in milliseconds since 1970 (UTC)."""

    scope: Scope
    name: str
    text: str
    changed: int

    @property
    def summary(self) -> str:
        """Return its first line without heading marks, shortened."""
        line = next(filter(None, (line.strip() for line in self.text.splitlines())), "")
        line = line.lstrip("#").strip()
        return line if len(line) <= _MAX_SUMMARY_LENGTH else f"{line[: _MAX_SUMMARY_LENGTH - 1]}…"


class NoteFolders:
    """The note folders for sessions of one project. All methods access the disk.

    Args:
        project: the project's folder: a repository, or a session's working folder.
    """

    def __init__(self, base: Path, project: Path) -> None:
        real = os.path.realpath(project)
        digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(real).name)[:40]
        self._folders: dict[Scope, Path] = {
            "user": base / "user",
            "project": base / "projects" / f"{name}-{digest}",
        }

    def folder(self, scope: Scope) -> Path:
        """Return the folder of a scope, which may not exist yet."""
        return self._folders[scope]

    def path(self, scope: Scope, name: str) -> Path:
        """Return the file of a note. Raises ToolError if the name is invalid."""
        if not _NAME.fullmatch(name):
            raise ToolError(
                f"{name[:80]!r} is no name of a note",
                advice="use lower-case letters, digits and hyphens, such as build-commands",
            )
        return self._folders[scope] / f"{name}.md"

    def all(self) -> Sequence[Note]:
        """Return every readable note, the project's first, by name."""
        return [note for scope in SCOPES for note in self._in(scope)]

    def _in(self, scope: Scope) -> Sequence[Note]:
        try:
            files = sorted(self._folders[scope].glob("*.md"))[:_MAX_NOTES]
        except OSError:
            return ()
        return [note for file in files if (note := self._read(scope, file.stem)) is not None]

    def _read(self, scope: Scope, name: str) -> Note | None:
        if not _NAME.fullmatch(name):
            return None
        file = self._folders[scope] / f"{name}.md"
        try:
            # A link could expose a file that no tool may read.
            with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:  # noqa: PTH123 - by descriptor
                status = os.fstat(stream.fileno())
                text = stream.read(MAX_NOTE_LENGTH * 4).decode("utf-8", "replace")[:MAX_NOTE_LENGTH]
        except OSError:
            return None
        return Note(scope=scope, name=name, text=text, changed=status.st_mtime_ns // 1_000_000)

    def find(self, scope: Scope, name: str) -> Note | None:
        """Return a note; None if there is none, or it cannot be read."""
        return self._read(scope, name)

    def save(self, scope: Scope, name: str, text: str) -> None:
        """Write or replace a note. Raises ToolError, WorkspaceError."""
        file, folder = self.path(scope, name), self._folders[scope]
        if not file.exists() and len(self._in(scope)) >= _MAX_NOTES:
            raise ToolError(
                f"there are {_MAX_NOTES} notes already",
                advice="delete or join some that are out of date",
            )
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WorkspaceError(f"{folder} cannot be made: {error.strerror}") from error
        replace_file(file, text.encode("utf-8", "replace"), label=f"the note {name}")

    def delete(self, scope: Scope, name: str) -> None:
        """Delete a note. A missing one is no error. Raises WorkspaceError."""
        try:
            self.path(scope, name).unlink(missing_ok=True)
        except OSError as error:
            raise WorkspaceError(f"the note {name} cannot be deleted: {error.strerror}") from error


def describe_notes(notes: Sequence[Note]) -> str:
    """Return the index of the notes for the model, one line each; "" if there are none."""
    lines: list[str] = []
    remaining = _MAX_INDEX_LENGTH
    for note in notes:
        line = f"- {note.scope} `{note.name}`: {note.summary}"
        remaining -= len(line) + 1
        if remaining < 0:
            lines.append(f"- … {len(notes) - len(lines)} more: `recall` finds them")
            break
        lines.append(line)
    return "\n".join(lines)
