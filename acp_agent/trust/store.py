"""Items of a folder that can run code or steer the agent, and those that the user trusts.

Items are identified by their content. The trusted ones are in a file in the user's data folder.

Several processes share the file: it is replaced atomically under a lock, and read again after a
change. If it cannot be read, nothing is trusted and the file is not overwritten.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field

from acp_agent.errors import StoreError
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.posix import locked, write_private

Kind = Literal[
    "skill", "agent", "rules", "instructions", "git", "code", "mcp", "hooks", "plugin",
    "settings", "workflow",
]  # fmt: skip

# Option id that identifies the question whether to trust a folder. No flag or mode answers it.
TRUST_OPTION = "trust_for_now"
_MAX_TEXT_BYTES = 16_000  # bytes of a text that is stored, to show later how it changed
_MAX_FILES = 2_000  # of one folder
_MAX_BYTES = 50_000_000  # of one folder
_CHUNK = 1 << 20
_MAX_FILE_NAME = 1_000  # characters of a word that may be a file
# Variables that hooks get, with the folder of the project.
PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "ACP_AGENT_PROJECT_DIR")
_PROJECT = re.compile(rf"\$\{{?({'|'.join(PROJECT_VARIABLES)})\b\}}?")
_LOCK_SECONDS = 5.0
_log = logging.getLogger(__name__)


class Item(Struct, frozen=True, kw_only=True):
    """An item of a folder that needs trust.

    Attributes:
        folder: the folder it belongs to, as returned by `folder_name`.
        digest: the SHA-256 of its content; "" if the content is too large or cannot be read, so
            that it is never trusted.
        what: what it does, in one line of English.
        text: the content if it is a short text, to show how it changed.
    """

    kind: Kind
    folder: str
    path: str
    digest: str
    what: str = ""
    text: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        """The kind and path, which identify the item in its folder."""
        return self.kind, self.path


Trusts = Callable[[Item], bool]


def text_item(kind: Kind, folder: str, path: Path, raw: bytes, what: str = "") -> Item:
    """Return the item for a file with the given content.

    Args:
        folder: the folder it belongs to, as returned by `folder_name`.
        what: what it does, in one line.
    """
    return Item(
        kind=kind,
        folder=folder,
        path=_path_within(path, folder),
        digest=hashlib.sha256(raw).hexdigest(),
        what=what,
        text=short_text(raw),
    )


def code_item(folder: Path) -> Item:
    """Return the item for the code of a project, which language servers run.

    Language servers run build scripts, macros and plugins, and may be programs of the project.
    The code changes with every edit, so trust in it depends on the folder, not on the content.
    """
    digest = hashlib.sha256(b"the code of the project").hexdigest()
    return Item(kind="code", folder=folder_name(folder), path=".", digest=digest)


def folder_name(folder: Path) -> str:
    """Return the resolved path of a folder as text, even if it is not valid UTF-8."""
    return _as_text(os.path.realpath(folder))


def _as_text(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _path_within(path: Path, folder: str) -> str:
    for candidate in (path, Path(os.path.realpath(path.parent), path.name)):
        if _as_text(str(candidate)).startswith(f"{folder.rstrip('/')}/"):
            return _as_text(str(candidate))[len(folder.rstrip("/")) + 1 :]
    return _as_text(str(path))


def short_text(raw: bytes) -> str:
    """Return the content as text if it is a short text, else ""."""
    if b"\0" in raw or len(raw) > _MAX_TEXT_BYTES:
        return ""
    return raw.decode("utf-8", "replace")


def folder_digest(folder: Path, without: frozenset[str] = frozenset()) -> tuple[str, list[str]]:
    """Return the digest of all files in a folder, and the paths of executable files.

    A symlink contributes its target path, and the content if the target is a file. The digest is
    "" if the files are too many or too large, or if one cannot be read. Reads every file: call it
    in a thread.

    Args:
        without: names of folders in it that are skipped.
    """
    digest, programs, remaining = hashlib.sha256(), list[str](), _MAX_BYTES
    try:
        for count, path in enumerate(_walk(folder, without)):
            name, status = path.relative_to(folder), path.stat()
            link = os.fsencode(path.readlink()) if path.is_symlink() else b""
            content, executable = b"", b"-"
            if not (link and stat.S_ISDIR(status.st_mode)):
                remaining -= status.st_size
                if count == _MAX_FILES or remaining < 0 or not stat.S_ISREG(status.st_mode):
                    return "", programs
                content = file_digest(path).encode()
                if status.st_mode & 0o111:
                    executable = b"x"
                    programs.append(str(name))
            for part in (os.fsencode(name), link, executable, content):
                digest.update(b"%d:%s" % (len(part), part))
    except OSError:
        return "", programs
    return digest.hexdigest(), programs


def named_files(command: str, project: Path) -> list[Path]:
    """Return the files of a project that are words of a command line. Reads folders."""
    words = command.split()
    with suppress(ValueError):  # the shell will report the error
        words = shlex.split(command, comments=True)
    return [path for word in words if (path := named_file(word, project)) is not None]


def named_file(word: str, project: Path) -> Path | None:
    """Return the file of a project that a word of a command names, or None."""
    if len(word) > _MAX_FILE_NAME:
        return None
    path = project / _PROJECT.sub(lambda _: str(project), word)
    return path if path.is_file() else None


def digest_with_files(digest: str, files: Collection[Path]) -> str:
    """Return a digest combined with the content of files; "" if one cannot be read."""
    if not files:
        return digest
    try:
        texts = [digest, *(f"{path}:{file_digest(path)}" for path in sorted(set(files)))]
    except OSError:
        return ""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a regular file, in hex. Raises OSError if the file cannot be read."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _walk(folder: Path, without: frozenset[str]) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise error

    for directory, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if name not in without)
        links = [name for name in folders if Path(directory, name).is_symlink()]
        for name in sorted((*names, *links)):
            yield Path(directory, name)


class TrustedFolder(Struct, frozen=True, kw_only=True):
    """The trusted items of a folder; `since` is in UTC (ISO 8601).

    `declined` are the kind, path and digest of items that the user decided to leave unused.
    """

    since: str
    items: tuple[Item, ...] = ()
    declined: tuple[tuple[Kind, str, str], ...] = ()


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
        self._remember([msgspec.structs.replace(item, what="") for item in items], trusted=True)

    def decline(self, items: Iterable[Item]) -> None:
        """Leave items with their current content unused. Blocks. Raises StoreError."""
        self._remember(list(items), trusted=False)

    def declines(self, item: Item) -> bool:
        """Return whether the user decided to leave an item with this content unused."""
        folder = self.folders.get(item.folder)
        return folder is not None and (*item.key, item.digest) in folder.declined

    def _remember(self, items: Sequence[Item], *, trusted: bool) -> None:
        new = [item for item in items if item.digest]

        def change(old: _Folders) -> _Folders:
            folders = dict(old)
            for item in new:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                folder = folders.get(item.folder, TrustedFolder(since=now))
                if trusted:
                    others = (existing for existing in folder.items if existing.key != item.key)
                    folder = msgspec.structs.replace(folder, items=(*others, item))
                declined = [entry for entry in folder.declined if entry[:2] != item.key]
                declined += [] if trusted else [(*item.key, item.digest)]
                folders[item.folder] = msgspec.structs.replace(folder, declined=tuple(declined))
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
