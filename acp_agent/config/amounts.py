"""Parse amounts of tokens and US dollars, and format dollars.

A nonzero amount of dollars is never shown as zero.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Literal

_DEFAULT_PLACES = 4  # decimal places of an amount below a dollar
_MAX_PLACES = 12  # beyond this many decimal places an amount is written in scientific notation

_AMOUNT = re.compile(
    r"(?P<dollar>\$)?\s*(?P<number>(?:\d{1,12}|\d{1,3}(?:[,_]\d{3}){1,3})(?:\.\d{1,12})?)\s*"
    r"(?P<scale>[km])?\s*(?P<unit>\$|usd|tokens?)?",
    re.ASCII | re.IGNORECASE,
)
_SCALES = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_amount(text: str) -> tuple[Literal["tokens", "cost"], Decimal] | None:
    """Return an amount such as "$2" or "500k" with its unit, or None if it is not one."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    # Exact, as written: a number of tokens must be whole.
    number = Decimal(re.sub("[,_]", "", match["number"]))
    number *= _SCALES[(match["scale"] or "").lower()]
    unit = (match["unit"] or "").lower()
    if unit in {"$", "usd"} or (match["dollar"] and not unit):
        return "cost", number
    if match["dollar"] or number != number.to_integral_value():
        return None
    return "tokens", number


def format_dollars(amount: float) -> str:
    """Return an amount with a dollar sign: cents from one dollar on, significant digits below."""
    return f"${format_decimal(amount, 2 if amount >= 1 or not amount else _DEFAULT_PLACES)}"


def format_decimal(amount: float, min_places: int = _DEFAULT_PLACES) -> str:
    """Return an amount with at least `min_places` decimal places and two significant digits.

    Infinity and NaN, which no real cost can be, are formatted as Python does.
    """
    if not amount or not math.isfinite(amount) or abs(amount) >= 10.0 ** (1 - min_places):
        return f"{amount:,.{min_places}f}"
    digits = 1 - math.floor(math.log10(abs(amount)))
    if digits > _MAX_PLACES:
        return f"{amount:.1e}"
    integer, _, decimals = f"{amount:.{max(digits, min_places)}f}".partition(".")
    return f"{integer}.{decimals[:min_places]}{decimals[min_places:].rstrip('0')}"
