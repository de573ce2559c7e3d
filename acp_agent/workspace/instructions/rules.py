"""Rules of other agents: Markdown files whose front matter says which files they apply to.

The front matter is parsed line by line, since Cursor writes `globs: **/*.ts`, which is not YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice
from typing import Literal

from msgspec import Struct

from acp_agent.content import printable_line

_FENCE = "---"
_FIELD = re.compile(r"([A-Za-z_-]+)\s*:(.*)")
_OUTSIDE_BRACES = re.compile(r",(?![^{]*\})")
_BRACES = re.compile(r"\{([^{}]*)\}")
_PATTERN_FIELDS = ("globs", "paths", "applyTo")
_MAX_PATTERNS = 100  # of one rule
_MAX_LENGTH = 300  # characters of one pattern

When = Literal["always", "matching", "never"]


class Rule(Struct, frozen=True, kw_only=True):
    """A rule: its text, when it applies, and the patterns of files that it applies to.

    `topic` is what a rule without patterns is about, for the model to choose it; "" if it does not.
    """

    text: str
    when: When
    patterns: tuple[str, ...] = ()
    topic: str = ""

    def applies_to(self, path: str) -> bool:
        """Return whether a path, relative to the folder with the rules, matches a pattern."""
        return any(matches(pattern, path) for pattern in self.patterns)


def parse_rule(content: str, *, otherwise: Literal["always", "never"]) -> Rule:
    """Return the rule in a file.

    Args:
        otherwise: when the rule applies if its front matter does not say so.
    """
    fields, text = split_front_matter(content)
    patterns = [
        pattern
        for name in _PATTERN_FIELDS
        for value in fields.get(name, ())
        for pattern in _split(value)
    ]
    always = fields.get("alwaysApply") == ["true"] or fields.get("trigger") == ["always_on"]
    when: When = otherwise
    if always or not {"**", "**/*"}.isdisjoint(patterns):
        when = "always"
    elif patterns:
        when = "matching"
    elif "alwaysApply" in fields or "trigger" in fields:
        when = "never"  # only used when a person names it, or a model picks it
    topic = ""
    if when == "never" and fields.get("trigger") != ["manual"]:
        topic = printable_line(" ".join(fields.get("description", ())), _MAX_LENGTH)
    return Rule(text=text, when=when, patterns=tuple(patterns[:_MAX_PATTERNS]), topic=topic)


def matches(pattern: str, path: str, *, below: bool = True) -> bool:
    """Return whether a path matches a pattern, in which `**` matches any number of folders.

    A pattern without a slash matches a name at any depth. A pattern that matches a folder matches
    everything below it, unless `below` is false.
    """
    path_parts = tuple(path.split("/"))
    if len(pattern) > _MAX_LENGTH or len(path_parts) > _MAX_LENGTH:
        return False
    expanded = islice(_expand(pattern, below=below), _MAX_PATTERNS)
    return any(
        _matches(tuple(expanded_pattern.split("/")), path_parts) for expanded_pattern in expanded
    )


def _expand(pattern: str, *, below: bool) -> Iterator[str]:
    """Yield the patterns that one expands to: without braces, for the whole relative path."""
    braces = _BRACES.search(pattern)
    if braces is not None:
        for choice in braces[1].split(","):
            choice_pattern = pattern[: braces.start()] + choice + pattern[braces.end() :]
            yield from _expand(choice_pattern, below=below)
        return
    pattern = pattern.removeprefix("./")
    anchored = "/" in pattern.rstrip("/")
    pattern = pattern.strip("/")
    yield pattern if anchored else f"**/{pattern}"
    if below:
        yield f"{pattern}/**" if anchored else f"**/{pattern}/**"


def _matches(pattern: tuple[str, ...], path_parts: tuple[str, ...]) -> bool:
    @cache
    def match(at: int, part: int) -> bool:
        if at == len(pattern):
            return part == len(path_parts)
        if pattern[at] == "**":
            return match(at + 1, part) or (part < len(path_parts) and match(at, part + 1))
        return (
            part < len(path_parts)
            and fnmatchcase(path_parts[part], pattern[at])
            and match(at + 1, part + 1)
        )

    return match(0, 0)


def split_front_matter(content: str) -> tuple[dict[str, list[str]], str]:
    """Return the fields of a file's front matter, each with its values, and the text below it."""
    lines = content.removeprefix("\ufeff").splitlines()
    fields: dict[str, list[str]] = {}
    if not lines or lines[0].rstrip() != _FENCE:
        return fields, content.strip()
    values: list[str] = []
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            return fields, "\n".join(lines[number + 1 :]).strip()
        if (match := _FIELD.match(line)) is not None:
            values = fields[match[1]] = [value] if (value := _strip_value(match[2])) else []
        elif line.lstrip().startswith("- ") and (value := _strip_value(line.lstrip()[2:])):
            values.append(value)
    return {}, content.strip()  # unterminated front matter is text


def _strip_value(value: str) -> str:
    """Return a value without enclosing quotes or brackets, and without a trailing comment."""
    return value.partition(" #")[0].strip().strip("[]").strip().strip("\"'").strip()


def _split(value: str) -> Sequence[str]:
    pieces = (_strip_value(piece) for piece in _OUTSIDE_BRACES.split(value))
    return [piece for piece in pieces if piece]
