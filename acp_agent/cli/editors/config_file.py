"""A configuration file of the user's: read as it is, written as a whole or not at all.

A link is followed, so that a file kept among dotfiles stays there; owner and permissions stay; a
copy of what was there before lies beside it. What is not plainly the user's own to write is left
alone: the reason is in the error.

A file is written under another name first. Whoever writes holds a lock on the folder, which goes
with the process, however that ends; so what has such a name while nobody has the lock is what a
setup left that was killed, and `sweep` takes it away.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import InvalidInputError
from acp_agent.platform import posix

BACKUP_SUFFIX = ".before-acp-agent"
_LARGEST = 4 * 1024 * 1024  # bytes
_LOCK_SECONDS = 3.0  # for another setup to be done with the folder
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.acp-agent-[a-z0-9_]{8}\.tmp", re.DOTALL)
_READ_ONLY_STORES = (Path("/nix/store"), Path("/gnu/store"))


class ConfigFile(Struct, frozen=True):
    """A file as it was read.

    Attributes:
        path: as the editor names it.
        real: what it is after every link; equal to `path` where there is none.
        data: its bytes; None where there is no file yet.
    """

    path: Path
    real: Path
    data: bytes | None

    @property
    def backup(self) -> Path:
        """Where the copy of what was there before is."""
        return self.real.with_name(self.real.name + BACKUP_SUFFIX)


def read(path: Path) -> ConfigFile:
    """Read a file that is to be changed, or find that it is not there.

    Raises:
        InvalidInputError: it is not one that we may change; the message says why.
    """
    try:
        real = Path(os.path.realpath(path, strict=False))
        if any(real.is_relative_to(store) for store in _READ_ONLY_STORES):
            raise InvalidInputError(
                f"it is a link to {real}, which Nix or Guix writes: add the lines there"
            )
        if path.is_symlink() and real.is_symlink():
            raise InvalidInputError("it is a circular link")
        try:
            state = real.stat()
        except FileNotFoundError:
            _check_folder(real)
            return ConfigFile(path, real, None)
        if not stat.S_ISREG(state.st_mode):
            raise InvalidInputError("it is no ordinary file")
        if state.st_uid != os.geteuid():
            raise InvalidInputError("it belongs to another user")
        if not state.st_mode & stat.S_IWUSR:
            raise InvalidInputError("it is read-only")
        if state.st_nlink > 1:
            raise InvalidInputError("it has several hard links, which writing would separate")
        if state.st_size > _LARGEST:
            raise InvalidInputError(f"it is too large for a settings file ({state.st_size} bytes)")
        _check_folder(real)
        return ConfigFile(path, real, real.read_bytes())
    except OSError as error:
        raise InvalidInputError(_reason(error)) from None


def write(file: ConfigFile, data: bytes, *, keep: bool) -> None:
    """Put `data` in the place of what was read.

    Args:
        file: as it was read; a file that changed since then is left alone.
        data: its new bytes.
        keep: copy what was there to `file.backup` first. An older copy is replaced.

    Raises:
        InvalidInputError: it could not be written; the file is as it was.
    """
    try:
        _check_unchanged(file)
        file.real.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(file.real.parent):
            if keep and file.data is not None:
                _replace(file.backup, file.data, like=file.real)
            _replace(file.real, data, like=file.real if file.data is not None else None)
    except OSError as error:
        raise InvalidInputError(_reason(error)) from None


def delete(file: ConfigFile) -> None:
    """Take away a file that we made.

    Raises:
        InvalidInputError: it changed since it was read, or cannot be taken away.
    """
    try:
        _check_unchanged(file)
        file.real.unlink()
    except OSError as error:
        raise InvalidInputError(_reason(error)) from None


def sweep(file: ConfigFile) -> list[Path]:
    """Take away what a setup of this file left that was killed while it wrote; gives what it was.

    Raises:
        InvalidInputError: another setup writes in the folder.
    """
    folder = file.real.parent
    if not any(_is_unfinished(path, file) for path in _entries(folder)):
        return []
    taken: list[Path] = []
    with _alone_in(folder) as alone:
        for path in _entries(folder) if alone else ():
            if _is_unfinished(path, file):
                with suppress(OSError):
                    path.unlink()
                    taken.append(path)
    return taken


def read_backup(file: ConfigFile) -> bytes | None:
    """What the file was before we changed it last; None where no copy is left."""
    with suppress(OSError):
        if file.backup.is_file() and file.backup.stat().st_size <= _LARGEST:
            return file.backup.read_bytes()
    return None


def drop_backup(file: ConfigFile) -> None:
    """Take the copy away once what it has is in the file again."""
    with suppress(OSError):
        file.backup.unlink()


def drop_equal_backup(file: ConfigFile) -> None:
    """Take the copy away where it is what the file is, as an undo leaves it that was killed."""
    if file.data is not None and read_backup(file) == file.data:
        drop_backup(file)


def _check_unchanged(file: ConfigFile) -> None:
    now = file.real.read_bytes() if file.real.exists() else None
    if now != file.data:
        raise InvalidInputError("it changed meanwhile; run the command again")


def _check_folder(real: Path) -> None:
    """That a file can be put beside `real`, whose folders may have to be made first."""
    folder = next(place for place in real.parents if place.exists())
    effective = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective):
        raise InvalidInputError(f"{folder} cannot be written")


@contextmanager
def _alone_in(folder: Path) -> Iterator[bool]:
    """Have the folder's lock; false where the file system has no locks.

    Raises:
        InvalidInputError: another process has it, and goes on having it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may be written, and not read
        yield False
        return
    try:
        yield _lock(descriptor, folder)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> bool:
    try:
        posix.wait_for_lock(descriptor, _LOCK_SECONDS)
    except TimeoutError:
        raise InvalidInputError(
            f"another setup writes in {folder}; run the command again"
        ) from None
    except OSError:
        return False
    return True


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_unfinished(path: Path, file: ConfigFile) -> bool:
    """Whether a path is what `_replace` names a file of this one, and plainly our own."""
    found = _UNFINISHED.fullmatch(path.name)
    if found is None or found["name"] not in {file.real.name, file.backup.name}:
        return False
    try:
        state = path.lstat()
    except OSError:
        return False
    ours = state.st_uid == os.geteuid() and state.st_nlink == 1
    return ours and stat.S_ISREG(state.st_mode)


def _replace(path: Path, data: bytes, *, like: Path | None) -> None:
    """Write a file beside `path` and give it its name, with the permissions of `like`."""
    descriptor, name = tempfile.mkstemp(
        prefix=f".{path.name}.acp-agent-", suffix=".tmp", dir=path.parent
    )
    written = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if like is not None:
            shutil.copymode(like, written)
            with suppress(PermissionError):  # a group that we are not in
                os.chown(written, -1, like.stat().st_gid)
        else:
            written.chmod(0o666 & ~_mask())
        written.replace(path)
    except BaseException:
        with suppress(OSError):
            written.unlink()
        raise


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
    return f"{(error.strerror or type(error).__name__).lower()} ({error.filename})"
