"""What a page says besides the session's own words, in the reader's language."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib.resources import files as package_files

from acp_agent.config.amounts import decimal
from acp_agent.config.words import Language


class PageWords:
    """The texts of one language, and how it writes numbers, times and durations."""

    def __init__(self, language: Language, zone: tzinfo | None) -> None:
        """Args: zone: the time zone of clocks; None: that of the system."""
        self.language = language
        self._texts = _texts()[language]
        self._zone = zone

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key, its placeholders filled in."""
        said = self._texts[key]
        return said.format(**values) if values else said

    def clock(self, at: int) -> str:
        """The time of day."""
        return self._local(at).strftime("%H:%M:%S")

    def date(self, at: int) -> str:
        """Day and time."""
        return self._local(at).strftime("%Y-%m-%d %H:%M")

    def took(self, milliseconds: int) -> str:
        """A duration, as exact as one wants to know it."""
        if milliseconds < 1_000:
            return f"{milliseconds} ms"
        seconds = milliseconds / 1_000
        if seconds < 60:
            return f"{seconds:.1f} s"
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return f"{minutes} min {rest} s"
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min"

    def money(self, dollars: float, unpriced: int = 0) -> str:
        """US dollars; `+?` where the price of some requests is not known."""
        known = f"${decimal(dollars, 2 if dollars >= 1 else 4)}"
        if not unpriced:
            return known
        return f"{known} +?" if dollars else "?"

    def _local(self, at: int) -> datetime:
        return datetime.fromtimestamp(at / 1000, UTC).astimezone(self._zone)


def iso(at: int) -> str:
    """A time for machines (RFC 3339)."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def count(number: float) -> str:
    """A number for people, short on an axis."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def size(number: int) -> str:
    """A number of bytes."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.1f} kB"


@cache
def _texts() -> dict[Language, dict[str, str]]:
    text = (package_files(__package__) / "texts.toml").read_text("utf-8")
    texts: dict[Language, dict[str, str]] = tomllib.loads(text)  # type: ignore[assignment]  # the file has these two languages, which a test says
    return texts
