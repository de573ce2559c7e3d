"""Items of a folder that can run code or steer the agent, identified by their content."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

Kind = Literal[
    "skill", "agent", "rules", "instructions", "git", "code", "mcp", "hooks", "plugin",
    "workflow",
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
    def key(self) -> tuple[str, str]:
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
