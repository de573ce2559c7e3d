"""File patterns, as in other programs' workflows.

`*` and `?` match characters within one name, `**` matches any folders, `[ab]` matches one of some
characters, and a pattern that begins with `!` excludes files. The last matching pattern wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from acp_agent.errors import ConfigError


class FilePatterns:
    """Matches the files of a folder.

    Args:
        patterns: relative to the folder, with `/` between names.

    Attributes:
        folders: the folders that can contain matching files; "" is the folder itself.

    Raises:
        ConfigError: a pattern is invalid.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._rules = [_rule(pattern) for pattern in patterns]
        folders = {_literal_folder(folder) for folder in patterns if not folder.startswith("!")}
        self.folders = sorted(
            folder for folder in folders if not any(_is_below(folder, parent) for parent in folders)
        )

    def matches(self, name: str) -> bool:
        """Return whether a file matches, by its path relative to the folder."""
        included = False
        for includes, rule in self._rules:
            if includes != included and rule.fullmatch(name):
                included = includes
        return included


def _rule(pattern: str) -> tuple[bool, re.Pattern[str]]:
    try:
        return not pattern.startswith("!"), re.compile(_regex(pattern.removeprefix("!")))
    except re.error:
        raise ConfigError(
            f"files: {pattern[:40]} is no pattern; check what is between [ and ]"
        ) from None


def _is_below(folder: str, parent: str) -> bool:
    return folder != parent and (not parent or folder.startswith(f"{parent}/"))


def _literal_folder(pattern: str) -> str:
    """Return the leading folders of a pattern that contain no wildcards."""
    names: list[str] = []
    for name in _clean(pattern).split("/")[:-1]:
        if any(mark in name for mark in "*?["):
            break
        names.append(name)
    return "/".join(names)


def _clean(pattern: str) -> str:
    pattern = pattern.removeprefix("./")
    return f"{pattern}**" if pattern.endswith("/") else pattern


def _regex(pattern: str) -> str:
    return "".join(_regex_parts(_clean(pattern)))


def _regex_parts(pattern: str) -> Iterator[str]:
    position = 0
    while position < len(pattern):
        remainder = pattern[position:]
        characters = re.match(r"\[!?[^\]/]+\]", remainder)
        if remainder.startswith("**/"):
            yield "(?:[^/]+/)*"
            position += 3
        elif remainder.startswith("**"):
            yield ".*"
            position += 2
        elif remainder[0] == "*":
            yield "[^/]*"
            position += 1
        elif remainder[0] == "?":
            yield "[^/]"
            position += 1
        elif characters is not None:
            inner = characters[0][1:-1]
            negated = inner.startswith("!")
            escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner.removeprefix("!"))
            yield f"[{'^/' if negated else ''}{escaped}]"
            position += len(characters[0])
        else:
            yield re.escape(remainder[0])
            position += 1
