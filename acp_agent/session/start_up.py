"""Stop Python's garbage collector from scanning the objects that start-up makes.

The collector runs whenever some hundred objects more were made than freed
(https://docs.python.org/3/library/gc.html). Start-up and the first prompt make 100,000 objects that
are never freed: scanning them repeatedly takes an eighth of the time to the first word. This module
is loaded before the response to `initialize`, so it imports nothing heavy.
"""

from __future__ import annotations

import gc

_START_UP_THRESHOLD = 250_000  # objects; more than start-up makes
_DEFAULT_THRESHOLD = gc.get_threshold()


def raise_gc_threshold() -> None:
    """Raise the collector's threshold for start-up."""
    gc.set_threshold(_START_UP_THRESHOLD)


def freeze_objects() -> None:
    """Freeze all objects, and restore the usual threshold. Does nothing when called again."""
    if gc.get_threshold()[0] == _START_UP_THRESHOLD:
        gc.freeze()
        gc.set_threshold(*_DEFAULT_THRESHOLD)
