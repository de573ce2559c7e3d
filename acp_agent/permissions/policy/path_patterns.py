"""Match rules like `Edit(src/**)` against paths, with the pattern syntax of gitignore files.

`//etc/**` is an absolute path, `~/.zshrc` is in the home folder, `/src` and `src/**` are in the
session's folder. A name without a slash matches in every folder below.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from msgspec import Struct

from acp_agent.permissions.guarded_files import normalize_path
from acp_agent.permissions.policy.rules import RuleError


class Folders(Struct, frozen=True):
    """The folders that patterns start from: the session's and the home folder, links resolved."""

    project: str
    home: str


class PathPattern(Struct, frozen=True):
    """The pattern of a rule about files.

    Attributes:
        start: the folder that it starts from: `/`, `~`, or "" for the session's folder; `../` for
            each level above that.
        regex: matches the path relative to that folder.
        tolerant: matches the same path as the most tolerant file systems compare it.
    """

    start: str
    regex: re.Pattern[str]
    tolerant: re.Pattern[str]

    def matches(self, path: str, folders: Folders, *, tolerant: bool) -> bool:
        """Return whether an absolute path, or a folder that contains it, matches.

        Args:
            path: the path, without `..`.
            tolerant: ignore case, compatibility forms and invisible characters, for rules that
                refuse or ask.
        """
        base = _start_folder(self.start, folders)
        if tolerant:
            relative = _relative_path(_normalize_path(path), _normalize_path(base))
            # `secrets/**` covers the folder itself too: a program may read all of its content.
            return relative is not None and bool(
                self.tolerant.match(relative) or self.tolerant.match(f"{relative}/")
            )
        relative = _relative_path(path, base)
        return relative is not None and self.regex.match(relative) is not None


def compile_path(pattern: str, *, anywhere: bool) -> PathPattern:
    """Return the compiled pattern of a rule about files.

    Args:
        anywhere: whether a name without a slash matches in every folder of the machine (the strict
            reading, for rules that refuse or ask) or only in the session's folder.

    Raises:
        RuleError: the pattern matches nothing.
    """
    start, remainder = "", pattern
    if pattern.startswith("//"):
        start, remainder = "/", pattern[1:]
    elif pattern == "~" or pattern.startswith("~/"):
        start, remainder = "~", pattern[1:] or "/**"
    elif pattern.startswith("./"):
        remainder = pattern[1:]
    while not start.startswith(("/", "~")) and remainder.lstrip("/").startswith("../"):
        start, remainder = f"{start}../", "/" + remainder.lstrip("/").removeprefix("../")
    if not start and anywhere and "/" not in remainder.rstrip("/"):
        start = "/"
    return PathPattern(start, _compile(remainder), _compile(normalize_path(remainder)))


_normalize_path = lru_cache(maxsize=1_000)(normalize_path)  # each path is compared with many rules


@lru_cache(maxsize=1_000)
def _compile(pattern: str) -> re.Pattern[str]:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only where there is such a rule

    line = f"\\{pattern}" if pattern[:1] == "#" else pattern
    spec = GitIgnoreSpec.from_lines([line])
    regex = next((compiled.regex for compiled in spec.patterns), None)
    if regex is None:
        raise RuleError("its path matches nothing")
    return re.compile(regex.pattern)


def _start_folder(start: str, folders: Folders) -> str:
    if start == "/":
        return "/"
    if start == "~":
        return folders.home
    if not start:
        return folders.project
    return os.path.normpath(f"{folders.project}/{start}")


def _relative_path(path: str, base: str) -> str | None:
    """Return the path relative to a folder, or None if it is outside the folder."""
    folder = base.rstrip("/") + "/"
    return path[len(folder) :] if path.startswith(folder) else None
