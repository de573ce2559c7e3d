"""Store of the items that the user trusts, a file in the user's data folder.

Several processes share the file: it is replaced atomically under a lock, and read again after a
change. If it cannot be read, nothing is trusted and the file is not overwritten.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field

from acp_agent.errors import StoreError
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.posix import locked, write_private
from acp_agent.trust.items import Item

_LOCK_SECONDS = 5.0

_log = logging.getLogger(__name__)


class TrustedFolder(Struct, frozen=True, kw_only=True):
    """The trusted items of a folder; `since` is in UTC (ISO 8601)."""

    since: str
    items: tuple[Item, ...] = ()


class _TrustFile(Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    folders: dict[str, TrustedFolder] = field(default_factory=dict)


_Folders = Mapping[str, TrustedFolder]


class TrustStore:
    """The trusted items of all folders. Safe to use from several threads and processes.

    Args:
        path: a JSON file; it and its folder need not exist.
        always: folders from the user's configuration in which every item is trusted.
    """

    def __init__(self, path: Path, always: Sequence[str] = ()) -> None:
        self._path = path
        self._always = tuple(os.path.realpath(Path(folder).expanduser()) for folder in always)
        self._thread_lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._folders: _Folders = {}
        self._items: dict[tuple[str, str, str], Item] = {}
        self._for_now: set[tuple[str, str, str, str]] = set()
        self._problem = ""

    def trusts(self, item: Item) -> bool:
        """Return whether the user trusts an item with its current content."""
        if any(Path(item.folder).is_relative_to(folder) for folder in self._always):
            return True
        if not item.digest:
            return False
        trusted = self.trusted_version(item)
        if trusted is not None and trusted.digest == item.digest:
            return True
        return (item.folder, *item.key, item.digest) in self._for_now

    def trust_for_now(self, items: Iterable[Item]) -> None:
        """Trust items with their current content until this process ends."""
        self._for_now |= {(item.folder, *item.key, item.digest) for item in items}

    def trusted_version(self, item: Item) -> Item | None:
        """Return the version of an item that the user trusted last, or None."""
        with self._thread_lock:
            self._refresh()
            return self._items.get((item.folder, *item.key))

    @property
    def folders(self) -> _Folders:
        """The folders that have trusted items."""
        with self._thread_lock:
            self._refresh()
            return self._folders

    @property
    def problem(self) -> str:
        """Why the file cannot be used, in one line; empty if it can."""
        with self._thread_lock:
            self._refresh()
            return self._problem

    def trust(self, items: Iterable[Item]) -> None:
        """Trust items with their current content. Blocks while it writes. Raises StoreError."""
        new = [msgspec.structs.replace(item, what="") for item in items if item.digest]

        def change(old: _Folders) -> _Folders:
            folders = dict(old)
            for item in new:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                folder = folders.get(item.folder, TrustedFolder(since=now))
                remaining = [existing for existing in folder.items if existing.key != item.key]
                folders[item.folder] = TrustedFolder(since=folder.since, items=(*remaining, item))
            return folders

        if new:
            self._change(change)

    def revoke(self, folder: str) -> bool:
        """Revoke the trust in all items of a folder; return whether there was any. Blocks.

        Raises:
            StoreError: the file cannot be written.
        """
        if folder not in self.folders:
            return False
        self._change(lambda old: {name: trusted for name, trusted in old.items() if name != folder})
        return True

    def _change(self, change: Callable[[_Folders], _Folders]) -> None:
        try:
            with locked(self._path, _LOCK_SECONDS), self._thread_lock:
                self._stamp = None  # another process may have written in the same tick
                self._refresh()
                if self._problem:
                    raise StoreError(self._problem)
                content = msgspec.json.encode(_TrustFile(folders=dict(change(self._folders))))
                write_private(self._path, msgspec.json.format(content, indent=2) + b"\n")
                self._stamp = None
        except TimeoutError:
            raise StoreError(
                f"another process holds {self._path} for too long; nothing was remembered"
            ) from None
        except OSError as error:
            reason = error.strerror or "unknown error"
            raise StoreError(
                f"cannot remember what is trusted in {self._path}: {reason}; check the folder"
            ) from error

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        try:
            status = self._path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if stamp == self._stamp:
                return
            content = self._path.read_bytes()
        except FileNotFoundError:
            self._set_state({}, None)
            return
        except OSError as error:
            self._set_state({}, None, f"{error.strerror or 'unknown error'}; check who may read it")
            return
        try:
            self._set_state(decode_json(content, _TrustFile).folders, stamp)
        except (ValueError, RecursionError):  # invalid UTF-8 or JSON
            self._set_state({}, stamp, "it is damaged or of a newer version; fix or remove it")

    def _set_state(
        self, folders: _Folders, stamp: tuple[int, int, int] | None, why: str = ""
    ) -> None:
        problem = why and f"{self._path} cannot be read, so no folder is trusted: {why}"
        if problem and problem != self._problem:
            _log.warning("%s", problem)
        self._stamp, self._folders, self._problem = stamp, folders, problem
        self._items = {
            (folder, *item.key): item
            for folder, trusted in folders.items()
            for item in trusted.items
        }
