"""Lists what a tool offers by name: short enough to be part of every request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acp_agent.tools.quoting import one_line, shorten

_LONGEST = 300  # characters of a description
_ALL = 12_000  # characters of a list; about 3,000 tokens
_LEAST = 24  # characters of a description below which it says nothing
_NAMES = 1_000  # characters of the names in an error


def listing(about: Mapping[str, str]) -> list[str]:
    """A line for each name with what it is about: the more there are, the shorter.

    Names for which there is no room are counted in the last line.
    """
    names = sum(len(name) + len("- : \n") for name in about)
    share = min(_LONGEST, (_ALL - names) // max(1, len(about)))
    lines: list[str] = []
    room = _ALL
    for name, text in about.items():
        line = f"- {name}: {one_line(text, share)}" if share >= _LEAST else f"- {name}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f"and {len(about) - len(lines)} more, which the user can name.")
            break
        lines.append(line)
    return lines


def names_in_short(names: Iterable[str]) -> str:
    """The names, for an error."""
    return shorten(", ".join(names), _NAMES)
