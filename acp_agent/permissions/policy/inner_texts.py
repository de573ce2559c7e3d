"""The commands within the words of programs that run them elsewhere, or from a script of their own.

For rules that refuse and ask: what `docker run`, `kubectl exec`, awk and sed are told to run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from acp_agent.permissions.rules import shell_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.wrapped_commands import base_name

_LONGEST = 4_000  # characters of a word that are looked at
_CONTAINER_VERBS = frozenset({"run", "exec", "create"})
_GROUPS = frozenset({"container", "compose"})
_AFTER_DASHES = frozenset({"kubectl", "oc", "k3s"})
_LETTERS = "[dDitqPT]"  # options without a value
_TAKES_VALUE = re.compile(rf"--[^=]+|-{_LETTERS}*(?!{_LETTERS})[a-zA-Z]")

_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_STRING = r'"((?:[^"\\]|\\.)*)"'
_AWK_RUNS = re.compile(rf"system\s*\(\s*{_STRING}|{_STRING}\s*\|&?\s*getline|\|&?\s*{_STRING}")
_SEDS = frozenset({"sed", "gsed"})
_SED_RUNS = re.compile(r"(?:^|[\s;{}!$/,\d])e[ \t]+([^\n]+)")
_SED_REPLACES = re.compile(
    r"s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1((?:\\.|(?!\1)[^\\])*)\1[gpiImM\d]*e", re.DOTALL
)
_SED_FILES = re.compile(r"(?:^|[\s;{}!$/,\dgp])[rRwW][ \t]*([^\s;}]+)")


def inner_texts(command: Command) -> Iterator[str]:
    """Yield the command lines that a command's words have in them."""
    name, words = base_name(command), [word.text[:_LONGEST] for word in command.words[1:]]
    if name in shell_rules().languages.containers:
        yield from _in_container(words)
    elif name in _AFTER_DASHES and "exec" in words and "--" in words:
        yield shlex.join(words[words.index("--") + 1 :])
    elif name in _AWKS:
        for found in (each for word in words for each in _AWK_RUNS.finditer(word)):
            text = next(part for part in found.groups() if part is not None)
            yield re.sub(r"\\(.)", r"\1", text)
    elif name in _SEDS:
        for word in words:
            yield from (found[1] for found in _SED_RUNS.finditer(word))
            yield from (found[2] for found in _SED_REPLACES.finditer(word))


def sed_files(command: Command) -> Iterator[str]:
    """Yield the files that the scripts of a sed command may read or write."""
    if base_name(command) in _SEDS:
        for word in command.words[1:]:
            yield from _SED_FILES.findall(word.text[:_LONGEST])


def _in_container(words: Sequence[str]) -> Iterator[str]:
    flags = shell_rules().languages.container_flags
    verb = ""
    program: list[str] = []
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif word[:1] == "-" and len(word) > 1:
            if word == "--entrypoint" and at + 1 < len(words):
                program = [words[at + 1]]
            elif word.startswith("--entrypoint="):
                program = [word.partition("=")[2]]
            skip = word not in flags and _TAKES_VALUE.fullmatch(word) is not None
        elif not verb and word in _GROUPS:
            pass
        elif not verb and word not in _CONTAINER_VERBS:
            return
        elif verb:  # the image or the container, and then what runs in it
            yield shlex.join([*program, *words[at + 1 :]])
            return
        else:
            verb = word
