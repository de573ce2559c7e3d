"""Paths of a folder's tree that match what was typed, even with letters left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from acp_agent.cli.chat.mentions import completions
from acp_agent.errors import WorkspaceError

_LISTED = 50_000  # files of the tree that are looked at
_OFFERED = 50
_SECONDS = 2.0


async def matching_paths(typed: str, cwd: Path) -> list[str]:
    """Return paths for `@typed`, best first; folders end with a slash.

    What completes `typed` as a path comes first, ignored files too. Then follow files and folders
    anywhere in the tree that contain its letters in order, but not those that .gitignore excludes.
    The tree is listed at each call, so a new file is found at once. Hidden ones are offered once a
    dot is typed.
    """
    found = await asyncio.to_thread(completions, typed, cwd)
    if typed and not typed.startswith(("/", "~", "./", "../")):
        files = await _files(cwd)
        found += await asyncio.to_thread(best_matches, typed, files)
    return list(dict.fromkeys(found))[:_OFFERED]


def best_matches(typed: str, files: Sequence[str]) -> list[str]:
    """Return those of `files`, and of the folders they lie in, that match `typed`, best first.

    A match in the last part of the path is better than one across parts, one without gaps better
    than one with gaps, and then a shorter path is better.
    """
    wanted = typed.lower()
    hidden = "." in typed
    ranked = [
        (*rank, len(path), path)
        for path in _with_folders(files)
        if path.isprintable()
        and (hidden or not (path.startswith(".") or "/." in path))
        and (rank := _rank(wanted, path.lower())) is not None
    ]
    return [path for *_, path in sorted(ranked)[:_OFFERED]]


def _with_folders(files: Sequence[str]) -> Iterable[str]:
    folders: set[str] = set()
    for file in files:
        folder = file.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return (*files, *(f"{folder}/" for folder in folders))


def _rank(wanted: str, path: str) -> tuple[int, int] | None:
    """How well lower-case `wanted` matches `path`; smaller is better, None for no match."""
    at = path.rstrip("/").rpartition("/")[2].find(wanted)
    if at >= 0:
        return (0, at)
    at = path.find(wanted)
    if at >= 0:
        return (1, at)
    end = at = len(path)
    for letter in reversed(wanted):
        at = path.rfind(letter, 0, at)
        if at < 0:
            return None
        if end == len(path):
            end = at
    return (2, end - at)


async def _files(cwd: Path) -> list[str]:
    """Return files of the tree; none where it cannot be searched."""
    from acp_agent.workspace.ripgrep import run_ripgrep  # noqa: PLC0415 - once `@` is typed

    found: list[str] = []

    def take(name: bytes) -> bool:
        found.append(name.decode("utf-8", "replace"))
        return len(found) < _LISTED

    try:
        await run_ripgrep(["--files", "--null"], cwd, separator=b"\0", take=take, timeout=_SECONDS)
    except WorkspaceError:
        return []
    return found
