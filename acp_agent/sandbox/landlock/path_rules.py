"""Convert permissions on files to grants for Landlock, which supports no exceptions.

A grant for a folder applies to everything below it. So a folder with an exception below it gets no
grant; its entries get one each. In such a divided folder, the supervisor creates and opens files
that have no grant.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct, field

from acp_agent.sandbox.policy import MountKind


class PathRules(Struct):
    """The grants, as absolute paths without links.

    Attributes:
        read: files and folders that may be read, with everything below them.
        write: files and folders that may be changed, with everything below them.
        divided: folders that may be listed, but have no grant since they contain hidden paths.
    """

    read: list[str] = field(default_factory=list)
    write: list[str] = field(default_factory=list)
    divided: list[str] = field(default_factory=list)


def path_rules(kinds: Mapping[str, MountKind]) -> PathRules:
    """Return the grants for a table of paths. Lists folders: call it in a thread.

    Args:
        kinds: the kinds of absolute paths without links. Each also applies to all paths below that
            are not in the table. All other paths may be read.
    """
    tree = _Tree(kinds)
    rules = PathRules()
    _grant("/", "read", tree, rules, frozenset())
    return rules


class _Tree:
    """A table of paths as a tree.

    Attributes:
        names: for each folder, the names in it that lead to a path of the table.
    """

    def __init__(self, kinds: Mapping[str, MountKind]) -> None:
        self.kinds = kinds
        self.names: defaultdict[str, set[str]] = defaultdict(set)
        self.kinds_below: defaultdict[str, set[MountKind]] = defaultdict(set)
        for path, kind in kinds.items():
            while path != "/":
                folder, _, name = path.rpartition("/")
                folder = folder or "/"
                if name in self.names[folder] and kind in self.kinds_below[folder]:
                    break
                self.names[folder].add(name)
                self.kinds_below[folder].add(kind)
                path = folder  # noqa: PLW2901 - goes up


def _grant(
    path: str,
    inherited: MountKind,
    tree: _Tree,
    rules: PathRules,
    granted: frozenset[MountKind],
) -> None:
    kind = tree.kinds.get(path, inherited)
    names = tree.names.get(path, set())
    kinds_below = tree.kinds_below.get(path, set())
    divided: list[list[str]] = []
    if kind != "hide":
        if "hide" not in kinds_below:
            rules.read += [] if "read" in granted else [path]
            granted |= {"read"}
        elif "read" not in granted:
            rules.divided.append(path)
            divided.append(rules.read)
    if kind == "write":
        if kinds_below <= {"write"}:
            rules.write += [] if "write" in granted else [path]
            granted |= {"write"}
        elif "write" not in granted:
            divided.append(rules.write)
    if divided:
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if entry.name not in names and not entry.is_symlink():
                    for paths in divided:
                        paths.append(entry.path)
    for name in sorted(names):
        _grant(f"{path.rstrip('/')}/{name}", kind, tree, rules, granted)
