"""Titles that do not come from the first words of a conversation."""

from __future__ import annotations

import re

from acp_agent.errors import InvalidInputError
from acp_agent.session.store.event_codec import repaired

LONGEST = 200  # characters of a title that the user gives

_FORK = re.compile(r" \(fork(?: (\d{1,4}))?\)$")


def tidy_title(title: str) -> str:
    """A user's title as it is kept: one line, without spaces around it, of at most `LONGEST`.

    Raises:
        InvalidInputError: nothing is left of it.
    """
    line = "".join(char if char.isprintable() else " " for char in repaired(title))
    line = " ".join(line.split())
    if not line:
        raise InvalidInputError("title: it is empty; give at least one character", field="title")
    return _cut(line, LONGEST)


def fork_title(title: str) -> str:
    """The title of a fork: that of its source, with a mark that counts forks of forks."""
    mark = " (fork)"
    found = _FORK.search(title)
    if found is not None:
        title = title[: found.start()]
        mark = f" (fork {int(found[1] or 1) + 1})"
    return _cut(title, LONGEST - len(mark)) + mark


def _cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
