"""Read the fields of a YAML mapping, and record each error with its line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal, TypeVar

from msgspec import Struct

from acp_agent.errors import ConfigError
from acp_agent.extensions.workflows.yaml_tree import Entry

_Choice = TypeVar("_Choice", bound=str)
Kind = Literal["text", "list", "names with values"]
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(?:\d{1,6}(?:\.\d{1,3})?[smhd]){1,4}")
_PART = re.compile(r"([\d.]+)([smhd])")
MAX_DURATION = 30 * 86_400.0


class Mistake(Struct, frozen=True, order=True):
    """An error in a file and its remedy, with the line; 0 stands for the whole file."""

    line: int
    why: str


class Mistakes:
    """Collects the errors of a file, one for each line and text."""

    def __init__(self) -> None:
        self._found: set[Mistake] = set()

    def add(self, line: int, error: ConfigError) -> None:
        """Add an error."""
        self._found.add(Mistake(line, str(error)))

    def sorted(self) -> list[Mistake]:
        """Return all errors, sorted by line."""
        return sorted(self._found)

    def __bool__(self) -> bool:
        """Return whether there is any error."""
        return bool(self._found)


class Table:
    """The fields of a mapping. Every method records errors and returns a default.

    Args:
        field_names: the names of all fields; a file may use `_` instead of `-`.
    """

    def __init__(self, entry: Entry, mistakes: Mistakes, field_names: Collection[str]) -> None:
        self.line = entry.line
        self._mistakes = mistakes
        self._fields: dict[str, Entry] = {}
        if not isinstance(entry.value, Mapping):
            mistakes.add(entry.line, ConfigError("expected names with values here; indent them"))
            return
        for field_name, value in entry.value.items():
            name = field_name.replace("_", "-")
            if name not in field_names:
                self._report_unknown(field_name, value.line, field_names)
            elif name in self._fields:
                mistakes.add(value.line, ConfigError(f"{name}: it is there twice; take one out"))
            elif value.value is not None:
                self._fields[name] = value

    def _report_unknown(self, name: str, line: int, field_names: Collection[str]) -> None:
        suggestions = get_close_matches(name, field_names, n=1)
        if suggestions:
            error = ConfigError(
                f"{name[:40]}: there is no such field; did you mean {suggestions[0]}?"
            )
        else:
            listed = ", ".join(sorted(field_names))
            error = ConfigError(f"{name[:40]}: there is no such field; known here: {listed}")
        self._mistakes.add(line, error)

    def __contains__(self, name: str) -> bool:
        """Return whether a field has a value."""
        return name in self._fields

    def entry(self, name: str) -> Entry | None:
        """Return the raw entry of a field."""
        return self._fields.get(name)

    def field_line(self, name: str) -> int:
        """Return the line of a field, or that of the mapping."""
        return self._fields[name].line if name in self._fields else self.line

    def text(self, name: str) -> str | None:
        """Return a text field."""
        entry = self._fields.get(name)
        if entry is None:
            return None
        if not isinstance(entry.value, str):
            self._report_wrong_type(name, entry, "text")
            return None
        return entry.value

    def scalar(self, name: str) -> str | None:
        """Return a field that is a text, a number, or true or false, as text."""
        entry = self._fields.get(name)
        return None if entry is None else self.scalar_text(name, entry)

    def scalar_text(self, name: str, entry: Entry) -> str | None:
        """Return a value as text, or None for a list or a mapping."""
        match entry.value:
            case bool():
                return str(entry.value).lower()
            case str() | int() | float():
                return str(entry.value)
            case None:
                return ""
            case _:
                self._report_wrong_type(name, entry, "text")
                return None

    def flag(self, name: str) -> bool:
        """Return a field that is true or false."""
        entry = self._fields.get(name)
        if entry is None:
            return False
        if not isinstance(entry.value, bool):
            self._mistakes.add(entry.line, ConfigError(f"{name}: expected true or false"))
            return False
        return entry.value

    def number(self, name: str, low: int, high: int) -> int | None:
        """Return a field that is a whole number."""
        entry = self._fields.get(name)
        if entry is None:
            return None
        value = entry.value
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self._mistakes.add(
                entry.line, ConfigError(f"{name}: expected a whole number from {low} to {high}")
            )
            return None
        return value

    def duration(self, name: str, *, shortest: float = 1.0) -> float | None:
        """Return a field that is a duration, in seconds."""
        entry = self._fields.get(name)
        if entry is None:
            return None
        try:
            return parse_duration(entry.value, shortest=shortest)
        except ConfigError as error:
            self._mistakes.add(entry.line, ConfigError(f"{name}: {error}"))
            return None

    def choice(self, name: str, choices: Sequence[_Choice]) -> _Choice | None:
        """Return a field that is one of `choices`."""
        entry = self._fields.get(name)
        for choice in choices:
            if entry is not None and entry.value == choice:
                return choice
        if entry is not None:
            listed = ", ".join(choices)
            self._mistakes.add(entry.line, ConfigError(f"{name}: expected one of {listed}"))
        return None

    def items(self, name: str) -> Sequence[Entry]:
        """Return a field that is a list."""
        entry = self._fields.get(name)
        if entry is None:
            return ()
        if not isinstance(entry.value, list):
            self._report_wrong_type(name, entry, "list")
            return ()
        return entry.value

    def texts(self, name: str) -> Sequence[Entry]:
        """Return a field that is a text or a list of texts."""
        entry = self._fields.get(name)
        if entry is not None and isinstance(entry.value, str):
            return (entry,)
        entries = self.items(name)
        for item in entries:
            if not isinstance(item.value, str):
                self._report_wrong_type(name, item, "text")
        return [item for item in entries if isinstance(item.value, str)]

    def mapping(self, name: str) -> Mapping[str, Entry]:
        """Return a field that is a mapping."""
        entry = self._fields.get(name)
        if entry is None:
            return {}
        if not isinstance(entry.value, Mapping):
            self._report_wrong_type(name, entry, "names with values")
            return {}
        return entry.value

    def _report_wrong_type(self, name: str, entry: Entry, kind: Kind) -> None:
        if kind == "text":
            error = ConfigError(f"{name}: expected text; put it in quotes")
        elif kind == "list":
            error = ConfigError(f"{name}: expected a list; begin each line of it with a -")
        else:
            error = ConfigError(f"{name}: expected names with values; indent them below it")
        self._mistakes.add(entry.line, error)


def parse_duration(value: object, *, shortest: float) -> float:
    """Return the seconds of a duration.

    Args:
        value: the value in the file: a text or a number of seconds.
        shortest: the smallest permitted number of seconds.

    Raises:
        ConfigError: the value is not a duration, or is too short or too long.
    """
    seconds = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and _DURATION.fullmatch(value.replace(" ", "")):
        seconds = sum(
            float(number) * _SECONDS[unit] for number, unit in _PART.findall(value.replace(" ", ""))
        )
    if seconds is None:
        raise ConfigError(f"{str(value)[:40]} is no duration; write it like 90s, 10m or 1h30m")
    if not shortest <= seconds <= MAX_DURATION:
        raise ConfigError(
            f"{str(value)[:40]} is too short or too long; use {shortest:g} seconds to 30 days"
        )
    return seconds
