"""The language that the program speaks to its user in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal


def choose_language(
    setting: Literal["auto", "en", "zh"], environ: Mapping[str, str]
) -> Literal["en", "zh"]:
    """`en` or `zh`: the configured one, else that of the system's locale, else English.

    The variables are read in POSIX's order (The Open Group Base Specifications, section 8.2): the
    first that is set decides.
    """
    if setting != "auto":
        return setting
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environ.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
