"""Turns what a program may do with files into grants for Landlock, which knows no exceptions.

A grant for a folder holds for all that is below it. So a folder with an exception below it gets no
grant; what is in it does, one by one. Such a folder is divided: the supervisor makes and opens in
it what has no grant of its own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec import Struct, field

from acp_agent.sandbox.policy import MountKind


class PathRules(Struct):
    """Grants, all of them absolute paths without links.

    Attributes:
        read: files and folders that may be read, with all below them.
        write: the same for those that may be changed.
        divided: folders that may be listed, and that have no grant since something in them is
            hidden.
    """

    read: list[str] = field(default_factory=list)
    write: list[str] = field(default_factory=list)
    divided: list[str] = field(default_factory=list)


def path_rules(kinds: Mapping[str, MountKind]) -> PathRules:
    """Return the grants for a table of paths. Lists folders: call it in a thread.

    Args:
        kinds: by path, absolute and without links, what may be done with it and all below it that
            the table does not name. Whatever no line is about may be read.
    """
    below: defaultdict[str, set[str]] = defaultdict(set)
    for path in kinds:
        while path != "/":
            folder, _, name = path.rpartition("/")
            folder = folder or "/"
            if name in below[folder]:
                break
            below[folder].add(name)
            path = folder  # noqa: PLW2901 - goes up
    rules = PathRules()
    _grant("/", "read", kinds, below, rules, frozenset())
    return rules


def _grant(
    path: str,
    inherited: MountKind,
    kinds: Mapping[str, MountKind],
    below: Mapping[str, set[str]],
    rules: PathRules,
    granted: frozenset[MountKind],
) -> None:
    kind = kinds.get(path, inherited)
    named = below.get(path, set())
    found = set(_kinds_below(path, kind, kinds, below)) if named else set()
    divided: list[list[str]] = []
    if kind != "hide":
        if "hide" not in found:
            rules.read += [] if "read" in granted else [path]
            granted |= {"read"}
        elif "read" not in granted:
            rules.divided.append(path)
            divided.append(rules.read)
    if kind == "write":
        if found <= {"write"}:
            rules.write += [] if "write" in granted else [path]
            granted |= {"write"}
        elif "write" not in granted:
            divided.append(rules.write)
    if divided:
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if entry.name not in named and not entry.is_symlink():
                    for paths in divided:
                        paths.append(entry.path)
    for name in sorted(named):
        _grant(os.path.join(path, name), kind, kinds, below, rules, granted)


def _kinds_below(
    path: str, inherited: MountKind, kinds: Mapping[str, MountKind], below: Mapping[str, set[str]]
) -> Iterator[MountKind]:
    for name in below.get(path, ()):
        child = os.path.join(path, name)
        kind = kinds.get(child, inherited)
        yield kind
        yield from _kinds_below(child, kind, kinds, below)
