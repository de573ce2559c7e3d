"""Names of other modules, given on from one place and imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def late_names(
    namespace: dict[str, Any], package: str, modules: Sequence[str]
) -> Callable[[str], object]:
    """A module's `__getattr__` (PEP 562) that finds public names in other modules.

    Args:
        namespace: the module's `globals()`; what was found once is kept there.
        package: the package of the other modules.
        modules: their names, in the order in which they are imported and searched: those that are
            needed first, first.
    """

    def find(name: str) -> object:
        if not name.startswith("_"):
            for module in modules:
                found = vars(import_module(f"{package}.{module}"))
                if name in found:
                    namespace[name] = found[name]
                    return found[name]
        raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")

    return find
