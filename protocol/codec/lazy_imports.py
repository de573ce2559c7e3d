"""Exports names of other modules, which are imported when a name is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def lazy_imports(namespace: dict[str, Any], modules: Sequence[str]) -> Callable[[str], object]:
    """Return a module's `__getattr__` (PEP 562) that finds public names in other modules.

    Args:
        namespace: The module's `globals()`, which keep what was found.
        modules: The modules to import and to search, in this order: those that are needed first,
            first.
    """

    def find(name: str) -> object:
        if not name.startswith("_"):
            for module in modules:
                names = vars(import_module(module))
                if name in names:
                    namespace[name] = names[name]
                    return names[name]
        raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")

    return find
