"""The time until a process has all that it works with, which Python's collector passes over.

The collector looks for cycles of garbage whenever some hundred objects more were made than freed
(https://docs.python.org/3/library/gc.html). What start-up and the first prompt import are 100,000
objects that all stay: looking at them again and again is an eighth of the way to the first word.
"""

from __future__ import annotations

import gc

_PATIENT = 250_000  # objects: more than start-up makes, and not without end
_USUAL = gc.get_threshold()


def begins() -> None:
    """Let the collector wait: what is made now stays."""
    gc.set_threshold(_PATIENT)


def is_over() -> None:
    """Leave aside for good what there is, and look at what comes as usual. Again: does nothing."""
    if gc.get_threshold()[0] == _PATIENT:
        gc.freeze()
        gc.set_threshold(*_USUAL)
