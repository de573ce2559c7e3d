"""Loads the modules of a start from one file instead of hundreds.

To import a module, Python searches folders, compares times and reads a `.pyc` file. For the 300
modules of a start that takes as long as running most of them. `use` offers the modules that an
earlier process imported from one file, which `save` writes. The file is in the package's
`__pycache__` and as trustworthy as the `.pyc` files there. It counts only for the same interpreter
and search path, and each module in it only while its source has the same size and time.
"""

from __future__ import annotations

import marshal
import os
import sys

# Also in `importlib.machinery` and `importlib.util`, whose import takes longer than it saves.
from _frozen_importlib_external import SourceFileLoader, spec_from_file_location

TYPE_CHECKING = False  # `typing` would be imported without the cache
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import TypeAlias

    # A module in the file: its source and the source's time (ns) and size (bytes); a package's
    # folders; where its code starts after the index, and its length (bytes).
    Entry: TypeAlias = tuple[str, int, int, list[str] | None, int, int]

FILE_NAME = f"modules.{sys.implementation.cache_tag}.bin"

_LENGTH = 8  # bytes at the start of the file: the length of the index
_TOLERATED = 20  # modules that may be missing in the file; with more, it is written again
_DAMAGE = (OSError, EOFError, ValueError, TypeError)  # raised for a missing or damaged file


class _CachedLoader(SourceFileLoader):
    """Loads a module's code from the cache file, or as usual where that is damaged."""

    def __init__(self, name: str, source: str, code: tuple[int, int, int]) -> None:
        super().__init__(name, source)
        self._code = code  # file descriptor, length, offset

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            code: CodeType = marshal.loads(os.pread(*self._code))  # noqa: S302 - as for .pyc files
        except _DAMAGE:
            return super().get_code(fullname)
        return code


class ModuleCache:
    """A finder (`sys.meta_path`) of the modules in a cache file.

    Args:
        path: the file, which need not exist.
        key: what must be the same in the process that wrote it.
    """

    def __init__(self, path: str, key: tuple[str | int, ...]) -> None:
        self._path = path
        self._key = key
        self._file = -1
        self._offset = 0
        self._entries: dict[str, Entry] = {}
        self._saved = False
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            length = int.from_bytes(os.pread(self._file, _LENGTH, 0), "little")
            index = os.pread(self._file, length, _LENGTH)
            key_of_file, entries = marshal.loads(index)  # noqa: S302 - as for .pyc files
        except _DAMAGE:
            return
        if key_of_file == key:
            self._offset = _LENGTH + length
            self._entries = entries

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose source has not changed, or None."""
        del path, target
        entry = self._entries.get(fullname)
        if entry is None or not _is_current(entry):
            return None
        source, _, _, folders, start, length = entry
        loader = _CachedLoader(fullname, source, (self._file, length, self._offset + start))
        return spec_from_file_location(
            fullname, source, loader=loader, submodule_search_locations=folders
        )

    def save(self) -> None:
        """Write the file again if many of the imported modules are missing in it.

        Only the first call does something: each session of a process ends its preparation with it.
        """
        if self._saved:
            return
        self._saved = True
        missing = [
            (name, spec)
            for name, module in list(sys.modules.items())
            if (spec := getattr(module, "__spec__", None)) is not None
            and type(spec.loader) is SourceFileLoader
            and spec.name == name
        ]
        if len(missing) <= _TOLERATED:
            return
        codes: list[bytes] = []
        entries: dict[str, Entry] = {}
        end = 0
        for name, entry in self._entries.items():
            if _is_current(entry):
                source, modified, size, folders, start, length = entry
                codes.append(os.pread(self._file, length, self._offset + start))
                entries[name] = (source, modified, size, folders, end, length)
                end += length
        for name, spec in missing:
            try:
                state = os.stat(spec.origin)  # noqa: PTH116 - pathlib takes time
                code = marshal.dumps(spec.loader.get_code(name))
            except (OSError, ImportError, SyntaxError, ValueError):
                continue  # the source has changed since
            folders = spec.submodule_search_locations and list(spec.submodule_search_locations)
            entries[name] = (
                spec.origin, state.st_mtime_ns, state.st_size, folders, end, len(code)
            )  # fmt: skip
            codes.append(code)
            end += len(code)
        index = marshal.dumps((self._key, entries))
        _replace(self._path, [len(index).to_bytes(_LENGTH, "little"), index, *codes])


def use() -> None:
    """Import modules from the cache file from now on, where Python uses `.pyc` files as usual."""
    if sys.pycache_prefix is not None or os.environ.get("PYTHONPATH"):
        return  # the files are elsewhere, or modules are found elsewhere
    package = __file__.removesuffix(os.path.join("platform", "module_cache.py"))  # noqa: PTH118
    path = os.path.join(package, "__pycache__", FILE_NAME)  # noqa: PTH118
    folders = sys.path if sys.flags.safe_path else sys.path[1:]  # the first is the program's
    key: tuple[str | int, ...] = (sys.version, sys.flags.optimize, package, *folders)
    sys.meta_path.insert(0, ModuleCache(path, key))


def save() -> None:
    """Write the cache file for later processes, if `use` was called and it lacks many modules.

    Takes up to a second. A folder that is not writable is left alone, as by Python.
    """
    if sys.dont_write_bytecode:
        return
    for finder in sys.meta_path:
        if isinstance(finder, ModuleCache):
            finder.save()
            return


def _is_current(entry: Entry) -> bool:
    try:
        state = os.stat(entry[0])  # noqa: PTH116 - pathlib takes time
    except OSError:
        return False
    return (state.st_mtime_ns, state.st_size) == entry[1:3]


def _replace(path: str, contents: Sequence[bytes]) -> None:
    """Write a file under another name and rename it, so that no process reads half of it.

    One process writes at a time, and the next one overwrites what a killed one left.
    """
    from contextlib import suppress  # noqa: PLC0415 - not imported yet when the module is

    from acp_agent.platform.posix import try_lock  # noqa: PLC0415 - likewise

    new = f"{path}.new"
    with suppress(OSError):
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            if not try_lock(descriptor):
                return
            if not os.path.samestat(os.fstat(descriptor), os.stat(new)):  # noqa: PTH116 - likewise
                return  # another process has just renamed the file that was opened
            file.truncate(0)
            file.writelines(contents)
            file.flush()
            os.replace(new, path)  # noqa: PTH105 - likewise
