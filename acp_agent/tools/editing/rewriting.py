"""Rewrite both texts of an edit in the same way."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from acp_agent.tools.editing.matching import EditVariant

Transform = Callable[[EditVariant], "EditVariant | list[EditVariant] | None"]


def with_line_end(old: str, new: str) -> str:
    """Return `new` with the line end that it lacks if `old` is whole lines."""
    is_deliberate = new in {"", old[:-1]} or new[-1:].isspace() or not old.strip()
    return f"{new}\n" if old.endswith("\n") and not is_deliberate else new


def rewrite(
    variant: EditVariant, note: str, old: str, new: str, **flags: bool | int | None
) -> EditVariant:
    """Return a variant with these texts, and a note that says what was done."""
    return msgspec.structs.replace(
        variant,
        old=old,
        new=with_line_end(old, new),
        notes=(*variant.notes, note),
        **{"distance": 2, **flags},
    )


def shares_raw_lines(old: str, new: str, unescaped: str) -> bool:
    """Whether `new` as given, but not unescaped, shares lines with the unescaped `old`."""
    lines, plain = set(new.split("\n")), set(unescaped.split("\n"))
    return bool(set(old.split("\n")) & (lines - plain))
