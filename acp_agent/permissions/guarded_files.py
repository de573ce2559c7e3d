"""Files that need more than leave to edit: those that run by themselves, and our own."""

from __future__ import annotations

import os
import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct, convert

from acp_agent.permissions.paths import is_below


class _Kind(Struct, frozen=True, forbid_unknown_fields=True):
    why: str
    names: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def pattern(self) -> str:
        """A regular expression that finds a file of this kind in a plain path."""
        anywhere = "|".join(map(_expression, (*self.names, *self.paths)))
        last = "|".join(map(_expression, self.files))
        return f"/(?:(?:{anywhere})(?:/|$)|(?:{last})$)"


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    work_trees: tuple[str, ...]
    kinds: tuple[_Kind, ...]


class _Patterns(Struct, frozen=True):
    work_tree: re.Pattern[str]
    kinds: tuple[tuple[re.Pattern[str], str], ...]


def why_it_runs(path: str) -> str:
    """Why a file runs without being started, as what follows its name; empty where it does not."""
    patterns = _patterns()
    rest = patterns.work_tree.sub("", plain(path))
    return next((why for pattern, why in patterns.kinds if pattern.search(rest)), "")


def is_own(path: str, own: Sequence[str], project: str) -> bool:
    """Whether an absolute path is one of our own files.

    Args:
        path: resolved.
        own: our files and the folders of them, resolved.
        project: the session's folder. Where that lies below a folder of ours, as it may where
            ACP_AGENT_HOME is a home folder, what is in the project is not ours.
    """
    path, project = plain(path), plain(project)
    return any(
        is_below(path, [place])
        and (project == place or not is_below(project, [place]) or not is_below(path, [project]))
        for place in map(plain, own)
    )


def own_places(places: Sequence[Path]) -> tuple[str, ...]:
    """Our files and folders, as they are called and as what their links lead to."""
    called = [os.path.abspath(place) for place in places]  # noqa: PTH100 - without following links
    return tuple(dict.fromkeys([*called, *map(os.path.realpath, called)]))


def plain(path: str) -> str:
    """A path as file systems compare it that ignore case, forms of accents and the invisible.

    Some also drop dots and blanks at the end of a name.
    """
    folded = unicodedata.normalize("NFKC", path).casefold()
    visible = "".join(one for one in folded if unicodedata.category(one) != "Cf")
    return re.sub(r"(?<=[^/. ])[. ]+(?=/|$)", "", visible)


@cache
def _patterns() -> _Patterns:
    text = (files(__package__) / "run_by_themselves.toml").read_text("utf-8")
    table = convert(tomllib.loads(text), _Table)
    trees = "|".join(map(_expression, table.work_trees))
    return _Patterns(
        re.compile(f"^.*/(?:{trees})(?=/)"),
        tuple((re.compile(kind.pattern()), kind.why) for kind in table.kinds),
    )


def _expression(pattern: str) -> str:
    return re.escape(plain(pattern)).replace(r"\*", "[^/]*")
