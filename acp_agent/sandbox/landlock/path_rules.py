"""Turns what a program may do with files into grants for Landlock, which knows no exceptions.

A grant for a folder holds for all that is below it. So a folder with an exception below it gets no
grant; what is in it does, one by one. Such a folder is divided: the supervisor makes and opens in
it what has no grant of its own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
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
    tree = _Tree(kinds)
    rules = PathRules()
    _grant("/", "read", tree, rules, frozenset())
    return rules


class _Tree:
    """A table of paths as a tree.

    Attributes:
        kinds: by path, what may be done with it.
        names: by folder, the names in it that lead to a path of the table.
        found: by folder, the kinds of the paths below it.
    """

    def __init__(self, kinds: Mapping[str, MountKind]) -> None:
        self.kinds = kinds
        self.names: defaultdict[str, set[str]] = defaultdict(set)
        self.found: defaultdict[str, set[MountKind]] = defaultdict(set)
        for path, kind in kinds.items():
            while path != "/":
                folder, _, name = path.rpartition("/")
                folder = folder or "/"
                if name in self.names[folder] and kind in self.found[folder]:
                    break
                self.names[folder].add(name)
                self.found[folder].add(kind)
                path = folder  # noqa: PLW2901 - goes up


def _grant(
    path: str,
    inherited: MountKind,
    tree: _Tree,
    rules: PathRules,
    granted: frozenset[MountKind],
) -> None:
    kind = tree.kinds.get(path, inherited)
    named = tree.names.get(path, set())
    found = tree.found.get(path, set())
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
        _grant(f"{path.rstrip('/')}/{name}", kind, tree, rules, granted)
