"""Find the files that `instructions` of opencode.json lists: paths and patterns, relative to it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from acp_agent.config.json_files import read_json
from acp_agent.errors import InvalidInputError
from acp_agent.workspace.instructions.rules import matches

CONFIG_LIMIT = 100_000  # bytes of an opencode.json
_MAX_ENTRIES = 100  # of one list
_MAX_FOLDERS = 2_000  # in which files for a pattern are looked for
_MAX_FILES = 200  # of one pattern
_PATTERN = frozenset("*?[{")


def listed_entries(raw: bytes) -> list[str]:
    """Return the entries of `instructions`; none where the file is broken, which agents report."""
    try:
        content = read_json(raw)
    except InvalidInputError:
        return []
    listed = content.get("instructions") if isinstance(content, dict) else None
    entries = listed if isinstance(listed, list) else []
    return [entry for entry in entries if isinstance(entry, str) and entry.strip()][:_MAX_ENTRIES]


def trusted_text(entries: list[str]) -> bytes:
    """Return the content that the user trusts: the list, whatever else the file has."""
    return json.dumps(entries, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def matching_files(entry: str, folder: Path, skipped: Collection[str]) -> Iterator[Path]:
    """Yield the files of an entry: the path that it names, or what its pattern matches.

    Args:
        folder: the folder of opencode.json.
        skipped: names of folders that are not searched; hidden ones are if the pattern names them.
    """
    if _PATTERN.isdisjoint(entry):
        yield folder / entry
        return
    pattern = "/" + entry.removeprefix("./")
    yield from islice(
        (
            path
            for path in _walk(folder, skipped, frozenset(entry.split("/")))
            if matches(pattern, path.relative_to(folder).as_posix(), below=False)
        ),
        _MAX_FILES,
    )


def _walk(folder: Path, skipped: Collection[str], pattern_names: Collection[str]) -> Iterator[Path]:
    for parent, folders, names in islice(os.walk(folder), _MAX_FOLDERS):
        folders[:] = sorted(
            name
            for name in folders
            if name not in skipped and (name in pattern_names or not name.startswith("."))
        )
        yield from (Path(parent, name) for name in sorted(names))
