"""Convert the indentation of a model's text to that of the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

_TAB = 4  # columns that a tab counts for when it is compared with spaces
_STEPS = (2, 3, 4, 8)  # usual widths of a level
_DOUBLE_STEP = 8  # rather two levels at once than one
_MAKEFILE = re.compile(r"(?:.*/)?(?:GNU)?[Mm]akefile|.*\.mk")
_RULE = re.compile(r"[^\s#:=][^#:=]*::?(?!=)[^\\]*")
_RECIPE = re.compile(r"^ {2,}(?! *(?:\w+ *[:?+!]*=|(?:if|else|end|define|include|export)))(?=\S)")


def with_recipe_tabs(text: str, display_path: str) -> str:
    """Return a makefile with tabs for the spaces before its recipes; any other text unchanged."""
    if not _MAKEFILE.fullmatch(display_path) or ".RECIPEPREFIX" in text:
        return text
    lines = text.split("\n")
    is_recipe = is_continued = False
    for index, line in enumerate(lines):
        if not is_continued:
            recipe = _RECIPE.sub("\t", line, count=1) if is_recipe else line
            is_recipe = recipe.startswith("\t") or bool(_RULE.fullmatch(line))
            lines[index] = recipe
        is_continued = line.endswith("\\")
    return "\n".join(lines)


class FileIndents:
    """How a file is indented: with tabs or not, and the width of a level, if lines show it.

    Args:
        indents: the indentations of its lines, in order.
    """

    def __init__(self, indents: Sequence[str]) -> None:
        tabs = sum(indent.startswith("\t") for indent in indents)
        self.tabs = tabs > sum(indent.startswith("  ") for indent in indents)
        self.step, self.is_certain = _file_step(indents)


class Indentation:
    """The indentation of the file for that of a call, learned from lines that are the same.

    Args:
        file: how the file is indented.

    Raises:
        ValueError: deeper lines of the call are not deeper in the file.
    """

    def __init__(
        self, indent_map: Mapping[str, str], indents: Iterable[str], file: FileIndents
    ) -> None:
        self._indent_map = dict(indent_map)
        self._columns = {_columns(old): new for old, new in indent_map.items()}
        pairs = sorted((_columns(old), _columns(new)) for old, new in indent_map.items())
        for (old, new), (next_old, next_new) in pairwise(pairs):
            if old == next_old or new >= next_new:
                raise ValueError
        self._tabs = any("\t" in new for new in indent_map.values()) or (
            not any(indent_map.values()) and file.tabs
        )
        old_step, new_step = _step(indents), _TAB if self._tabs else file.step or _TAB
        self._shift = _common_shift(indent_map)
        if len(indent_map) == 1 and old_step not in (None, new_step):
            # A level is wider in one than in the other, or a line is two levels deeper at once.
            ((old, new),) = pairs
            is_scaled = bool(old and new) and old * new_step == new * (old_step or 0)
            has_levels = self._tabs or (file.is_certain and new % new_step == 0)
            if is_scaled or (old_step != _DOUBLE_STEP and has_levels):
                self._shift = None
            elif old_step == _DOUBLE_STEP and old and (old - new) % new_step:
                self._shift = old_step = None  # neither whole levels further nor wider ones
        self._steps = (old_step, new_step) if old_step else None
        if old_step and len({new * old_step - old * new_step for old, new in pairs}) > 1:
            self._steps = None  # no rule for a depth that is not known

    def convert(self, indent: str) -> str | None:
        """Return the indentation of the file for one of the call; None if it is uncertain."""
        if indent in self._indent_map:
            return self._indent_map[indent]
        columns = _columns(indent)
        if columns in self._columns:
            return self._columns[columns]
        if self._shift is not None:
            removed_prefix, added_prefix = self._shift
            converted = (
                added_prefix + indent[len(removed_prefix) :]
                if indent.startswith(removed_prefix)
                else None
            )
        else:
            converted = self._scaled(columns)
        # A line at the margin may be meant to stay there.
        return converted if columns or not converted else None

    def _scaled(self, columns: int) -> str | None:
        if self._steps is None:
            return None
        old_step, new_step = self._steps
        shallower = [depth for depth in self._columns if depth < columns]
        nearest = max(shallower) if shallower else min(self._columns)
        base = self._columns[nearest]
        levels, extra_columns = divmod(abs(columns - nearest), old_step)
        distance = levels * new_step + extra_columns
        if columns > nearest:
            return base + ("\t" * levels + " " * extra_columns if self._tabs else " " * distance)
        width = _columns(base) - distance
        if width < 0:
            return None
        return "\t" * (width // _TAB) + " " * (width % _TAB) if self._tabs else " " * width


def _common_shift(indent_map: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the prefix to remove from each indentation, and the one to add."""
    shifts = set()
    for old, new in indent_map.items():
        if new.endswith(old):
            shifts.add(("", new[: len(new) - len(old)]))
        elif old.endswith(new):
            shifts.add((old[: len(old) - len(new)], ""))
        else:
            return None
    return shifts.pop() if len(shifts) == 1 else None


def _columns(indent: str) -> int:
    return sum(_TAB if char == "\t" else 1 for char in indent)


def _step(indents: Iterable[str]) -> int | None:
    """Return the width of a level in a short text: the smallest step between two of its depths."""
    depths = sorted({_columns(indent) for indent in indents})
    steps = [after - before for before, after in pairwise(depths)]
    smallest = min(steps, default=0)
    return smallest if smallest in _STEPS else None


def _file_step(indents: Sequence[str]) -> tuple[int | None, bool]:
    """Return the width of a level in a file, None if it has none, and whether that is certain.

    It is how much deeper its lines most often go at once. Prose has other widths as well.
    """
    depths = [len(indent) for indent in indents if "\t" not in indent]
    steps = Counter(
        after - before for before, after in pairwise(depths) if after - before in _STEPS
    )
    step, times = steps.most_common(1)[0] if steps else (None, 0)
    return step, times > 1 and 2 * times > steps.total()
