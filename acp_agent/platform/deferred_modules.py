"""Runs the code of some library modules when they are first used instead of when imported.

asyncio, logging and msgspec import modules that a server uses much later or never: `ssl` before
it has connected to anything, `tokenize` before it has printed an exception. They would be a tenth
of the time until the first session. `importlib.util.LazyLoader` does the same, but in Python 3.11
two threads that use a module for the first time at once may see half of it, and importing the
loader takes longer than it saves. Python 3.15 has `lazy import` (PEP 810).
"""

from __future__ import annotations

import sys
from _thread import RLock
from types import ModuleType

TYPE_CHECKING = False  # `typing` takes long to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
else:
    Loader = object

# Imported by others as `import x`, whose attributes they read in functions only. No module that one
# of these imports may use it, or two threads could wait for each other.
SERVER_MODULES = (
    "asyncio.sslproto", "asyncio.staggered", "inspect", "ipaddress", "linecache", "locale",
    "msgspec.inspect", "msgspec.msgpack", "msgspec.toml", "msgspec.yaml", "ssl", "textwrap",
    "tokenize",
)  # fmt: skip


class _DeferredModule(ModuleType):
    """A module in `sys.modules` whose code has not run."""

    def __getattribute__(self, name: str) -> object:
        if name not in {"__spec__", "__class__"}:  # the import system reads these
            spec: ModuleSpec = ModuleType.__getattribute__(self, "__spec__")
            if isinstance(spec.loader, _DeferringLoader):
                spec.loader.run(self, spec)
        return ModuleType.__getattribute__(self, name)


class _DeferringLoader(Loader):
    """Takes the place of a module's loader until the module is used."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = RLock()
        self._is_running = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _DeferredModule

    def run(self, module: ModuleType, spec: ModuleSpec) -> None:
        """Run the module's code, unless it has run or is running in this thread.

        After an exception, the next use runs it again.
        """
        with self._lock:
            if self._is_running or spec.loader is not self:
                return
            self._is_running = True
            try:
                self._loader.exec_module(module)
                spec.loader = module.__loader__ = self._loader
                module.__class__ = ModuleType
            finally:
                self._is_running = False


class _DeferringFinder:
    """A finder (`sys.meta_path`) that has other finders find the modules."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module to defer, or None."""
        if fullname not in self._names:
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)):
                if spec.loader is not None:
                    spec.loader = _DeferringLoader(spec.loader)
                return spec
        return None


def defer(names: Iterable[str]) -> None:
    """Run the code of these modules when an attribute is first read, if not yet imported."""
    sys.meta_path.insert(0, _DeferringFinder(names))


def import_without(name: str, optional: str) -> None:
    """Import the module `name`, which uses the module `optional` where that is installed.

    msgspec takes functions from `typing_extensions` that `typing` has as well.
    """
    if optional in sys.modules:
        return
    sys.modules[optional] = None  # type: ignore[assignment]  # makes its import fail
    try:
        __import__(name)
    finally:
        del sys.modules[optional]
