"""Which files of a folder are a project's: where its ignore files lie, and what they say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from acp_agent.workspace.checkpoints.contract import OuterRules, below


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
    place = _escaped(_part(root, top))
    lines.extend(_moved(os.fsencode(pattern), place) for pattern in patterns)
    if data.is_relative_to(top):
        lines.append(b"/" + _escaped(os.fsencode(data.relative_to(top))) + b"/")
    return b"".join(line + b"\n" for line in lines)


def outer_rules(root: Path, top: Path, lines: bytes) -> OuterRules:
    """What leaves files of a folder out without being kept with it.

    Args:
        root: the session's folder.
        top: the top of what it is a part of.
        lines: `exclusions` of the two.
    """
    files = [(b"", lines)] if lines else []
    place = root
    while place != top:
        place = place.parent
        try:
            text = (place / ".gitignore").read_bytes()
        except OSError:
            continue
        files.append((_part(place, top), text))
    return OuterRules(below=_part(root, top), files=tuple(files))


def rules_at(outer: OuterRules, kept: Iterable[tuple[bytes, bytes]]) -> Mapping[bytes, bytes]:
    """All ignore files that held for a snapshot: folders from the top, with their lines.

    Args:
        outer: those outside of it.
        kept: those in it, likewise, by folders of its own.
    """
    found: dict[bytes, bytes] = {}
    inner = ((below(outer.below, folder), text) for folder, text in kept)
    for folder, text in (*outer.files, *inner):  # of one folder the later lines win
        found[folder] = b"\n".join((found[folder], text)) if folder in found else text
    return found


def _part(folder: Path, top: Path) -> bytes:
    """A folder's path from the top; empty for the top itself."""
    return b"" if folder == top else os.fsencode(folder.relative_to(top))


def _own(top: Path) -> list[str]:
    """What the user's repository leaves out for this user alone (gitignore(5))."""
    try:
        text = (top / ".git" / "info" / "exclude").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(line) for line in text.splitlines() if not line.startswith(b"#")]


def _moved(pattern: bytes, place: bytes) -> bytes:
    """A pattern of a folder as one of a folder above it."""
    if not place:
        return pattern
    sign, body = (b"!", pattern[1:]) if pattern.startswith(b"!") else (b"", pattern)
    anchored = b"/" in body.rstrip(b"/")
    between = b"" if anchored else b"**/"
    return sign + b"/" + place + b"/" + between + body.lstrip(b"/")


def _escaped(path: bytes) -> bytes:
    """A path as a pattern that stands for itself."""
    escaped = b"".join(
        b"\\" + bytes([one]) if one in b"\\*?[]!# " else bytes([one]) for one in path
    )
    return escaped.replace(b"\n", b"?")  # a line of patterns cannot have one
