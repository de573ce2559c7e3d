"""Split a command's words into options, their values and operands, by the program's own table.

A table lists every option that the caller accepts. Whatever the table does not list makes the whole
result None, so that an option nobody has looked at is never taken for a harmless one.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_agent.permissions.words import Word


class OptionTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The options that a program may be given; each is written with its dashes.

    `flags` take no value. `values` take one, attached or as the next word, that names no file.
    `paths` likewise take the path of a file that is read. `optional` take a value only where it is
    attached (`--color=auto`). `counts` take a number, attached or as the next word, or nothing
    (`make -j 4`). `choices` take one of the values that stand behind them. `single_dash` is true
    for programs whose options are words with one dash (`find -name`): then nothing is a cluster of
    letters. `numbers` allows `-5`. `stop_at_operand` is true where everything after the first
    operand is an operand.
    """

    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()
    choices: dict[str, frozenset[str]] = {}
    single_dash: bool = False
    numbers: bool = False
    stop_at_operand: bool = False

    def takes(self, name: str, value: str) -> bool:
        """Whether an option may have this value attached to it."""
        if name in self.counts:
            return value.isdecimal()
        if name in self.choices:
            return value in self.choices[name]
        return name in self.values | self.paths | self.optional


class Option(Struct, frozen=True):
    """An option as the table spells it, and its value where it has one."""

    name: str
    value: Word | None = None


class Arguments(Struct, frozen=True):
    """The options and operands of a command, in their order; `paths` are values that name files."""

    options: tuple[Option, ...]
    operands: tuple[Word, ...]
    paths: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        """Whether any of the options is there."""
        return any(option.name in names for option in self.options)


def parse_arguments(words: Sequence[Word], table: OptionTable) -> Arguments | None:
    """Return the arguments behind a program's name, or None where the table does not cover them.

    A single dash is an operand (POSIX.1-2017, XBD 12.2, guideline 13), and everything behind `--`
    is one. Long options must be written out: an abbreviation may mean another option elsewhere.
    None is also returned for words that are only known when the command runs, and for patterns
    that may match a file whose name begins with a dash.
    """
    options: list[Option] = []
    operands: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.static or (word.pattern and word.text[:1] in "-*?["):
            return None
        if word.text == "--":
            operands += rest
            break
        if word.text == "-" or not word.text.startswith("-"):
            operands.append(word)
            if table.stop_at_operand:
                operands += rest
                break
            continue
        found = None if word.pattern else _options_in(word.text, rest, table)
        if found is None:
            return None
        options += found
    if not all(word.static for word in operands):
        return None
    paths = tuple(o.value for o in options if o.value is not None and o.name in table.paths)
    return Arguments(tuple(options), tuple(operands), paths)


def _options_in(text: str, rest: list[Word], table: OptionTable) -> list[Option] | None:
    """The options in one word; takes the value from `rest` where it is the next word."""
    if table.numbers and text[1:].isdigit():
        return [Option(text)]
    if text.startswith("--") or table.single_dash:
        name, mark, value = text.partition("=")
        if mark:
            return [Option(name, Word(value))] if table.takes(name, value) else None
        return _option(name, rest, table)
    found: list[Option] = []
    for at in range(1, len(text)):
        name, attached = f"-{text[at]}", text[at + 1 :]
        if attached and table.takes(name, attached):
            return [*found, Option(name, Word(attached))]
        if attached and name not in table.flags:
            return None
        one = _option(name, rest, table)
        if one is None:
            return None
        found += one
    return found


def _option(name: str, rest: list[Word], table: OptionTable) -> list[Option] | None:
    if name in table.flags | table.optional:
        return [Option(name)]
    following = rest[0] if rest and rest[0].fixed else None
    if following is None or not table.takes(name, following.text):
        return [Option(name)] if name in table.counts else None
    return [Option(name, rest.pop(0))]
