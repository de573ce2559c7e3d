"""Whether a git command runs nothing that the repository chose, and leads to no other repository.

A repository can name programs for nearly everything that git does, in settings that come with it
in an archive. So only settings that are known as data let a command run unasked.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct, convert

from acp_agent.permissions.paths import Place, is_below, stays_inside
from acp_agent.permissions.rules import has_option
from acp_agent.permissions.words import Word
from acp_agent.workspace.git_repositories import Repository

_HARMLESS_OPTIONS = frozenset({"--no-pager", "--no-optional-locks", "--literal-pathspecs"})


class _Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of git_reads.toml."""

    harmless: tuple[str, ...]
    inside_git_dir: frozenset[str]
    inside_work_tree: frozenset[str]
    refused_options: tuple[str, ...]
    refused_text: str
    values: dict[str, frozenset[str]]


@cache
def _rules() -> _Rules:
    text = (files(__package__) / "git_reads.toml").read_text("utf-8")
    return convert(tomllib.loads(text), _Rules)


def subcommand(
    words: Sequence[Word], place: Place, folders: Sequence[str]
) -> tuple[list[Word], list[str]] | None:
    """Return a git command from its subcommand on, and the folders that it may run in.

    None is returned where an option in front of it, or a word behind it, may run a program.
    """
    rest = list(words)
    where = list(folders)
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option == "-C" and rest:
            target = rest.pop(0)
            if target.pattern or not stays_inside(target, place, where):
                return None
            where = [os.path.join(folder, target.text) for folder in where]  # noqa: PTH118 - text that need not be a path
        elif option not in _HARMLESS_OPTIONS:
            return None
    texts = [word.text for word in rest]
    rules = _rules()
    if has_option(texts, rules.refused_options) or any(
        re.search(rules.refused_text, text) for text in texts
    ):
        return None
    return rest, where


def runs_no_program(folder: str, place: Place) -> bool:
    """Whether git, reading in a folder, runs nothing that is named by the repository there."""
    path = os.path.realpath(folder)
    used = place.repositories.used_in(path)
    if used is None:
        return False
    return all(
        (number or is_below(path, [repository.work_tree]))
        and _is_its_own(repository, place)
        and all(_is_data(name, value, repository, place) for name, value in repository.settings)
        for number, repository in enumerate(used)
    )


def _is_its_own(repository: Repository, place: Place) -> bool:
    """Whether git's files are those of the working tree, or lie in the session's folders as well.

    A file `.git`, a link, or a file `commondir` can lead to a repository that is none of the
    project's. A repository elsewhere is the working tree's own where it says so itself, as that of
    a linked working tree and that of a submodule do.
    """
    git_dir, common_dir = repository.git_dir, repository.common_dir
    own = f"{repository.work_tree.rstrip('/')}/.git"
    if place.holds(git_dir) and place.holds(common_dir):
        return True
    if git_dir == common_dir:
        named = [value for name, value in repository.settings if name == "core.worktree"]
        return git_dir == own or any(
            os.path.realpath(os.path.join(git_dir, value)) == repository.work_tree  # noqa: PTH118 - likewise
            for value in named
        )
    entry = Path(git_dir)
    try:
        text = (entry / "gitdir").read_text("utf-8").strip()
    except (OSError, ValueError):
        return False
    return entry.parent.parent == Path(common_dir) and os.path.realpath(entry / text) == own


def _is_data(name: str, value: str, repository: Repository, place: Place) -> bool:
    """Whether a setting names no program, and no file outside."""
    rules = _rules()
    if name in rules.values:
        return value in rules.values[name]
    if name in rules.inside_git_dir | rules.inside_work_tree:
        base = repository.git_dir if name in rules.inside_git_dir else repository.work_tree
        return not value.startswith(("~", "%")) and place.holds(os.path.join(base, value))  # noqa: PTH118 - likewise
    return any(fnmatchcase(name, pattern) for pattern in rules.harmless)
