"""Which files of a folder are a project's: where its ignore files lie, and what they say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def project_top(root: Path) -> Path:
    """The top of the repository that a folder is in; the folder itself where it is in none.

    The ignore files between the two hold for the folder as well.
    """
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


def exclusions(root: Path, top: Path, data: Path, patterns: Sequence[str]) -> bytes:
    """What is left out beside what the ignore files say, as lines of one.

    Args:
        root: the session's folder.
        top: the folder that the lines are relative to.
        data: our own files, which may lie in there.
        patterns: the user's, from the top of the session's folder.
    """
    lines = [os.fsencode(line) for line in _own(top)]
    below = _escaped(os.fsencode(root.relative_to(top)) if root != top else b"")
    lines.extend(_moved(os.fsencode(pattern), below) for pattern in patterns)
    if data.is_relative_to(top):
        lines.append(b"/" + _escaped(os.fsencode(data.relative_to(top))) + b"/")
    return b"".join(line + b"\n" for line in lines)


def _own(top: Path) -> list[str]:
    """What the user's repository leaves out for this user alone (gitignore(5))."""
    try:
        text = (top / ".git" / "info" / "exclude").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(line) for line in text.splitlines() if not line.startswith(b"#")]


def _moved(pattern: bytes, below: bytes) -> bytes:
    """A pattern of a folder as one of a folder above it."""
    if not below:
        return pattern
    sign, body = (b"!", pattern[1:]) if pattern.startswith(b"!") else (b"", pattern)
    anchored = b"/" in body.rstrip(b"/")
    between = b"" if anchored else b"**/"
    return sign + b"/" + below + b"/" + between + body.lstrip(b"/")


def _escaped(path: bytes) -> bytes:
    """A path as a pattern that stands for itself."""
    escaped = b"".join(
        b"\\" + bytes([one]) if one in b"\\*?[]!# " else bytes([one]) for one in path
    )
    return escaped.replace(b"\n", b"?")  # a line of patterns cannot have one
