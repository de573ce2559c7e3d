"""How the indentation of a text that a model wrote relates to that of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

_TAB = 4  # columns that a tab counts for when it is compared with spaces
_STEPS = (2, 3, 4, 8)  # usual widths of a level


class Indentation:
    """The indentation of the file for that of a call, learned from lines that are the same.

    Args:
        known: for each indentation of the call that of the file.
        text: all indentations of the call.
        file: the indentations of the file, in order.

    Raises:
        ValueError: deeper lines of the call are not deeper in the file.
    """

    def __init__(self, known: Mapping[str, str], text: Iterable[str], file: Sequence[str]) -> None:
        self._known = dict(known)
        self._columns = {_columns(old): new for old, new in known.items()}
        pairs = sorted((_columns(old), _columns(new)) for old, new in known.items())
        for (old, new), (next_old, next_new) in pairwise(pairs):
            if old == next_old or new >= next_new:
                raise ValueError
        self._tabs = any("\t" in new for new in known.values()) or (
            not any(known.values()) and _uses_tabs(file)
        )
        same_kind = self._tabs == any("\t" in one for one in text)
        self._old_step, self._new_step = _step(text), _TAB if self._tabs else _file_step(file)
        shifts = {new - old for old, new in pairs}
        if len(pairs) > 1 and len(shifts) == 1 and same_kind:
            self._old_step = self._new_step  # the levels are equally wide
        elif len(pairs) > 1 and self._old_step and self._new_step:
            levels = {new * self._old_step - old * self._new_step for old, new in pairs}
            if len(levels) != 1:
                self._old_step = None  # no rule for a depth that is not known
        elif len(pairs) > 1:
            self._old_step = None

    def convert(self, indent: str) -> str | None:
        """The indentation of the file for one of the call; None: that cannot be told."""
        if indent in self._known:
            return self._known[indent]
        columns = _columns(indent)
        if columns in self._columns:
            return self._columns[columns]
        if not self._old_step or not self._new_step:
            return None
        below = [one for one in self._columns if one < columns]
        nearest = max(below) if below else min(self._columns)
        base = self._columns[nearest]
        levels, rest = divmod(abs(columns - nearest), self._old_step)
        distance = levels * self._new_step + rest
        if columns > nearest:
            return base + ("\t" * levels + " " * rest if self._tabs else " " * distance)
        width = _columns(base) - distance
        if width < 0:
            return None
        return "\t" * (width // _TAB) + " " * (width % _TAB) if self._tabs else " " * width


def _columns(indent: str) -> int:
    return sum(_TAB if char == "\t" else 1 for char in indent)


def _uses_tabs(indents: Sequence[str]) -> bool:
    tabs = sum(one.startswith("\t") for one in indents)
    return tabs > sum(one.startswith("  ") for one in indents)


def _step(indents: Iterable[str]) -> int | None:
    """The width of a level in a short text: the smallest step between two of its depths."""
    depths = sorted({_columns(one) for one in indents})
    steps = [after - before for before, after in pairwise(depths)]
    smallest = min(steps, default=0)
    return smallest if smallest in _STEPS else None


def _file_step(indents: Sequence[str]) -> int:
    """The width of a level in a file: how much deeper its lines most often go at once."""
    depths = [len(one) for one in indents if "\t" not in one]
    steps = Counter(
        after - before for before, after in pairwise(depths) if after - before in _STEPS
    )
    return steps.most_common(1)[0][0] if steps else _TAB
