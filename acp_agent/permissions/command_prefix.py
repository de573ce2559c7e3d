"""The leading words of a command that say what it does: what an "always" is about."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from msgspec import Struct, convert

from acp_agent.permissions.rules import option_matches, read_only_rules
from acp_agent.permissions.shell_syntax import Command
from acp_agent.permissions.words import Word


class _Names(Struct, frozen=True, forbid_unknown_fields=True):
    heads: tuple[tuple[str, ...], ...]
    interpreters: frozenset[str]
    modules: frozenset[str]
    never: frozenset[str]
    unsafe: tuple[str, ...]
    clusters: frozenset[str]
    settable: frozenset[str]


class _Prefixes(Struct, frozen=True, forbid_unknown_fields=True):
    depth: dict[str, int]
    names: _Names


@cache
def _prefixes() -> _Prefixes:
    text = (files(__package__) / "command_prefixes.toml").read_text("utf-8")
    return convert(tomllib.loads(text), _Prefixes)


def names_what_it_runs(command: Command) -> bool:
    """Whether a command that runs another names it in its first words: `uv run pytest`."""
    return _head(command.words) is not None


def prefix_of(command: Command) -> tuple[str, ...] | None:
    """The words that name what `command` does; None where an "always" would say too little.

    That is so for programs that can do anything, for program text on the command line, for words
    that only the run will show, and where an option stands before the subcommand.
    """
    return _prefix(command.words)


def _prefix(words: Sequence[Word]) -> tuple[str, ...] | None:
    if not words or not words[0].fixed or words[0].text[:1] in {"-", "+", ""}:
        return None
    names = _prefixes().names
    head = _head(words)
    if head is not None:
        named = _prefix(words[len(head) :])
        return None if named is None else head + named
    program = words[0].text
    if "=" in program or not all(word.text.isprintable() for word in words[:2]):
        return None  # a button must show on one line what it is about
    if program in names.interpreters:
        return _script(words)
    count = 1
    while True:
        here = tuple(word.text for word in words[:count])
        if " ".join(here) in names.never or " ".join(here) in read_only_rules().commands:
            return None  # a reader that is asked about reads what is not the project's
        more = _prefixes().depth.get(" ".join(here))
        if more is None:
            more = 1 if count == 1 and len(words) > 1 and _is_name(words[1]) else 0
        if not more:
            return here
        following = words[count : count + more]
        if len(following) < more or not all(_is_name(word) for word in following):
            return None
        count += more


def _head(words: Sequence[Word]) -> tuple[str, ...] | None:
    texts = tuple(word.text for word in words[:3])
    return next((h for h in _prefixes().names.heads if texts[: len(h)] == h), None)


def _script(words: Sequence[Word]) -> tuple[str, ...] | None:
    texts = [word.text for word in words[:3]]
    if len(words) > 2 and texts[1] == "-m" and texts[0] in _prefixes().names.modules:
        return tuple(texts) if words[2].fixed and _is_name(words[2]) else None
    if len(words) > 1 and words[1].fixed and texts[1][:1] not in {"-", "+", ""}:
        return texts[0], texts[1]
    return None


def _is_name(word: Word) -> bool:
    text = word.text
    return word.fixed and text[:1].isalnum() and not set(text) - _NAME and text.isascii()


_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:.@")


def keeps_to_its_name(command: Command, prefix: Sequence[str]) -> bool:
    """Whether the words behind `prefix` are certain, and none makes the command do another thing.

    A pattern is certain enough where it cannot become an option.
    """
    names = _prefixes().names
    program = prefix[0]
    for word in command.words[len(prefix) :]:
        if not word.static or (word.pattern and not word.text[:1].isalnum()):
            return False
        if any(_is_unsafe(word.text, option, program) for option in names.unsafe):
            return False
        if program in names.settable and "=" in word.text and not word.text.startswith("-"):
            return False
    return True


def _is_unsafe(text: str, option: str, program: str) -> bool:
    if text.partition("=")[0] == option:
        return True
    if option.startswith("--"):
        return text.startswith("--") and option_matches(text, option)
    if program not in _prefixes().names.clusters:
        return False
    return len(option) == 2 and text.startswith("-") and option_matches(text, option)
