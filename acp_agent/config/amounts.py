"""Parse amounts of tokens and US dollars, and format dollars.

A nonzero amount of dollars is never shown as zero.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Literal

_USUAL = 4  # decimal places of an amount below a dollar
_MOST = 12  # beyond this many decimal places an amount is written in scientific notation

_AMOUNT = re.compile(
    r"(?P<dollar>\$)?\s*(?P<number>(?:\d{1,12}|\d{1,3}(?:[,_]\d{3}){1,3})(?:\.\d{1,12})?)\s*"
    r"(?P<scale>[km])?\s*(?P<unit>\$|usd|tokens?)?",
    re.ASCII | re.IGNORECASE,
)
_SCALES = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_amount(text: str) -> tuple[Literal["tokens", "cost"], Decimal] | None:
    """Return an amount such as "$2" or "500k" with its unit, or None if it is not one."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        return None
    # Exact, as written: a number of tokens must be whole.
    number = Decimal(re.sub("[,_]", "", found["number"]))
    number *= _SCALES[(found["scale"] or "").lower()]
    unit = (found["unit"] or "").lower()
    if unit in {"$", "usd"} or (found["dollar"] and not unit):
        return "cost", number
    if found["dollar"] or number != number.to_integral_value():
        return None
    return "tokens", number


def format_dollars(amount: float) -> str:
    """Return an amount with a dollar sign: cents from one dollar on, significant digits below."""
    return f"${format_decimal(amount, 2 if amount >= 1 or not amount else _USUAL)}"


def format_decimal(amount: float, least: int = _USUAL) -> str:
    """Return an amount with at least `least` decimal places and two significant digits.

    Infinity and NaN, which no real cost can be, are formatted as Python does.
    """
    if not amount or not math.isfinite(amount) or abs(amount) >= 10.0 ** (1 - least):
        return f"{amount:,.{least}f}"
    digits = 1 - math.floor(math.log10(abs(amount)))
    if digits > _MOST:
        return f"{amount:.1e}"
    whole, _, behind = f"{amount:.{max(digits, least)}f}".partition(".")
    return f"{whole}.{behind[:least]}{behind[least:].rstrip('0')}"
