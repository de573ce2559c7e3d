"""Load the rules about commands from the data files in this folder, at the first use."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import cache
from importlib.resources import files
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from acp_agent.permissions.access import Tier
from acp_agent.permissions.arguments import OptionTable
from acp_agent.platform.decoding import convert

# Fields that the data files give as one text, with blanks between the items.
_OPTION_LISTS = ("flags", "values", "paths", "optional", "attached", "pairs", "either")
_LISTS = (
    *_OPTION_LISTS,
    "listing",
    "pattern_options",
    "pattern_words",
    "requires",
    "started_programs",
    "unset_variables",
)


class Wrapper(Struct, frozen=True, forbid_unknown_fields=True):
    """A program that runs another program; the fields are described in the data file."""

    programs: frozenset[str]
    subcommand: tuple[str, ...] = ()
    value_options: tuple[str, ...] = ()
    text_options: tuple[str, ...] = ()
    text_programs: frozenset[str] = frozenset()
    text_only: bool = False
    no_run_options: tuple[str, ...] = ()
    options: dict[str, OptionTable] = {}
    folder_options: tuple[str, ...] = ()
    leading: dict[str, int] = {}
    skip_words: tuple[str, ...] = ()
    ends_at: tuple[str, ...] = ()
    joined: bool = False
    assignments: bool = False
    appends_input: bool = False
    shells: frozenset[str] = frozenset()
    tier: Tier = "standard"
    why: str = ""


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """A destructive use of a program: any of the options, or any of the words.

    Not destructive with one of the options in `unless`.
    """

    programs: frozenset[str]
    why: str
    subcommand: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    word_prefixes: tuple[str, ...] = ()


class GitSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of names and values of git's settings that make it run something."""

    names: str
    values: str
    why: str


class Subcommands(Struct, frozen=True, forbid_unknown_fields=True):
    """Subcommands that destroy or publish, whatever the program; see shell_rules.toml."""

    harmless: frozenset[str]
    deleting: frozenset[str]
    publishing: frozenset[str]
    phrases: str
    options: frozenset[str]


class FolderReader(Struct, frozen=True, forbid_unknown_fields=True):
    """How a program reads folders; see shell_rules.toml."""

    when: tuple[str, ...] | None = None
    hidden: tuple[str, ...] | None = None
    reads_current_folder: bool = False


