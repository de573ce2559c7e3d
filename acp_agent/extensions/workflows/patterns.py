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
        wanted = {_literal_folder(one) for one in patterns if not one.startswith("!")}
        self.folders = sorted(
            one for one in wanted if not any(_is_below(one, other) for other in wanted)
        )

    def matches(self, name: str) -> bool:
        """Return whether a file matches, by its path relative to the folder."""
        meant = False
        for includes, rule in self._rules:
            if includes != meant and rule.fullmatch(name):
                meant = includes
        return meant


def _rule(pattern: str) -> tuple[bool, re.Pattern[str]]:
    try:
        return not pattern.startswith("!"), re.compile(_regex(pattern.removeprefix("!")))
    except re.error:
        raise ConfigError(
            f"files: {pattern[:40]} is no pattern; check what is between [ and ]"
        ) from None


def _is_below(folder: str, other: str) -> bool:
    return folder != other and (not other or folder.startswith(f"{other}/"))


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
    return "".join(_parts(_clean(pattern)))


def _parts(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        characters = re.match(r"\[!?[^\]/]+\]", rest)
        if rest.startswith("**/"):
            yield "(?:[^/]+/)*"
            at += 3
        elif rest.startswith("**"):
            yield ".*"
            at += 2
        elif rest[0] == "*":
            yield "[^/]*"
            at += 1
        elif rest[0] == "?":
            yield "[^/]"
            at += 1
        elif characters is not None:
            inner = characters[0][1:-1]
            negated = inner.startswith("!")
            escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner.removeprefix("!"))
            yield f"[{'^/' if negated else ''}{escaped}]"
            at += len(characters[0])
        else:
            yield re.escape(rest[0])
            at += 1
