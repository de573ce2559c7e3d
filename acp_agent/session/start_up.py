"""Keeps Python's garbage collector from scanning what start-up makes, which all stays.

The collector looks for cycles of garbage whenever some hundred objects more were made than freed
(https://docs.python.org/3/library/gc.html). What start-up and the first prompt import are 100,000
objects that all stay: scanning them repeatedly takes an eighth of the time to the first word.
"""

from __future__ import annotations

import gc

_HIGH = 250_000  # objects: more than start-up makes, yet limited
_USUAL = gc.get_threshold()


def begins() -> None:
    """Raise the threshold: what is made now stays."""
    gc.set_threshold(_HIGH)


def is_over() -> None:
    """Freeze what there is, and collect as usual. Does nothing when called again."""
    if gc.get_threshold()[0] == _HIGH:
        gc.freeze()
        gc.set_threshold(*_USUAL)
