"""An editor's buffers over real files, with the habits that real editors have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from acp_agent.errors import NoEditorFileError, WorkspaceError
from acp_agent.workspace.editor_files import EditorBuffers


class FakeEditor(EditorBuffers):
    """Keeps each file that it was asked for as a buffer, which it never loads again by itself.

    Like Zed's, its buffers have LF line endings and no byte order mark; the file on disk keeps
    its own. Like Zed's, reading a file that is not there is an error.

    Args:
        missing_is_empty: CodeCompanion's habit: a missing file is "".
        drops_last_newline: Toad's habit: the text comes without its last newline.
        knows: says which files belong to the editor's project; others are an error.
        formats: what happens to a text when it is saved.
        loads_again: whether a buffer without unsaved changes follows the disk, and after how many
            further reads.
    """

    def __init__(
        self,
        *,
        can_read: bool = True,
        can_write: bool = True,
        missing_is_empty: bool = False,
        drops_last_newline: bool = False,
        knows: Callable[[Path], bool] = lambda path: True,
        formats: Callable[[str], str] = lambda text: text,
        loads_again: int | None = None,
    ) -> None:
        self._can_read = can_read
        self._can_write = can_write
        self._missing_is_empty = missing_is_empty
        self._drops_last_newline = drops_last_newline
        self._knows = knows
        self._formats = formats
        self._loads_again = loads_again
        self._buffers: dict[Path, str] = {}
        self._unsaved: set[Path] = set()
        self.refused: dict[Path, str] = {}  # why each of these files may not be read
        self.reads: list[Path] = []
        self.writes: list[tuple[Path, str]] = []

    @property
    def can_read(self) -> bool:
        return self._can_read

    @property
    def can_write(self) -> bool:
        return self._can_write

    def type(self, path: Path, text: str) -> None:
        """The user changes a buffer and does not save."""
        self._buffers[path] = text
        self._unsaved.add(path)

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        self.reads.append(path)
        if path in self.refused:
            raise WorkspaceError(self.refused[path])
        if not self._knows(path):
            raise NoEditorFileError("the file is not part of this project")
        if self._loads_again is not None and path not in self._unsaved:
            self._loads_again -= 1
            if self._loads_again < 0:
                self._buffers.pop(path, None)
        if path not in self._buffers:
            if not path.exists():
                if self._missing_is_empty:
                    return ""
                raise NoEditorFileError("no such file")
            self._buffers[path] = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        text = self._buffers[path]
        return text.removesuffix("\n") if self._drops_last_newline else text

    async def write_text(self, path: Path, text: str) -> None:
        self.writes.append((path, text))
        if not self._knows(path):
            raise WorkspaceError("the file is not part of this project")
        before = path.read_bytes() if path.exists() else b""
        text = self._formats(text)
        self._buffers[path] = text
        self._unsaved.discard(path)
        if b"\r\n" in before:
            text = text.replace("\n", "\r\n")
        mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
        path.write_bytes(mark + text.encode())
