"""Parse durations: `90s`, `10m`, `1h30m`, `2d`; a number alone is in seconds."""

from __future__ import annotations

import re

from acp_agent.errors import ConfigError

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(?:\d{1,6}(?:\.\d{1,3})?[smhd]){1,4}")
_PART = re.compile(r"([\d.]+)([smhd])")
MAX_DURATION = 30 * 86_400.0


def parse_duration(value: object, *, shortest: float) -> float:
    """Return the seconds of a duration.

    Args:
        value: the value in the file: a text or a number of seconds.
        shortest: the smallest permitted number of seconds.

    Raises:
        ConfigError: the value is not a duration, or is too short or too long.
    """
    seconds = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and _DURATION.fullmatch(value.replace(" ", "")):
        seconds = sum(
            float(number) * _SECONDS[unit] for number, unit in _PART.findall(value.replace(" ", ""))
        )
    if seconds is None:
        raise ConfigError(f"{str(value)[:40]} is no duration; write it like 90s, 10m or 1h30m")
    if not shortest <= seconds <= MAX_DURATION:
        raise ConfigError(
            f"{str(value)[:40]} is too short or too long; use {shortest:g} seconds to 30 days"
        )
    return seconds
