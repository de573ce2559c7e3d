"""What a call reads and writes, so that calls that do not concern each other run side by side."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Touches(Struct, frozen=True, kw_only=True):
    """What a call reads and writes: absolute, resolved paths, each with all that is below it.

    A name that does not begin with a slash stands for something that is no file, such as the plan.
    One that is `alone` runs beside no other call. `on_trust` says that this is so only as long as
    the user has not allowed the tool for good; where they have, it touches nothing of ours.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    alone: bool = False
    on_trust: bool = False


NOTHING = Touches()
ALL_FILES_READ = Touches(reads=("/",))
EVERYTHING = Touches(alone=True)
NOTHING_ON_TRUST = Touches(alone=True, on_trust=True)


def conflict(one: Touches, other: Touches) -> bool:
    """Whether the order in which two calls run may make a difference."""
    return (
        one.alone
        or other.alone
        or _overlap(one.writes, (*other.reads, *other.writes))
        or _overlap(other.writes, one.reads)
    )


def _overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    return any(_is_within(a, b) or _is_within(b, a) for a in some for b in others)


def _is_within(path: str, place: str) -> bool:
    # Two spellings of a name are one file on some disks; waiting in vain costs next to nothing.
    path, place = path.casefold(), place.casefold()
    return path == place or path.startswith(place if place.endswith("/") else f"{place}/")
