"""Find the files that a command line names, for rules about reading and editing files.

This is only a guard rail: a program may open files that no word names. Only a sandbox prevents
that.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from acp_agent.permissions.classify import Classified, Finding
from acp_agent.permissions.inner_texts import sed_files
from acp_agent.permissions.listed_files import listed_paths
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.folder_reads import files_below, is_exclusion
from acp_agent.permissions.refused_commands import output_paths
from acp_agent.permissions.rules import read_only_rules, shell_rules
from acp_agent.permissions.shell.words import LISTED, NONEMPTY, UNKNOWN, Word
from acp_agent.permissions.wrapped_commands import base_name

_MAX_MATCHES = 500  # files of a pattern that are checked
_MAX_LENGTH = 4_096  # characters of a word that may be a path
_QUOTES = "'\"`"
_IN_PROGRAM = re.compile(r"[\w./~-]+")
_TEXTS = frozenset({"text", "format", "words"})  # operands of programs that print them


def mentioned_files(line: Classified, context: CommandContext, *, writes: bool) -> Iterator[str]:
    """Yield the absolute paths that a line may name, as written and with links resolved.

    Args:
        context: where it runs.
        writes: yield only the files that a command is known to write, move or delete.
    """
    for finding in line.findings:
        for word in _output_words(finding) if writes else _mentioned_words(finding):
            for folder in finding.folders or (context.cwd,):
                for path in _paths(word, folder):
                    yield path
                    real = os.path.realpath(path)
                    if real != path:
                        yield real
        if not writes and finding.parsed is not None:
            for folder in finding.folders or (context.cwd,):
                yield from files_below(finding.parsed, folder)
                if not _only_prints(finding.parsed.words):
                    for word in dict.fromkeys(finding.parsed.words):
                        if word.origin in LISTED:
                            yield from listed_paths(word, context, folder)


def _output_words(finding: Finding) -> Iterator[Word]:
    command = finding.parsed
    if command is None:
        return
    yield from (redirect.target for redirect in command.redirects if redirect.writes)
    if command.words:
        yield from output_paths(base_name(command), command.words[1:])
    if finding.tier == "destructive":
        yield from _mentioned_words(finding)


def _mentioned_words(finding: Finding) -> Iterator[Word]:
    command = finding.parsed
    if command is None:
        return
    yield from (redirect.target for redirect in command.redirects)
    if _only_prints(command.words):
        return
    languages, name = shell_rules().languages, base_name(command)
    program = name in languages.inline or name in languages.acting_texts
    yield from (Word(text) for text in sed_files(command))
    for word in command.words[1:]:
        if word.text[:1] != "-":
            yield word
            for text in _embedded_paths(word.text, program=program):
                yield Word(text, word.static)
        option, mark, value = word.text.partition("=")
        if name in languages.folder_readers and is_exclusion(option):
            continue
        if mark and option.lstrip("-").replace("-", "").isalnum():
            yield Word(value, word.static, word.pattern)
        elif word.text[:1] == "-" and word.text[1:2] != "-" and len(word.text) > 2:
            yield Word(word.text[2:], word.static, word.pattern)  # -I/path


def _embedded_paths(text: str, *, program: bool) -> Iterator[str]:
    """Yield the paths within a word: `HEAD:.env`, `file=@.env`, candidates in a program text."""
    for mark in (":", "@"):
        _, separator, tail = text.rpartition(mark)
        if separator and tail:
            yield tail
    if program and any(mark in text for mark in _QUOTES):
        yield from islice(_IN_PROGRAM.findall(text), _MAX_MATCHES)


def _only_prints(words: Sequence[Word]) -> bool:
    """Return whether a command only prints its words, so that they are not paths: `echo .env`."""
    name = words[0].text.rpartition("/")[2] if words else ""
    reader = read_only_rules().commands.get(name)
    return reader is not None and reader.operands in _TEXTS


def _paths(word: Word, folder: str) -> Iterator[str]:
    text = word.text
    if not text or len(text) > _MAX_LENGTH or NONEMPTY in text:
        return
    path = os.path.normpath(os.path.join(folder, text.replace(UNKNOWN, "")))  # noqa: PTH118 - text that need not be a path
    yield path
    if word.pattern:
        # Only a pattern that begins with a dot matches a name that begins with one.
        yield from islice(glob.iglob(path), _MAX_MATCHES)  # noqa: PTH207 - as the shell does it
