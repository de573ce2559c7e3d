"""The command line grammar: grammar.json, which `make schemas` generates from the parsers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


if TYPE_CHECKING:  # importing typing would slow down completion
    from typing import TypedDict

    class Value(TypedDict, total=False):
        """The value of an option or argument: one of `choices`, or one of its `kind`.

        An `optional` value may be omitted; `many` values may follow each other.
        """

        choices: list[str]
        kind: str
        about: str
        optional: bool
        many: bool

    class Option(TypedDict, total=False):
        """An option by its `names`. Without a value it is a flag; `again` means repeatable."""

        names: list[str]
        about: str
        value: Value
        again: bool

    class Command(TypedDict):
        """What may follow a command. If it has `actions`, one of them comes first."""

        about: str
        options: list[Option]
        arguments: list[Value]
        actions: dict[str, Command]


FILE_NAME = "grammar.json"


def grammar() -> Command:
    """Return the program as a command whose actions are its commands. Reads a small file."""
    path = os.path.join(os.path.dirname(__file__), FILE_NAME)  # noqa: PTH118, PTH120 - as above
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
        command: Command = json.load(file)
    return command


class CompletionPoint:
    """The position of the last word of a command line; the words before it are complete.

    Attributes:
        options: its options that can still be given.
        value: what can be given here; None if only an option or an action can.
        needed: whether this is the value of the previous option.
        prefix: the fixed beginning of the last word: `--model=` in `--model=demo`.
        only_values: whether `--` ended the options.
    """

    def __init__(self, root: Command, words: Sequence[str]) -> None:
        self.command = root
        self.value: Value | None = None
        self.needed = False
        self.prefix = ""
        self.only_values = False
        self._used: list[Option] = []
        self._arguments = 0
        pending: Option | None = None
        for word in words[1:-1]:
            pending = self._consume(word, pending)
        self._set_value(words[-1], pending)

    @property
    def options(self) -> list[Option]:
        """Return the options that can still be given."""
        if self.only_values:
            return []
        return [
            option
            for option in self.command["options"]
            if option not in self._used or "again" in option
        ]

    def _consume(self, word: str, pending: Option | None) -> Option | None:
        """Move past a word; return the option whose value comes next."""
        dashed = word.startswith("-") and len(word) > 1 and not self.only_values
        if pending is not None and not ("optional" in pending["value"] and dashed):
            return None
        if word == "--" and dashed:
            self.only_values = True
        elif dashed:
            name, equals, _ = word.partition("=")
            option = self._option(name)
            if option is not None:
                self._used.append(option)
                self.command = {**self.command, "actions": {}}  # actions come before options
                if "value" in option and not equals:
                    return option
        elif word in self.command["actions"]:
            self.command = self.command["actions"][word]
            self._used = []
        elif self.command["actions"]:
            self.command = {"about": "", "options": [], "arguments": [], "actions": {}}  # unknown
        else:
            self._arguments += 1
        return None

    def _set_value(self, word: str, pending: Option | None) -> None:
        name, equals, _ = word.partition("=")
        if pending is not None:
            self.value = pending["value"]
            self.needed = "optional" not in self.value
        elif equals and name.startswith("--") and not self.only_values:
            option = self._option(name)
            self.prefix = f"{name}="
            self.value = option.get("value") if option is not None else None
            self.needed = True
        else:
            self.value = self._argument()

    def _option(self, name: str) -> Option | None:
        matches = [option for option in self.command["options"] if name in option["names"]]
        return matches[0] if matches else None

    def _argument(self) -> Value | None:
        arguments = self.command["arguments"]
        if self._arguments < len(arguments):
            return arguments[self._arguments]
        return arguments[-1] if arguments and "many" in arguments[-1] else None
