"""The tables of command_grants.toml, and the lookup of a command's name in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from msgspec import Struct

from acp_agent.permissions.arguments import OptionTable
from acp_agent.permissions.rules import read_only_rules
from acp_agent.permissions.shell.words import Word
from acp_agent.platform.data_tables import read_table


class GrantTable(OptionTable, frozen=True, forbid_unknown_fields=True):
    """The arguments that a grant covers; the fields are described in the data file."""

    bound: frozenset[str] = frozenset()
    queries: frozenset[str] = frozenset()
    operands: tuple[str, ...] = ()
    tail: GrantTable | None = None
    mentions: bool = False

    def options(self) -> OptionTable:
        """Return the table of all options, including those that are part of the grant.

        An option in both `flags` and `bound` takes no value and becomes part of the grant by
        itself.
        """
        return OptionTable(
            flags=self.flags,
            values=self.values | self.queries | (self.bound - self.flags),
            paths=self.paths,
            optional=self.optional,
            counts=self.counts,
            choices=self.choices,
            single_dash=self.single_dash,
        )


class _Names(Struct, frozen=True, forbid_unknown_fields=True):
    folders: frozenset[str]
    heads: tuple[tuple[str, ...], ...]
    fetching_heads: tuple[tuple[str, ...], ...]
    interpreters: frozenset[str]
    installs: frozenset[str]
    install_words: frozenset[str]
    never: frozenset[str]


class _Grants(Struct, frozen=True, forbid_unknown_fields=True):
    same: dict[str, str]
    names: _Names
    shapes: dict[str, str]
    tables: dict[str, GrantTable]


class NameMatch(Struct, frozen=True):
    """The name that matched a command, the number of its words, and the kind of match."""

    name: str
    count: int
    kind: Literal["table", "installs", "never"]


@cache
def grant_tables() -> _Grants:
    """Return the parsed command_grants.toml."""
    return read_table(__package__, "command_grants.toml", _Grants)


def find_name(words: Sequence[Word]) -> NameMatch | None:
    """Return the longest known name that the words begin with."""
    tables = grant_tables()
    texts, dropped = _canonical(words)
    program = texts[0] if texts else ""
    base = program_name(program)
    for count in range(min(4, len(texts)), 0, -1):
        if not all(word.fixed for word in words[: count + dropped]):
            continue
        name = " ".join(texts[:count])
        if name in tables.tables:
            return NameMatch(name, count + dropped, "table")
        for candidate in (name, " ".join([base, *texts[1:count]])):
            if candidate in tables.names.never or candidate in read_only_rules().commands:
                return NameMatch(candidate, count + dropped, "never")  # reads, but not in this form
            if candidate in tables.names.installs:
                return NameMatch(candidate, count + dropped, "installs")
    return None


def _canonical(words: Sequence[Word]) -> tuple[list[str], int]:
    """Return the words with canonical names, and by how many words the result is shorter."""
    texts = [word.text for word in words[:4]]
    folder, _, name = texts[0].rpartition("/") if texts else ("", "", "")
    if folder in grant_tables().names.folders:
        texts[0] = name
    for count in (2, 1):
        canonical = grant_tables().same.get(" ".join(texts[:count]))
        if canonical is not None:
            canonical_words = canonical.split()
            return [*canonical_words, *texts[count:]], count - len(canonical_words)
    if texts and "/" not in texts[0] and texts[0] not in _programs():
        texts[0] = program_name(texts[0])
    return texts, 0


@cache
def _programs() -> frozenset[str]:
    """Return the programs that have a table."""
    return frozenset(name.partition(" ")[0] for name in grant_tables().tables)


def program_name(program: str) -> str:
    """Return a program's name without folder and version: `python` for `/usr/bin/python3.12`."""
    name = program.rpartition("/")[2]
    return re.sub(r"(?<=[a-z])-?[\d.]+$", "", name)


def launcher_words(words: Sequence[Word]) -> tuple[str, ...]:
    """Return the leading words that run the program after them, or () if there are none."""
    if not words or not words[0].fixed:
        return ()
    names = grant_tables().names
    texts, _ = _canonical(words)
    for head in (*names.heads, *names.fetching_heads):
        following = words[len(head)] if len(words) > len(head) else Word("-")
        if tuple(texts[: len(head)]) == head and following.fixed:
            return head if following.text[:1] not in {"-", "+", ""} else ()
    return ()
