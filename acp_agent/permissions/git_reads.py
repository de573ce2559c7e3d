"""Decide whether a git command, when it reads, runs a program that its words or settings name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.paths import CommandContext, is_below, stays_inside
from acp_agent.permissions.rules import has_option
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import UNKNOWN, Word
from acp_agent.platform.data_tables import read_table
from acp_agent.sandbox.git_settings import is_git_data
from acp_agent.workspace.git_repositories import Repository

_HARMLESS_OPTIONS = frozenset({"-P", "--no-pager", "--no-optional-locks", "--literal-pathspecs"})

_PLAIN_PATH = re.compile(r"/[\w./+,=:@%-]*", re.ASCII)  # which the shell does not split
_PAGER = ("core.pager", "cat")


class _Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """The parsed git_reads.toml."""

    harmless: tuple[str, ...]
    inside_git_dir: frozenset[str]
    inside_work_tree: frozenset[str]
    refused_options: tuple[str, ...]
    refused_text: str


@cache
def _rules() -> _Rules:
    return read_table(__package__, "git_reads.toml", _Rules)


def parse_git_subcommand(
    words: Sequence[Word], context: CommandContext, folders: Sequence[str]
) -> tuple[list[Word], list[str]] | None:
    """Return a git command from its subcommand on, and the folders that it may run in.

    None is returned if an option before the subcommand, or a word after it, may run a program.
    """
    remaining = list(words)
    git_folders = list(folders)
    while remaining and remaining[0].text.startswith("-"):
        option = remaining.pop(0).text
        if option == "-C" and remaining:
            target = remaining.pop(0)
            if target.pattern or not stays_inside(target, context, git_folders):
                return None
            git_folders = [os.path.join(folder, target.text) for folder in git_folders]  # noqa: PTH118 - text that need not be a path
        elif option == "-c" and remaining and remaining[0].fixed:
            name, _, value = remaining.pop(0).text.partition("=")
            if (name.lower(), value) != _PAGER and not is_git_data(name.lower(), value):
                return None
        elif option not in _HARMLESS_OPTIONS:
            return None
    texts = [word.text for word in remaining]
    rules = _rules()
    if has_option(texts, rules.refused_options) or any(
        re.search(rules.refused_text, text) for text in texts
    ):
        return None
    return remaining, git_folders


def at_top_level(command: Command, context: CommandContext, folders: Sequence[str]) -> Command:
    """Return the command with the top of git's working tree where its words name it.

    The words remain as they are if the command may run in more than one repository.
    """
    if not any(word.origin == "top_level" for word in command.words):
        return command
    found = [context.repositories.used_in(os.path.realpath(folder)) for folder in folders]
    tops = {repositories[0].work_tree if repositories else "" for repositories in found}
    top = tops.pop()
    if tops or not _PLAIN_PATH.fullmatch(top):
        return command
    words = tuple(
        Word(word.text.replace(UNKNOWN, top), pattern=word.pattern)
        if word.origin == "top_level"
        else word
        for word in command.words
    )
    return replace(command, words=words)


def runs_no_program(folder: str, context: CommandContext) -> bool:
    """Return whether git, when it reads in a folder, runs no program that the repository names."""
    path = os.path.realpath(folder)
    repositories = context.repositories.used_in(path)
    if repositories is None:
        return False
    return all(
        (number or is_below(path, [repository.work_tree]))
        and _belongs_to_work_tree(repository, context)
        and all(is_data(name, value, repository, context) for name, value in repository.settings)
        for number, repository in enumerate(repositories)
    )


def _belongs_to_work_tree(repository: Repository, context: CommandContext) -> bool:
    """Return whether git's files belong to the working tree, or are in the session's folders.

    A file `.git`, a link, or a file `commondir` can lead to a repository that is not part of the
    project. A repository elsewhere belongs to the working tree if it refers back to it, as those of
    linked working trees and submodules do.
    """
    git_dir, common_dir = repository.git_dir, repository.common_dir
    expected_git_dir = f"{repository.work_tree.rstrip('/')}/.git"
    if context.contains(git_dir) and context.contains(common_dir):
        return True
    if git_dir == common_dir:
        work_trees = [value for name, value in repository.settings if name == "core.worktree"]
        return git_dir == expected_git_dir or any(
            os.path.realpath(os.path.join(git_dir, value)) == repository.work_tree  # noqa: PTH118 - likewise
            for value in work_trees
        )
    entry = Path(git_dir)
    try:
        text = (entry / "gitdir").read_text("utf-8").strip()
    except (OSError, ValueError):
        return False
    return (
        entry.parent.parent == Path(common_dir)
        and os.path.realpath(entry / text) == expected_git_dir
    )


def is_data(name: str, value: str, repository: Repository, context: CommandContext) -> bool:
    """Return whether a setting names no program and no file outside the session's folders."""
    rules = _rules()
    if name in rules.inside_git_dir | rules.inside_work_tree:
        base = repository.git_dir if name in rules.inside_git_dir else repository.work_tree
        return not value.startswith(("~", "%")) and context.contains(os.path.join(base, value))  # noqa: PTH118 - likewise
    return is_git_data(name, value) or any(fnmatchcase(name, pattern) for pattern in rules.harmless)
