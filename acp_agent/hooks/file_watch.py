"""Find changes of the files that hooks of `FileChanged` name, or that a hook asks to watch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from acp_agent.hooks.types import Hook
from acp_agent.platform.trusted_files import file_stamp

_MAX_FILES = 500  # files that are watched

FileEvent = Literal["add", "change", "unlink"]


def is_watched(matcher: str, name: str) -> bool:
    """Return whether the matcher of a hook names a file; an empty one names all."""
    return matcher.strip() in {"", "*"} or name in _names(matcher)


def _names(matcher: str) -> set[str]:
    return {part.strip() for part in matcher.split("|")} - {"", "*"}


class WatchedFiles:
    """The files that hooks watch, each with what it was at the last look."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._stamps: dict[Path, tuple[int, int, int] | None] = {}

    def add_matchers(self, hooks: Sequence[Hook]) -> None:
        """Watch the files that the matchers of hooks name."""
        self.add(
            [name for hook in hooks if hook.event == "FileChanged" for name in _names(hook.matcher)]
        )

    def add(self, paths: Sequence[str]) -> None:
        """Watch further files; relative paths are in the session's folder."""
        for path in (self._cwd / name for name in paths):
            if path not in self._stamps and len(self._stamps) < _MAX_FILES:
                self._stamps[path] = file_stamp(path)

    def changes(self) -> list[tuple[Path, FileEvent]]:
        """Return the files that have changed since the last call. Blocks: reads the disk."""
        changed: list[tuple[Path, FileEvent]] = []
        for path, old in list(self._stamps.items()):
            new = file_stamp(path)
            if new != old:
                self._stamps[path] = new
                kind: FileEvent = "change" if old and new else ("add" if new else "unlink")
                changed.append((path, kind))
        return changed
