"""Determine the names that a command passes to xargs, from the command line alone."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import Word

_NUL_OPTIONS = frozenset({"-0", "-r0", "-0r", "--null"})
_PLAIN_TEXT = re.compile(r"[\w./:=+, -]+", re.ASCII)  # without quotes and escapes
# What makes find print something else than regular files, or follow links.
_OTHER_OUTPUT = frozenset(
    {"-printf", "-fprintf", "-ls", "-fls", "-print", "-follow", "-L", "-H", "-exec", "-execdir"}
    | {"-o", "-or", ",", "!", "-not", "-ok", "-okdir", "-files0-from"}
)
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
    which stand for them: no link is followed, and with `-0` no name is split.
    """
    source = command.source
    if source is None or any(redirect.operator == "<" for redirect in command.redirects):
        return ()
    if any(redirect.writes for redirect in source.redirects):
        return ()
    name, texts = source.words[0].text if source.words else "", [w.text for w in source.words[1:]]
    if name == "echo" and all(word.fixed for word in source.words):
        text = " ".join(texts)
        return tuple(map(Word, text.split())) if _PLAIN_TEXT.fullmatch(text) else ()
    reads_nul = not _NUL_OPTIONS.isdisjoint(word.text for word in command.words)
    if name != "find" or not reads_nul or texts[-1:] != ["-print0"]:
        return ()
    if ("-type", "f") not in pairwise(texts) or not _OTHER_OUTPUT.isdisjoint(texts):
        return ()
    if texts.count("-print0") > 1:
        return ()
    starts = takewhile(lambda word: word.text[:1] not in {"-", "(", "!"}, source.words[1:])
    return (tuple(starts) or (Word("."),)) * _MANY
