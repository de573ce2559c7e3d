"""Split a command's words into options, their values and operands, by the program's own table.

A table lists every option that the caller accepts. Whatever the table does not list makes the whole
result None, so that an option nobody has looked at is never taken for a harmless one.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_agent.permissions.shell.words import Word


class OptionTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The options that a program may be given; each is written with its dashes.

    `flags` take no value. `values` take one, attached or as the next word, that names no file.
    `paths` likewise take the path of a file that is read. `optional` take a value only where it is
    attached (`--color=auto`); where they are among `values` as well, the last word of all needs
    none. `attached` take one behind `=` only. `counts` take a number, attached or as the next word,
    or nothing (`make -j 4`). `choices` take one of the values that stand behind them. `pairs` take
    the next two words. `either` are flags that take a value in another version of the program.
    `single_dash` is true for programs
    whose options are words with one dash (`find -name`): then nothing is a cluster of letters, and
    only to an option with one letter among `optional` may a value be attached. `numbers` allows
    `-5`. `value_patterns` allows a pattern as the next word that is a value. `stop_at_operand` is
    true where everything after the first operand is an operand.
    """

    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    attached: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()
    choices: dict[str, frozenset[str]] = {}
    pairs: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    single_dash: bool = False
    numbers: bool = False
    value_patterns: bool = False
    stop_at_operand: bool = False

    def takes(self, name: str, value: str) -> bool:
        """Whether an option may have this value attached to it."""
        if name in self.counts:
            return value.isdecimal()
        if name in self.choices:
            return value in self.choices[name]
        return name in self.values | self.paths | self.optional


class Option(Struct, frozen=True):
    """An option as the table spells it, and its value where it has one (of a pair the second)."""

    name: str
    value: Word | None = None


class Arguments(Struct, frozen=True):
    """The options and operands of a command, in their order; `paths` are values that name files.

    `doubtful` are further words that another version of the program may take for operands: those
    behind the first operand, where some stop looking for options, and behind an `either`.
    """

    options: tuple[Option, ...]
    operands: tuple[Word, ...]
    paths: tuple[Word, ...]
    doubtful: tuple[Word, ...] = ()

    def has(self, *names: str) -> bool:
        """Whether any of the options is there."""
        return any(option.name in names for option in self.options)


def parse_arguments(
    words: Sequence[Word], table: OptionTable, *, patterns: bool = False
) -> Arguments | None:
    """Return the arguments behind a program's name, or None where the table does not cover them.

    A single dash is an operand (POSIX.1-2017, XBD 12.2, guideline 13), and everything behind `--`
    is one. Long options must be written out: an abbreviation may mean another option elsewhere.
    None is also returned for words that are only known when the command runs, and for patterns
    that may match a file whose name begins with a dash. With `patterns` these are accepted, as
    operands and as attached values; the caller makes sure that no operand matches such a name.
    """
    options: list[Option] = []
    operands: list[Word] = []
    doubtful: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.static or (word.pattern and word.text[:1] in "-*?[" and not patterns):
            return None
        if word.text == "--":
            operands += rest
            break
        if word.text == "-" or not word.text.startswith("-"):
            if not operands and not table.single_dash:
                doubtful += rest
            operands.append(word)
            if table.stop_at_operand:
                operands += rest
                break
            continue
        left = len(rest)
        found = _options_in(word, rest, table)
        if found is None:
            return None
        options += found
        if any(option.name in table.either for option in found):
            doubtful += rest
        if len(rest) < left and (value := found[-1].value) and value.pattern:
            doubtful.append(value)  # it may be several words
    if not all(word.static for word in operands):
        return None
    paths = tuple(o.value for o in options if o.value is not None and o.name in table.paths)
    return Arguments(tuple(options), tuple(operands), paths, tuple(doubtful))


def _options_in(word: Word, rest: list[Word], table: OptionTable) -> list[Option] | None:
    """The options in one word; takes the value from `rest` where it is the next word."""
    text = word.text
    if table.numbers and text[1:].isdigit():
        return [Option(text)]
    if text.startswith("--") or table.single_dash:
        name, mark, value = text.partition("=")
        if mark and (name in table.attached or table.takes(name, value)):
            return _attached(name, value, word, table)
        if text[:2] in table.optional and not text.startswith("--") and len(text) > 2:
            exact = None if word.pattern else _option(text, rest, table)
            return exact or _attached(text[:2], text[2:], word, table)
        return None if mark or word.pattern else _option(text, rest, table)
    found: list[Option] = []
    for at in range(1, len(text)):
        name, value = f"-{text[at]}", text[at + 1 :]
        if value and table.takes(name, value):
            last = _attached(name, value, word, table)
            return None if last is None else found + last
        if value and name not in table.flags:
            return None
        one = _option(name, rest, table)
        if one is None:
            return None
        found += one
    return None if word.pattern else found


def _attached(name: str, value: str, word: Word, table: OptionTable) -> list[Option] | None:
    """An option with the value attached; whatever a pattern matches is a value of it as well."""
    if word.pattern and (name in table.paths or set(name) & set("*?[")):
        return None
    return [Option(name, Word(value, pattern=word.pattern))]


def _option(name: str, rest: list[Word], table: OptionTable) -> list[Option] | None:
    if name in table.flags:
        return [Option(name)]
    separate = table.values | table.paths | table.counts | table.choices.keys()
    following = rest[0] if rest and _is_value(rest[0], table) else None
    if following is not None and name in separate and table.takes(name, following.text):
        return [Option(name, rest.pop(0))]
    if name in table.pairs and len(rest) > 1 and rest[0].fixed and rest[1].fixed:
        rest.pop(0)
        return [Option(name, rest.pop(0))]
    return [Option(name)] if name in table.optional | table.counts else None


def _is_value(word: Word, table: OptionTable) -> bool:
    return word.fixed or (table.value_patterns and word.static)
