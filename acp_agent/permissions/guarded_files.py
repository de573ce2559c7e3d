"""Files that a grant to edit does not cover: files that run automatically, and our own files."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from acp_agent.permissions.paths import is_below
from acp_agent.platform.data_tables import read_table
from acp_agent.sandbox.policy import protected_names


class _Kind(Struct, frozen=True, forbid_unknown_fields=True):
    why: str
    steers: bool = False
    names: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def pattern(self) -> str:
        """Return a regular expression that finds a file of this kind in a path from `plain`."""
        anywhere = "|".join(map(_expression, (*self.names, *self.paths)))
        last = "|".join(map(_expression, self.files))
        return f"/(?:(?:{anywhere})(?:/|$)|(?:{last})$)"


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    work_trees: tuple[str, ...]
    kinds: tuple[_Kind, ...]


class _Patterns(Struct, frozen=True):
    work_tree: re.Pattern[str]
    kinds: tuple[tuple[re.Pattern[str], str], ...]
    steering: re.Pattern[str]


def load_patterns() -> None:
    """Read and compile the tables at their first use, which takes 20 ms: call it in a thread."""
    _patterns()
    _protected()


def auto_run_reason(path: str) -> str:
    """Return why a file runs automatically, as a predicate of its name; empty if it does not."""
    patterns = _patterns()
    relative_path = patterns.work_tree.sub("", normalize_path(path))
    return next((why for pattern, why in patterns.kinds if pattern.search(relative_path)), "")


def is_guarded(path: str, project: str) -> bool:
    """Return whether commands in the sandbox cannot change a file; see protected_paths.toml.

    Args:
        project: the session's folder. Only the part of the path below it is checked.
    """
    inside = normalize_path(path).removeprefix(normalize_path(project))
    return _protected().search(inside) is not None


def steers_agents(path: str, project: str) -> bool:
    """Return whether agents that work in the folder obey a file; see run_by_themselves.toml.

    Args:
        path: an absolute path.
        project: as in `is_guarded`.
    """
    patterns = _patterns()
    inside = normalize_path(path).removeprefix(normalize_path(project))
    return patterns.steering.search(patterns.work_tree.sub("", inside)) is not None


def is_program_file(path: str, program_files: Sequence[str], project: str) -> bool:
    """Return whether an absolute path is one of our own files.

    Args:
        program_files: our files and folders, resolved.
        project: the session's folder. If it is below one of our folders, which happens when
            ACP_AGENT_HOME is a home folder, the files in the project are not ours.
    """
    path, project = normalize_path(path), normalize_path(project)
    return any(
        is_below(path, [folder])
        and (project == folder or not is_below(project, [folder]) or not is_below(path, [project]))
        for folder in map(normalize_path, program_files)
    )


def resolve_program_files(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return our files and folders, both as named and with links resolved."""
    absolute_paths = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - without following links
    return tuple(dict.fromkeys([*absolute_paths, *map(os.path.realpath, absolute_paths)]))


def normalize_path(path: str) -> str:
    """Return a path as the most tolerant file systems compare it.

    They ignore case, Unicode forms and invisible characters, and drop trailing dots and blanks.
    """
    folded = unicodedata.normalize("NFKC", path).casefold()
    visible = "".join(character for character in folded if unicodedata.category(character) != "Cf")
    return re.sub(r"(?<=[^/. ])[. ]+(?=/|$)", "", visible)


@cache
def _patterns() -> _Patterns:
    table = read_table(__package__, "run_by_themselves.toml", _Table)
    trees = "|".join(map(_expression, table.work_trees))
    kinds = tuple((re.compile(kind.pattern()), kind.why) for kind in table.kinds)
    steering = "|".join(kind.pattern() for kind in table.kinds if kind.steers)
    return _Patterns(re.compile(f"^.*/(?:{trees})(?=/)"), kinds, re.compile(steering))


@cache
def _protected() -> re.Pattern[str]:
    anywhere = "|".join(map(_expression, (".git", *protected_names())))
    return re.compile(f"/(?:{anywhere})(?:/|$)")


def _expression(pattern: str) -> str:
    return re.escape(normalize_path(pattern)).replace(r"\*", "[^/]*")
