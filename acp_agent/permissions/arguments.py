"""Split a command's words into options, values and operands, using the program's option table.

A table lists every option that the caller accepts. Any option that the table does not list makes
the whole result None, so an unknown option is never treated as harmless.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_agent.permissions.shell.words import Word


class OptionTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The options that a program accepts; each is written with its dashes.

    `flags` take no value. `values` take a value that names no file, attached or as the next word.
    `paths` take the path of a file to read, in the same two ways. `optional` take a value only if
    it is attached (`--color=auto`); an option that is also in `values` needs no value if it is the
    last word. `attached` take a value only after `=`. `counts` take a number, attached or as the
    next word, or nothing (`make -j 4`). `choices` maps an option to its permitted values. `pairs`
    take the next two words. `either` are flags that take a value in another version of the program.

    `single_dash` is true for programs whose options are words with one dash (`find -name`): no word
    is a cluster of letters, and a value may be attached only to a one-letter option in `optional`.
    `numbers` allows `-5`. `value_patterns` allows a pattern as the next word that is a value.
    `stop_at_operand` is true if everything after the first operand is an operand.
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
        """Return whether this value may be attached to an option."""
        if name in self.counts:
            return value.isdecimal()
        if name in self.choices:
            return value in self.choices[name]
        return name in self.values | self.paths | self.optional


class Option(Struct, frozen=True):
    """An option as the table spells it, and its value if it has one (the second of a pair)."""

    name: str
    value: Word | None = None


class Arguments(Struct, frozen=True):
    """The options and operands of a command, in order; `paths` are the values that name files.

    `ambiguous` are words that another version of the program may take as operands: those after the
    first operand (some versions stop parsing options there) and those after an `either` option.
    """

    options: tuple[Option, ...]
    operands: tuple[Word, ...]
    paths: tuple[Word, ...]
    ambiguous: tuple[Word, ...] = ()

    def has(self, *names: str) -> bool:
        """Return whether any of the options is present."""
        return any(option.name in names for option in self.options)


def parse_arguments(
    words: Sequence[Word], table: OptionTable, *, patterns: bool = False
) -> Arguments | None:
    """Return the arguments after a program's name, or None if the table does not cover them.

    A single dash is an operand (POSIX.1-2017, XBD 12.2, guideline 13), and so is everything after
    `--`. Long options must be written in full, because an abbreviation may mean another option in
    another version. None is also returned for words that are only known when the command runs, and
    for patterns that may match a file whose name begins with a dash. With `patterns` these patterns
    are accepted as operands and attached values; the caller ensures that no operand matches such a
    name.
    """
    options: list[Option] = []
    operands: list[Word] = []
    ambiguous: list[Word] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if not word.static or (word.pattern and word.text[:1] in "-*?[" and not patterns):
            return None
        if word.text == "--":
            operands += remaining
            break
        if word.text == "-" or not word.text.startswith("-"):
            if not operands and not table.single_dash:
                ambiguous += remaining
            operands.append(word)
            if table.stop_at_operand:
                operands += remaining
                break
            continue
        remaining_count = len(remaining)
        parsed = _parse_option_word(word, remaining, table)
        if parsed is None:
            return None
        options += parsed
        if any(option.name in table.either for option in parsed):
            ambiguous += remaining
        if len(remaining) < remaining_count and (value := parsed[-1].value) and value.pattern:
            ambiguous.append(value)  # it may expand to several words
    if not all(word.static for word in operands):
        return None
    paths = tuple(o.value for o in options if o.value is not None and o.name in table.paths)
    return Arguments(tuple(options), tuple(operands), paths, tuple(ambiguous))


def _parse_option_word(
    word: Word, remaining: list[Word], table: OptionTable
) -> list[Option] | None:
    """Return the options in one word; remove a value from `remaining` if it is the next word."""
    text = word.text
    if table.numbers and text[1:].isdigit():
        return [Option(text)]
    if text.startswith("--") or table.single_dash:
        name, mark, value = text.partition("=")
        if mark and (name in table.attached or table.takes(name, value)):
            return _attached_option(name, value, word, table)
        if text[:2] in table.optional and not text.startswith("--") and len(text) > 2:
            exact = None if word.pattern else _parse_option(text, remaining, table)
            return exact or _attached_option(text[:2], text[2:], word, table)
        return None if mark or word.pattern else _parse_option(text, remaining, table)
    options: list[Option] = []
    for index in range(1, len(text)):
        name, value = f"-{text[index]}", text[index + 1 :]
        if value and table.takes(name, value):
            attached = _attached_option(name, value, word, table)
            return None if attached is None else options + attached
        if value and name not in table.flags:
            return None
        parsed = _parse_option(name, remaining, table)
        if parsed is None:
            return None
        options += parsed
    return None if word.pattern else options


def _attached_option(name: str, value: str, word: Word, table: OptionTable) -> list[Option] | None:
    """Return an option with its attached value; None if a pattern may match more than a value."""
    if word.pattern and (name in table.paths or set(name) & set("*?[")):
        return None
    return [Option(name, Word(value, pattern=word.pattern))]


def _parse_option(name: str, remaining: list[Word], table: OptionTable) -> list[Option] | None:
    if name in table.flags:
        return [Option(name)]
    separate = table.values | table.paths | table.counts | table.choices.keys()
    following = remaining[0] if remaining and _is_value(remaining[0], table) else None
    if following is not None and name in separate and table.takes(name, following.text):
        return [Option(name, remaining.pop(0))]
    if name in table.pairs and len(remaining) > 1 and remaining[0].fixed and remaining[1].fixed:
        remaining.pop(0)
        return [Option(name, remaining.pop(0))]
    return [Option(name)] if name in table.optional | table.counts else None


def _is_value(word: Word, table: OptionTable) -> bool:
    return word.fixed or (table.value_patterns and word.static)
