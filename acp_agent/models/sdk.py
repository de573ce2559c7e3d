"""The clients of the `openai` and `anthropic` packages, imported without the rest of the packages.

Importing either package imports every type of every endpoint: 500 and 2,400 modules, of which a
chat needs about 80. Here the package's `__init__` is deferred: importing a module inside the
package does not run it, and a name requested from the package is taken from the module that
`__init__` names as its source. Any other name runs the real `__init__`, so the package works as
usual for everyone else in the process. Modules of `_ON_CALL` only offer functions for failures and
tracing; they are imported when one is called.

The packages are neither changed nor copied. If their layout is unexpected, the ordinary import is
used. docs/decisions/sdk-import.md has the figures.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, cast

from acp_agent.config.certificates import tls_verification
from acp_agent.config.loopback import no_proxy_mounts

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from httpx2 import AsyncClient, Timeout
    from openai import AsyncOpenAI


# Packages whose `__init__` is put off, with everything below those that end in a dot.
_PUT_OFF = {
    "openai": ("openai", "openai.lib", "openai.types", "openai.types."),
    "anthropic": (
        "anthropic", "anthropic.lib._tracing", "anthropic.types", "anthropic.types.",
    ),
}  # fmt: skip
_ON_CALL = ("anthropic._error_classes", "anthropic.lib._tracing._api_call")

_lock = threading.RLock()


NO_KEY = "no-key"  # what is sent where a server needs no key; the package insists on one


def openai_client() -> type[AsyncOpenAI]:
    """The class `openai.AsyncOpenAI`. Takes tenths of a second the first time: use a thread."""
    return cast("type[AsyncOpenAI]", _client("openai", "AsyncOpenAI"))


def anthropic_client() -> type[AsyncAnthropic]:
    """The class `anthropic.AsyncAnthropic`. Takes tenths of a second the first time."""
    return cast("type[AsyncAnthropic]", _client("anthropic", "AsyncAnthropic"))


def http_client(
    package: Literal["openai", "anthropic"], base_url: str, timeout: Timeout
) -> AsyncClient | None:
    """The HTTP client to give to a client class of a package for the service at `base_url`.

    None, for which the package makes its own, but where no proxy must be asked, or no certificate
    can be.

    Raises:
        ConfigError: a variable names certificates that cannot be used.
    """
    direct, trust = no_proxy_mounts(base_url), tls_verification(base_url)
    if not direct and trust is True:
        return None
    (openai_client if package == "openai" else anthropic_client)()  # the short import comes first
    own = cast("type[AsyncClient]", importlib.import_module(package).DefaultAsyncHttpxClient)
    return own(mounts=direct, timeout=timeout, verify=trust)


def _client(package: str, name: str) -> type:
    with _lock:
        if package not in sys.modules:
            try:
                return _short_import(package, name)
            except Exception:  # noqa: BLE001 - another version of the package: import it as usual
                _forget(package)
        return cast("type", getattr(importlib.import_module(package), name))


def _short_import(package: str, name: str) -> type:
    finder = _Finder(package)
    sys.meta_path.insert(0, finder)
    try:
        found = getattr(importlib.import_module(f"{package}._client"), name)
    finally:
        finder.importing = False
    if not isinstance(found, type):
        raise TypeError(f"{package}._client.{name} is not a class")
    return found


def _forget(package: str) -> None:
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not (isinstance(finder, _Finder) and finder.package == package)
    ]
    for module in [m for m in sys.modules if m == package or m.startswith(f"{package}.")]:
        del sys.modules[module]


class _Finder(MetaPathFinder):
    """Finds the modules of one package that are put off. It stays for those imported later."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.importing = True  # the client is: only then may its functions be put off

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The ordinary spec with another loader, or None for the modules left alone."""
        if fullname in _ON_CALL and self.importing:
            spec = PathFinder.find_spec(fullname, path, target)
            return ModuleSpec(fullname, _OnCall(spec), origin=spec.origin) if spec else None
        if not any(
            fullname == given or (given.endswith(".") and fullname.startswith(given))
            for given in _PUT_OFF[self.package]
        ):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.submodule_search_locations is None or spec.loader is None:
            return None
        spec.loader = _PutOff(spec.loader, spec.origin)
        return spec


class _PutOff(Loader):
    """Loads a package without running its `__init__`."""

    def __init__(self, real: Loader, origin: str | None) -> None:
        self._real = real
        self._origin = origin

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the import system."""
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Give the package a `__getattr__` (PEP 562) that finds what is asked of it."""
        sources: dict[str, tuple[str, str]] | None = None
        ran = False

        def resolve(name: str) -> object:
            nonlocal sources, ran
            if name.startswith("__") and name != "__all__":
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            with _lock:
                if name in vars(module):
                    return vars(module)[name]
                if not ran and _is_submodule(module, name):
                    return importlib.import_module(f"{module.__name__}.{name}")
                if sources is None:
                    sources = _reexports(self._origin)
                if not ran and name in sources:
                    source, original = sources[name]
                    found = importlib.import_module(f"{module.__name__}.{source}")
                    value: object = getattr(found, original)
                    setattr(module, name, value)
                    return value
                if not ran:
                    ran = True
                    self._real.exec_module(module)
            try:
                return vars(module)[name]
            except KeyError:
                message = f"module {module.__name__!r} has no attribute {name!r}"
                raise AttributeError(message) from None

        module.__dict__["__getattr__"] = resolve


def _is_submodule(module: ModuleType, name: str) -> bool:
    return any(
        (Path(folder) / f"{name}.py").is_file() or (Path(folder) / name / "__init__.py").is_file()
        for folder in module.__path__
    )


def _reexports(origin: str | None) -> dict[str, tuple[str, str]]:
    """Name -> submodule and name there, for every `from .submodule import name` of a file."""
    if origin is None:
        return {}
    return {
        alias.asname or alias.name: (statement.module, alias.name)
        for statement in ast.parse(Path(origin).read_bytes()).body
        if isinstance(statement, ast.ImportFrom) and statement.level == 1 and statement.module
        for alias in statement.names
    }


class _OnCall(Loader):
    """Loads a module whose functions import it when they are called."""

    def __init__(self, real: ModuleSpec) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the import system."""
        del spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module a `__getattr__` that makes a function of the name."""

        def call_later(name: str) -> Callable[..., object]:
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

            def call(*given: object, **named: object) -> object:
                function = getattr(self._load(module.__name__), name)
                return cast("object", function(*given, **named))

            return call

        module.__dict__["__getattr__"] = call_later

    def _load(self, name: str) -> ModuleType:
        with _lock:
            module = sys.modules.get(name)
            if module is None or module.__spec__ is not self._real:
                module = importlib.util.module_from_spec(self._real)
                sys.modules[name] = module
                assert self._real.loader is not None
                self._real.loader.exec_module(module)
            return module
