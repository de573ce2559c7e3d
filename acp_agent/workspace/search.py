"""Find files by name and by content, without ignored files."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.file_io import file_kind
from acp_agent.workspace.ripgrep import (
    TIME_LIMIT,
    MatchLine,
    RipgrepResult,
    decode_lines,
    run_ripgrep,
)

FILE_LIMIT = 300_000  # files below one folder that a search by name covers


_SEVERAL_LINES = re.compile(r"\n|\\n|\[\\s\\S\]|\[\\S\\s\]|\(\?s")  # what crosses line ends


class FileMatches(Struct, frozen=True, kw_only=True):
    """File names relative to the searched folder, newest first, and their total number."""

    names: tuple[str, ...]
    total: int
    timed_out: bool = False


class LineMatches(Struct, frozen=True, kw_only=True):
    """Matching lines by file name and line number; `more` is true if some were left out."""

    lines: tuple[MatchLine, ...]
    more: bool = False
    timed_out: bool = False
    skipped: int = 0  # lines too long to search


class MatchCounts(Struct, frozen=True, kw_only=True):
    """File names in order, each with the number of matching lines."""

    counts: tuple[tuple[str, int], ...]
    more: bool = False
    timed_out: bool = False


async def list_files(
    folder: Path,
    *,
    limit: int = FILE_LIMIT,
    timeout: float = TIME_LIMIT,
    partial: bool = False,
    confine: Confine = unconfined,
) -> list[bytes]:
    """Return the names of all files below a folder that are not ignored, relative to it.

    Args:
        timeout: maximum time in seconds.
        partial: if true, return the names found so far when a limit is reached.
        confine: wraps ripgrep's command line.

    Raises:
        WorkspaceError: there are more than `limit` files, or the listing took too long.
    """
    names: list[bytes] = []
    result = await run_ripgrep(
        ["--files", "--null", "./"],
        folder,
        separator=b"\0",
        on_record=_collect(names, limit),
        confine=confine,
        timeout=timeout,
    )
    _require_success(result)
    if not partial and (result.timed_out or result.stopped):
        reason = f"took over {timeout:g} s" if result.timed_out else f"has over {limit:,} files"
        raise WorkspaceError(f"{folder} {reason}", advice="name a folder further down")
    return names


async def find_files(
    folder: Path,
    pattern: str,
    *,
    limit: int,
    timeout: float = TIME_LIMIT,
    confine: Confine = unconfined,
) -> FileMatches:
    """Return the files that match a glob pattern as in `.gitignore`, newest first.

    Raises:
        WorkspaceError: the pattern is not a valid glob, or there are too many files.
    """
    matched_names: list[bytes] = []
    arguments = ["--files", "--null", "--sortr=modified", f"--glob={pattern}", "./"]
    # In ripgrep a glob overrides the ignore files, so its results are filtered by a listing that
    # respects them.
    listing = asyncio.create_task(list_files(folder, timeout=timeout, confine=confine))
    try:
        result = await run_ripgrep(
            arguments,
            folder,
            separator=b"\0",
            on_record=_collect(matched_names, FILE_LIMIT),
            confine=confine,
            timeout=timeout,
        )
        listed_names = await listing
    finally:
        listing.cancel()
        await asyncio.gather(listing, return_exceptions=True)
    _require_success(result)
    # In a thread: there may be hundreds of thousands of names.
    names = await asyncio.to_thread(_common_names, matched_names, listed_names)
    return FileMatches(
        names=tuple(os.fsdecode(name) for name in names[:limit]),
        total=len(names),
        timed_out=result.timed_out,
    )


async def find_lines(
    path: Path,
    pattern: str,
    *,
    glob: str | None,
    ignore_case: bool,
    context: int,
    limit: int,
    width: int,
    timeout: float = TIME_LIMIT,
    confine: Confine = unconfined,
) -> LineMatches:
    """Return the lines that match a regular expression, in a file or below a folder.

    Args:
        pattern: a regular expression in ripgrep's syntax, or PCRE2's if it uses look-around.
        glob: search only files whose names match this pattern.
        context: number of lines to return before and after each match.
        limit: maximum number of lines, including context lines.
        timeout: maximum time in seconds.
        confine: wraps ripgrep's command line.

    Raises:
        WorkspaceError: the pattern or the glob is invalid, or there are too many files.
    """
    folder, target = _target(path)
    allowed = await _allowed_names(folder, glob, timeout, confine)
    lines: list[MatchLine] = []

    def on_record(record: bytes) -> bool:
        lines.extend(
            line
            for line in decode_lines(record, width=width)
            if allowed is None or os.fsencode(line.name) in allowed
        )
        return len(lines) <= limit

    result = await run_ripgrep(
        ["--json", f"--context={context}", *_match_arguments(pattern, glob, ignore_case), target],
        folder,
        separator=b"\n",
        on_record=on_record,
        confine=confine,
        timeout=timeout,
    )
    _require_success(result)
    return LineMatches(
        lines=tuple(lines[:limit]),
        more=len(lines) > limit,
        timed_out=result.timed_out,
        skipped=result.skipped,
    )


async def count_lines(
    path: Path,
    pattern: str,
    *,
    glob: str | None,
    ignore_case: bool,
    limit: int,
    timeout: float = TIME_LIMIT,
    confine: Confine = unconfined,
) -> MatchCounts:
    """Return how many lines match in each file. Arguments and errors are as in `find_lines`."""
    folder, target = _target(path)
    allowed = await _allowed_names(folder, glob, timeout, confine)
    counts: list[tuple[str, int]] = []
    name = b""

    def on_record(record: bytes) -> bool:
        # Records: a name; then a count, a line feed and the next name; …; then the last count.
        nonlocal name
        count, _, following = record.partition(b"\n")
        if name and (allowed is None or name in allowed):
            counts.append((os.fsdecode(name), int(count)))
        name = (following if name else record).removeprefix(b"./")
        return len(counts) <= limit

    result = await run_ripgrep(
        [
            "--count",
            "--with-filename",
            "--null",
            *_match_arguments(pattern, glob, ignore_case),
            target,
        ],
        folder,
        separator=b"\0",
        on_record=on_record,
        confine=confine,
        timeout=timeout,
    )
    _require_success(result)
    return MatchCounts(
        counts=tuple(counts[:limit]), more=len(counts) > limit, timed_out=result.timed_out
    )


def _common_names(names: Sequence[bytes], allowed: Sequence[bytes]) -> list[bytes]:
    """Return the names that are allowed, in their order."""
    allowed_names = frozenset(allowed)
    return [name for name in names if name in allowed_names]


def _match_arguments(pattern: str, glob: str | None, ignore_case: bool) -> Sequence[str]:
    arguments = ["--sort=path", "--engine=auto", f"--regexp={pattern}"]
    if ignore_case:
        arguments.append("--ignore-case")
    if _SEVERAL_LINES.search(pattern):
        arguments.append("--multiline")
    if glob is not None:
        arguments.append(f"--glob={glob}")
    return arguments


async def _allowed_names(
    folder: Path, glob: str | None, timeout: float, confine: Confine
) -> set[bytes] | None:
    """Return the files that are not ignored, or None if there is no glob to filter by them."""
    if glob is None:
        return None
    return await asyncio.to_thread(set, await list_files(folder, timeout=timeout, confine=confine))


def _target(path: Path) -> tuple[Path, str]:
    return (path, "./") if file_kind(path) == "folder" else (path.parent, f"./{path.name}")


def _collect(records: list[bytes], limit: int) -> Callable[[bytes], bool]:
    """Return a function that appends records to a list and returns false beyond the limit."""

    def on_record(record: bytes) -> bool:
        records.append(record.removeprefix(b"./"))
        return len(records) <= limit

    return on_record


def _require_success(result: RipgrepResult) -> None:
    """Raise an error if ripgrep failed; errors on unreadable files are not reported."""
    if result.status < 2 or result.stopped or result.timed_out or not result.error:
        return
    lines = [line.strip() for line in result.error.splitlines() if line.strip()]
    message = next((line for line in reversed(lines) if "error" in line), lines[-1])
    raise WorkspaceError(
        f"the search is not possible: {message.removeprefix('rg: ').removeprefix('error: ')}",
        advice="correct the pattern, and escape metacharacters such as ( [ { . that are literal",
    )
