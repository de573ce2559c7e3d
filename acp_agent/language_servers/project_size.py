"""The files of a project: their languages, whether they are too many, and which have changed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

_MAX_FILES = 3_000  # of the server's languages
_MAX_ENTRIES = 30_000  # scanned at most
_MAX_CHANGED = 200
_SKIPPED_FOLDERS = frozenset(
    {"node_modules", "__pycache__", "target", "build", "dist", "vendor", "venv"}
)


def is_large(root: Path, extensions: Collection[str]) -> bool:
    """Return whether a folder has too many files to check all of them. Blocks, within a bound.

    Args:
        extensions: what the names of the files end in.
    """
    files = 0
    for folder_files in _walk(root, extensions):
        if folder_files is None:
            return True
        files += len(folder_files)
        if files > _MAX_FILES:
            return True
    return False


def changed_files(root: Path, extensions: Collection[str], since: int) -> list[Path]:
    """Return files that were written since a time, at most `_MAX_CHANGED`. Blocks, within a bound.

    Args:
        extensions: what the names of the files end in.
        since: nanoseconds since the epoch.
    """
    changed: list[Path] = []
    for folder_files in _walk(root, extensions):
        for path in folder_files or ():
            with suppress(OSError):
                if os.stat(path).st_mtime_ns >= since:  # noqa: PTH116 - many
                    changed.append(Path(path))
        if len(changed) >= _MAX_CHANGED:
            break
    return changed[:_MAX_CHANGED]


def used_extensions(root: Path, extensions: Collection[str]) -> set[str]:
    """Return which of these extensions files of a folder have. Blocks, within a bound."""
    folder_files = (names or () for names in _walk(root, extensions))
    return {os.path.splitext(name)[1].lower() for names in folder_files for name in names}  # noqa: PTH122 - many


def _walk(root: Path, extensions: Collection[str]) -> Iterator[list[str] | None]:
    """Yield the files of each folder; None, and no more, if there are too many."""
    entries = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [
            folder_name
            for folder_name in folders
            if folder_name not in _SKIPPED_FOLDERS and not folder_name.startswith(".")
        ]
        entries += len(folders) + len(names)
        if entries > _MAX_ENTRIES:
            yield None
            return
        matching = [name for name in names if os.path.splitext(name)[1].lower() in extensions]  # noqa: PTH122 - many
        yield [f"{folder}/{name}" for name in matching]
