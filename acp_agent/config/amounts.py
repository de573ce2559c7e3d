"""How amounts of US dollars are written: none that is not zero is shown as zero."""

from __future__ import annotations

import math

_USUAL = 4  # digits behind the point of an amount below a dollar
_MOST = 12  # beyond, an amount is written with its power of ten


def dollars(amount: float) -> str:
    """An amount with its sign: cents from one dollar on, below it the digits that count."""
    return f"${decimal(amount, 2 if amount >= 1 or not amount else _USUAL)}"


def decimal(amount: float, least: int = _USUAL) -> str:
    """An amount with at least so many digits behind the point, and two of them that say something.

    What is not finite, as nothing that was spent can be, is written as Python writes it.
    """
    if not amount or not math.isfinite(amount) or abs(amount) >= 10.0 ** (1 - least):
        return f"{amount:,.{least}f}"
    digits = 1 - math.floor(math.log10(abs(amount)))
    if digits > _MOST:
        return f"{amount:.1e}"
    whole, _, behind = f"{amount:.{max(digits, least)}f}".partition(".")
    return f"{whole}.{behind[:least]}{behind[least:].rstrip('0')}"
