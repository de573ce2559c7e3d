"""Which words of a command name the files that it writes or replaces."""

from __future__ import annotations

import os
from collections.abc import Sequence

from acp_agent.permissions.rules import has_option, operands, option_matches, shell_rules
from acp_agent.permissions.words import Word

_TAR = frozenset({"tar", "gtar", "bsdtar"})
_TAR_VALUES = frozenset("bCfFgHIKLNTVX")  # letters that take a word each, in the letters' order
_NEW_BRANCH = ("-b", "-B", "-t", "--track", "--orphan", "-d", "--detach")


def written_words(name: str, words: Sequence[Word]) -> list[Word]:
    """The paths that a program writes to, as far as its name tells."""
    writers = shell_rules().writers
    words = spelled_out(name, words)
    paths = [word for word in words if not word.text.startswith("-")]
    options = writers.output_options.get(name, ())
    found: list[Word] = []
    if name in writers.last:
        options = (*options, *writers.target_options)
        found += paths[-1:]
    elif name in writers.all:
        found += paths
    for word, following in zip(words, [*words[1:], Word(".")], strict=False):
        for option in options:
            text = word.text
            if text == option:
                found.append(following)
            elif not option_matches(text, option):
                continue
            elif len(option) > 2:
                found.append(
                    Word(text.partition("=")[2], word.static) if "=" in text else following
                )
            else:  # in a cluster: what follows its letter belongs to it
                attached = text[1:].partition(option[1])[2]
                found.append(Word(attached, word.static) if attached else following)
    return found


def spelled_out(name: str, words: Sequence[Word]) -> Sequence[Word]:
    """The words of a `tar xfC a /opt` as `-x -f a -C /opt`; any other's as they are."""
    if name not in _TAR or not words or words[0].text.startswith("-"):
        return words
    letters, *rest = words
    found: list[Word] = []
    for letter in letters.text:
        found.append(Word(f"-{letter}", letters.static))
        if letter in _TAR_VALUES and rest:
            found.append(rest.pop(0))
    return [*found, *rest]


def throws_files_away(texts: Sequence[str], folders: Sequence[str]) -> bool:
    """Whether `git` with these words checks files out over what they hold: `git checkout main x`.

    One name alone is a file's if there is such a file in any of `folders`, else a branch's.
    """
    subcommand, *names = operands(texts, shell_rules().globals["git"]) or [""]
    if subcommand != "checkout" or has_option(texts, _NEW_BRANCH):
        return False
    paths = (os.path.join(folder, name) for folder in folders for name in names)  # noqa: PTH118 - text that need not be a path
    return len(names) > 1 or any(map(os.path.lexists, paths))
