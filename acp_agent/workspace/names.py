"""How paths are written for people and models: short, on one line, valid as text."""

from __future__ import annotations

import os
from pathlib import Path


def display_path(path: str | Path, cwd: Path) -> str:
    """A path relative to the working folder where it lies below it, else absolute, on one line."""
    path = Path(path)
    if path.is_relative_to(cwd):
        path = path.relative_to(cwd)
    return display_name(path.as_posix())


def display_name(name: str) -> str:
    """A file's name with line breaks and other control characters escaped as in Python.

    Bytes of a name that are not UTF-8 become U+FFFD.
    """
    name = os.fsencode(name).decode("utf-8", "replace") if not name.isascii() else name
    if name.isprintable():
        return name
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    return "".join(escaped)