class DestructiveProgram(Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern that marks a program text, or a database statement, as destructive."""

    text: str
    why: str
    databases: bool = False


class Languages(Struct, frozen=True, forbid_unknown_fields=True):
    """Shells, interpreters with inline programs, and options that take commands."""

    shells: frozenset[str]
    shell_value_options: tuple[str, ...]
    command_options: tuple[str, ...]
    setting_options: tuple[str, ...]
    own_command_options: dict[str, tuple[str, ...]]
    inline: dict[str, tuple[str, ...]]
    containers: frozenset[str]
    container_flags: frozenset[str]
    folder_readers: dict[str, FolderReader]
    acting_texts: dict[str, str]
    databases: frozenset[str]
    shell_escapes: frozenset[str]
    program_variables: dict[str, str]
    destructive_programs: tuple[DestructiveProgram, ...]


class Refused(Struct, frozen=True, forbid_unknown_fields=True):
    """Programs, disks, files and folders for which commands are refused in every mode."""

    programs: frozenset[str]
    program_prefixes: tuple[str, ...]
    power: dict[str, frozenset[str]]
    disk_writers: frozenset[str]
    disk_readers: tuple[str, ...]
    disks: tuple[str, ...]
    files: frozenset[str]
    folders: frozenset[str]
    trees: tuple[str, ...]
    tree_exceptions: tuple[str, ...]
    deleters: dict[str, tuple[str, ...]]


class Writers(Struct, frozen=True, forbid_unknown_fields=True):
    """Programs that write to the paths in their arguments."""

    last: frozenset[str]
    all: frozenset[str]
    target_options: tuple[str, ...]
    output_options: dict[str, tuple[str, ...]]
    scratch: tuple[str, ...]
    harmless: frozenset[str]


class ShellRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The parsed shell_rules.toml."""

    wrappers: tuple[Wrapper, ...]
    languages: Languages
    refused: Refused
    rules: tuple[Rule, ...]
    writers: Writers
    git_settings: GitSettings
    subcommands: Subcommands
    globals: dict[str, tuple[str, ...]]


class Reader(OptionTable, frozen=True, forbid_unknown_fields=True):
    """How a read-only command may be used; the fields are described in the data file."""

    shared_tables: tuple[str, ...] = ()
    operands: Literal[
        "paths",
        "files",
        "text",
        "pattern",
        "script",
        "awk",
        "format",
        "words",
        "test",
        "public",
        "variables",
    ] = "paths"
    max_operands: int | None = None
    min_operands: int = 0
    existing: bool = False
    listing: frozenset[str] = frozenset()
    operand_start: str = ""
    pattern_options: frozenset[str] = frozenset()
    pattern_words: frozenset[str] = frozenset()
    pattern_is_path: bool = False
    forbidden: tuple[str, ...] = ()
    requires: frozenset[str] = frozenset()
    started_programs: tuple[str, ...] = ()
    unset_variables: tuple[str, ...] = ()
    operand_form: str = ""
    input: str = ""
    value_forms: dict[str, str] = field(default_factory=dict)

    def merge_shared(self, shared: Mapping[str, Reader]) -> Reader:
        """Return this row with the options, and missing fields, of the shared rows that it uses."""
        row = self
        for name in self.shared_tables:
            shared_row = shared[name].merge_shared(shared)
            changes: dict[str, object] = {}
            for key in self.__struct_fields__:
                value, shared_value = getattr(row, key), getattr(shared_row, key)
                if key in _OPTION_LISTS:
                    changes[key] = value | shared_value
                elif value == getattr(_EMPTY_READER, key):
                    changes[key] = shared_value
            row = replace(row, **changes)
        return row


_EMPTY_READER = Reader()


class ReadOnlyRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The parsed read_only_commands.toml."""

    harmless_redirects: frozenset[str]
    public_files: frozenset[str]
    public_variables: frozenset[str]
    program_folders: frozenset[str]
    shim_folder: str
    variables: frozenset[str]
    special_variables: frozenset[str]
    information_options: str
    versions: dict[str, frozenset[str]]
    commands: dict[str, Reader]
    shared: dict[str, Reader]

    def is_special_variable(self, name: str) -> bool:
        """Return whether a variable has a meaning to a shell or a program."""
        return _any_pattern(self.special_variables).fullmatch(name) is not None


@cache
def _any_pattern(patterns: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, sorted(patterns))))


@cache
def shell_rules() -> ShellRules:
    """Return the rules of shell_rules.toml."""
    data = tomllib.loads((files(__package__) / "shell_rules.toml").read_text("utf-8"))
    for wrapper in data["wrappers"]:
        wrapper["options"] = _split_rows(wrapper.get("options", {}))
    return convert(data, ShellRules)


@cache
def read_only_rules() -> ReadOnlyRules:
    """Return the rules of read_only_commands.toml."""
    data = tomllib.loads((files(__package__) / "read_only_commands.toml").read_text("utf-8"))
    for section in ("commands", "shared"):
        data[section] = _split_rows(data[section])
    rules = convert(data, ReadOnlyRules)
    information_options = frozenset(rules.information_options.split())
    commands = {name: row.merge_shared(rules.shared) for name, row in rules.commands.items()}
    for name, row in commands.items():
        if not name.startswith("git "):  # its --help may start a program that git's settings name
            commands[name] = replace(
                row,
                flags=row.flags | information_options,
                pattern_options=row.pattern_options | information_options,
            )
    return replace(rules, commands=commands)


def load_rules() -> None:
    """Read both tables, which takes 30 ms: in a thread, before the first command is judged."""
    shell_rules()
    read_only_rules()


def _split_rows(rows: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    return {
        name: {
            key: value.split() if key in _LISTS and isinstance(value, str) else value
            for key, value in row.items()
        }
        for name, row in rows.items()
    }


class OptionSet:
    """Options that words are compared with.

    Short options may be in a cluster. Long ones may be abbreviated and may have an attached value.
    """

    def __init__(self, options: Iterable[str]) -> None:
        options = frozenset(options)
        self._long = sorted(option for option in options if option.startswith("--"))
        letters = [option for option in options if len(option) == 2 and option != "--"]
        self._letters = {
            mark: frozenset(option[1] for option in letters if option[0] == mark)
            for mark in {option[0] for option in letters}
        }
        self._words = options.difference(self._long, letters)

    def matches(self, word: str) -> bool:
        """Return whether `word` is one of the options, or a cluster that contains one."""
        if word.startswith("--"):
            name = word.partition("=")[0]
            at = bisect_left(self._long, name)
            is_long = len(name) > 2 and at < len(self._long) and self._long[at].startswith(name)
            return is_long or word in self._words
        letters = self._letters.get(word[:1])
        is_short = letters is not None and not letters.isdisjoint(word[1:])
        return is_short or word in self._words


option_set = cache(OptionSet)


def option_matches(word: str, option: str) -> bool:
    """Return whether `word` is `option`; see `OptionSet`."""
    return option_set((option,)).matches(word)


def has_option(words: Iterable[str], options: Sequence[str]) -> bool:
    """Return whether any of the options is among the words."""
    matches = option_set(tuple(options)).matches
    return any(word[:1] in {"-", "+"} and matches(word) for word in words)


def operands(words: Sequence[str], value_options: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor values of `value_options`."""
    result: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word == "--":
            result += remaining
        elif word in value_options:
            next(remaining, None)
        elif not word.startswith("-") or word == "-":
            result.append(word)
    return result
