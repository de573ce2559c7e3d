"""Tells projects that a language server can check as a whole from those that are too large."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_MOST_FILES = 3_000  # of the server's languages
_MOST_ENTRIES = 30_000  # of all that is looked at
_LEFT_OUT = frozenset({"node_modules", "__pycache__", "target", "build", "dist", "vendor", "venv"})


def is_large(root: Path, extensions: Collection[str]) -> bool:
    """Return whether a folder has too many files to check all of them. Blocks, within a bound.

    Args:
        root: the project's folder.
        extensions: what the names of the files end in.
    """
    files = entries = 0
    for _, folders, names in os.walk(root):
        folders[:] = [one for one in folders if one not in _LEFT_OUT and not one.startswith(".")]
        entries += len(folders) + len(names)
        files += sum(os.path.splitext(name)[1].lower() in extensions for name in names)  # noqa: PTH122 - many
        if files > _MOST_FILES or entries > _MOST_ENTRIES:
            return True
    return False
