"""Schedules as in crontab(5): minute, hour, day of the month, month, day of the week."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from acp_agent.errors import ConfigError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_MAX_DAYS = 366 * 8 + 2  # days; the next 29 February may be eight years away


class CronLine(Struct, frozen=True, kw_only=True):
    """A schedule; Sunday is 0. `either_day` is true if both day fields are restricted."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment, both local and naive; None if there is none."""
        day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(_MAX_DAYS):
            if self._runs_on(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        time = day.replace(hour=hour, minute=minute)
                        if time > moment:
                            return time
            day += timedelta(days=1)
        return None

    def _runs_on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either_day else by_month and by_week


def parse_cron(text: str) -> CronLine:
    """Return the schedule that a line describes.

    Raises:
        ConfigError: the line is invalid, or describes no time at all.
    """
    words = text.split()
    if len(words) != len(_FIELDS):
        raise ConfigError(
            f"cron: expected five fields (minute, hour, day, month, weekday), found {len(words)}"
        )
    minutes, hours, days, months, weekdays = (
        _parse_field(word.lower(), *field) for word, field in zip(words, _FIELDS, strict=True)
    )
    line = CronLine(
        text=text,
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(day % 7 for day in weekdays),
        either_day=not words[2].startswith("*") and not words[4].startswith("*"),
    )
    if line.next_after(datetime(2000, 1, 1)) is None:  # noqa: DTZ001 - schedules are local
        raise ConfigError(f"cron: {text} never comes; check the day and the month")
    return line


def _parse_field(word: str, name: str, low: int, high: int, names: tuple[str, ...]) -> set[int]:
    numbers: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        size = _parse_number(step, 1, high, ()) if slash else 1
        first, dash, last = span.partition("-")
        start = low if span == "*" else _parse_number(first, low, high, names)
        default_end = high if slash or span == "*" else start
        end = _parse_number(last, low, high, names) if dash else default_end
        if size is None or start is None or end is None or start > end:
            raise ConfigError(
                f"cron: {part[:40]} is no {name}; use numbers from {low} to {high}, as 1, 1-5, */2 "
                "or 1,15"
            )
        numbers.update(range(start, end + 1, size))
    return numbers


def _parse_number(text: str, low: int, high: int, names: tuple[str, ...]) -> int | None:
    if text in names:
        return names.index(text) + low
    if not (text.isascii() and text.isdigit() and len(text) <= 2):
        return None
    return int(text) if low <= int(text) <= high else None
