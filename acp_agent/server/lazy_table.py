"""Methods that few clients use, loaded when one of them is first called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

T = TypeVar("T")

# What both versions answer beyond their stable methods, in the types of each (`unstable`).
UNSTABLE_METHODS: Final = frozenset(
    {
        "session/fork",
        "session/archive",
        "session/unarchive",
        "session/status",
        "session/set_title",
        "auth/status",
        "providers/list",
        "providers/set",
        "providers/disable",
    }
)


class LazyTable(Mapping[str, T]):
    """A table by method, some rows of which are made when one of them is first asked for.

    Args:
        rows: the others.
        names: the names of those rows.
        load: makes them.
    """

    def __init__(
        self, rows: Mapping[str, T], names: frozenset[str], load: Callable[[], Mapping[str, T]]
    ) -> None:
        self._rows = dict(rows)
        self._names = names
        self._load = load

    def __getitem__(self, name: str) -> T:
        if name in self._names and name not in self._rows:
            made = self._load()
            self._rows.update((wanted, made[wanted]) for wanted in self._names)
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names | self._rows.keys())

    def __len__(self) -> int:
        return len(self._names | self._rows.keys())
