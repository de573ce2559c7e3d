"""Determine the names that a command passes to xargs, from the command line alone."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import Word

_NUL_OPTIONS = frozenset({"-0", "-r0", "-0r", "--null"})
_REPLACE_OPTION = re.compile(r"-[0rtx]*I(.*)")
_PLAIN_TEXT = re.compile(r"[\w./:=+, -]+", re.ASCII)  # without quotes and escapes
# What makes find print something else than regular files, or follow links.
_OTHER_OUTPUT = frozenset(
    {"-printf", "-fprintf", "-ls", "-fls", "-print", "-follow", "-L", "-H", "-exec", "-execdir"}
    | {"-o", "-or", ",", "!", "-not", "-ok", "-okdir", "-files0-from"}
)
# Commands that pass on some of their lines: their options, and the number of their operands.
_SELECTORS: dict[str, tuple[str, int]] = {
    "grep": ("-[vEFiwxP]+", 1),
    "head": ("-n?[0-9]+", 0),
    "tail": ("-n?[0-9]+", 0),
    "sort": ("-[ru]+", 0),
    "uniq": ("-[du]", 0),
}
_MANY = 5  # more than any program with a limited number of operands takes


def appended_words(command: Command) -> tuple[Word, ...]:
    """Return the words that xargs appends, as far as they are known."""
    if command.stdin is not None:
        guess = tuple(Word(text, static=False) for text in command.stdin.text.split())
        return piped_names(command) or guess
    return piped_names(command) or (Word("…", static=False),)


def piped_names(command: Command) -> tuple[Word, ...]:
    """Return words that stand for all that `command` reads from the pipe; empty if uncertain.

    `echo` passes its words. `find -type f -print0` passes regular files below its starting points,
    which stand for them: no link is followed, and with `-0` no name is split. `git ls-files` passes
    tracked files, also through commands that select some of its lines.
    """
    source = command.source
    if source is None or any(redirect.operator == "<" for redirect in command.redirects):
        return ()
    if any(redirect.writes for redirect in source.redirects) or _builds_names(command):
        return ()
    name, texts = source.words[0].text if source.words else "", [w.text for w in source.words[1:]]
    reads_nul = not _NUL_OPTIONS.isdisjoint(word.text for word in command.words)
    if name == "echo" and all(word.fixed for word in source.words):
        text = " ".join(texts)
        return tuple(map(Word, text.split())) if _PLAIN_TEXT.fullmatch(text) else ()
    tracked = _tracked_names(source, reads_nul=reads_nul)
    if tracked is not None:
        return (tracked,) * _MANY
    if name != "find" or not reads_nul or texts[-1:] != ["-print0"]:
        return ()
    if ("-type", "f") not in pairwise(texts) or not _OTHER_OUTPUT.isdisjoint(texts):
        return ()
    if texts.count("-print0") > 1:
        return ()
    starts = takewhile(lambda word: word.text[:1] not in {"-", "(", "!"}, source.words[1:])
    return (tuple(starts) or (Word("."),)) * _MANY


def _builds_names(command: Command) -> bool:
    """Return whether xargs puts what it reads into longer words: `xargs -I% cat folder/%`."""
    texts = [word.text for word in command.words]
    for option, following in pairwise([*texts, ""]):
        match = _REPLACE_OPTION.fullmatch(option)
        if match is not None:
            mark = match[1] or following
            return any(mark in text and text not in {mark, option} for text in texts)
    return False


def _tracked_names(source: Command, *, reads_nul: bool) -> Word | None:
    """Return a word for the tracked files that a command passes on; None if it passes others."""
    current: Command | None = source
    while current is not None and _selects_lines(current) and not reads_nul:
        current = current.source
    if current is None or any(redirect.writes for redirect in current.redirects):
        return None
    texts = [word.text for word in current.words]
    if texts[:2] != ["git", "ls-files"] or current.assignments:
        return None
    options = {text for text in texts[2:] if text[:1] == "-"}
    if not options <= {"--", "-c", "--cached", "-z"} or reads_nul != ("-z" in options):
        return None
    return Word("…", static=False, origin="tracked_nul" if reads_nul else "tracked")


def _selects_lines(command: Command) -> bool:
    """Return whether a command passes on some of the lines of its input, unchanged."""
    if not command.words or command.redirects or command.assignments:
        return False
    name, texts = command.words[0].text, [word.text for word in command.words[1:]]
    options, operand_count = _SELECTORS.get(name, (None, 0))
    if options is None or not all(word.fixed for word in command.words):
        return False
    operands = [text for text in texts if not re.fullmatch(options, text)]
    return len(operands) <= operand_count and not any(text[:1] == "-" for text in operands)
