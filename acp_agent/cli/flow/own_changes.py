"""Detect file changes that a run made itself, so that they do not start it again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import UNSET

from protocol.v1 import types as acp

_CHANGES = {"edit", "delete", "move"}
# After this many runs in a row that were only started by changes during the previous run,
# further changes are attributed to the run itself.
MAX_FOLLOWING = 3


class RunChanges:
    """Collects the files that the agent changes, according to its updates.

    Args:
        top: the folder that names are relative to.
    """

    def __init__(self, top: Path) -> None:
        self._top = os.path.realpath(top)
        self._names: set[str] = set()
        self._changing: set[str] = set()  # calls that change the files in their locations
        self._follow_count = 0

    def record(self, update: acp.SessionUpdate) -> None:
        """Record the files that an update changes."""
        if not isinstance(update, acp.ToolCall | acp.ToolCallProgress):
            return
        if update.kind in _CHANGES:
            self._changing.add(update.tool_call_id)
        for path in _paths(update, locations=update.tool_call_id in self._changing):
            name = os.path.relpath(os.path.realpath(path), self._top)
            self._names.add(name.replace(os.sep, "/"))

    def start_run(self, *, follows: bool) -> None:
        """Start a run; `following` means that only changes during the last run started it."""
        self._names.clear()
        self._changing.clear()
        self._follow_count = self._follow_count + 1 if follows else 0

    def exclude_own(self, changed: Sequence[str]) -> list[str]:
        """Return the changed files that the run did not change itself.

        A command can change files that no update names. After several following runs in a row, all
        changes are therefore attributed to the run; otherwise it could start itself forever.
        """
        if self._follow_count >= MAX_FOLLOWING:
            return []
        return [name for name in changed if name not in self._names]


def _paths(update: acp.ToolCall | acp.ToolCallProgress, *, locations: bool) -> Iterator[str]:
    content = update.content
    for part in () if content is UNSET or content is None else content:
        if isinstance(part, acp.Diff):
            yield part.path
    locations_ = update.locations
    if locations and locations_ is not UNSET and locations_ is not None:
        yield from (location.path for location in locations_)
