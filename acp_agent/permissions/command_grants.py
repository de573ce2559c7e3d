"""Remembered commands: which ones a line needs, and whether it has them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from acp_agent.permissions.classify import Classified, Finding
from acp_agent.permissions.command_prefix import keeps_to_its_name, prefix_of
from acp_agent.permissions.paths import Place
from acp_agent.permissions.read_only import is_quiet
from acp_agent.permissions.rules import operands, shell_rules

_OFFER_LIMIT = 3  # commands that one button may be about


def prefixes_to_offer(classified: Classified, place: Place) -> tuple[tuple[str, ...], ...]:
    """The commands that an "always" for this line would be about; none where it cannot be."""
    if not classified.plain or classified.tier != "standard":
        return ()
    found: dict[tuple[str, ...], None] = {}
    for finding in _to_cover(classified):
        prefix = _prefix(finding, place)
        if prefix is None:
            return ()
        found[prefix] = None
    return tuple(found) if len(found) <= _OFFER_LIMIT else ()


def is_covered(classified: Classified, place: Place, patterns: Iterable[str]) -> bool:
    """Whether every command of the line only reads or is one of the remembered ones."""
    if not classified.plain or classified.tier != "standard":
        return False
    allowed = [words for words in map(_words, patterns) if words]
    return all(_is_allowed(finding, place, allowed) for finding in _to_cover(classified))


def refused_pattern(classified: Classified, patterns: Iterable[str]) -> str:
    """The first remembered "never" that any command of the line falls under; empty for none."""
    for pattern in patterns:
        words = _words(pattern)
        for finding in classified.findings:
            texts = finding.words
            if not words or not texts:
                continue
            name = texts[0].rpartition("/")[2]
            # Options before a subcommand do not hide it: `git -C x push`.
            leading = (name, *operands(texts[1:], shell_rules().globals.get(name, ())))
            if words in (each[: len(words)] for each in (texts, (name, *texts[1:]), leading)):
                return pattern
    return ""


def pattern_of(prefix: Sequence[str]) -> str:
    """A command's leading words as a grant keeps them."""
    return shlex.join(prefix)


def _words(pattern: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(pattern))
    except ValueError:
        return ()


def _to_cover(classified: Classified) -> list[Finding]:
    return [f for f in classified.findings if f.tier != "read_only" and not f.within]


def _prefix(finding: Finding, place: Place) -> tuple[str, ...] | None:
    command = finding.leaf
    if command is None or command.stdin is not None or not is_quiet(command, place, [place.cwd]):
        return None
    prefix = prefix_of(command)
    if prefix is None or not keeps_to_its_name(command, prefix):
        return None
    return prefix


def _is_allowed(finding: Finding, place: Place, allowed: Sequence[tuple[str, ...]]) -> bool:
    prefix = _prefix(finding, place)
    return prefix is not None and any(words == prefix[: len(words)] for words in allowed)
