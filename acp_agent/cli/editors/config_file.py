"""A user's configuration file. It is read unchanged, and written completely or not at all.

Links are followed, so that a file among dotfiles stays there. Owner and permissions are kept, and
the previous version is saved next to the file. A file that the user clearly may not change is not
written; the error says why.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import InvalidInputError

BACKUP_SUFFIX = ".before-acp-agent"
_MAX_BYTES = 4 * 1024 * 1024  # bytes
_READ_ONLY_STORES = (Path("/nix/store"), Path("/gnu/store"))


class ConfigFile(Struct, frozen=True):
    """A file as it was read.

    Attributes:
        real: the path after following links; equal to `path` if there are none.
        data: its bytes; None if the file does not exist.
    """

    path: Path
    real: Path
    data: bytes | None

    @property
    def backup(self) -> Path:
        """Return the path of the saved previous version."""
        return self.real.with_name(self.real.name + BACKUP_SUFFIX)


def read(path: Path) -> ConfigFile:
    """Read a file that is to be changed, or find that it does not exist.

    Raises:
        InvalidInputError: we must not change it; the message says why.
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
        if state.st_size > _MAX_BYTES:
            raise InvalidInputError(f"it is too large for a settings file ({state.st_size} bytes)")
        _check_folder(real)
        return ConfigFile(path, real, real.read_bytes())
    except OSError as error:
        raise InvalidInputError(_reason(error)) from None


def write(file: ConfigFile, data: bytes, *, keep: bool) -> None:
    """Replace the file with `data`.

    Args:
        file: the file as it was read; a file that has changed since is not written.
        keep: save the previous version to `file.backup` first, replacing an older one.

    Raises:
        InvalidInputError: it could not be written; the file is unchanged.
    """
    try:
        _check_unchanged(file)
        file.real.parent.mkdir(parents=True, exist_ok=True)
        if keep and file.data is not None:
            _replace(file.backup, file.data, like=file.real)
        _replace(file.real, data, like=file.real if file.data is not None else None)
    except OSError as error:
        raise InvalidInputError(_reason(error)) from None


def delete(file: ConfigFile) -> None:
    """Delete a file that we created. Raises InvalidInputError."""
    try:
        _check_unchanged(file)
        file.real.unlink()
    except OSError as error:
        raise InvalidInputError(_reason(error)) from None


def read_backup(file: ConfigFile) -> bytes | None:
    """Return the file's content before our last change; None if no backup exists."""
    with suppress(OSError):
        if file.backup.is_file() and file.backup.stat().st_size <= _MAX_BYTES:
            return file.backup.read_bytes()
    return None


def drop_backup(file: ConfigFile) -> None:
    """Delete the backup, once its content has been restored."""
    with suppress(OSError):
        file.backup.unlink()


def _check_unchanged(file: ConfigFile) -> None:
    current = file.real.read_bytes() if file.real.exists() else None
    if current != file.data:
        raise InvalidInputError("it changed meanwhile; run the command again")


def _check_folder(real: Path) -> None:
    """Check that a file can be created next to `real`; its folders may not exist yet."""
    folder = next(parent for parent in real.parents if parent.exists())
    effective = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective):
        raise InvalidInputError(f"{folder} cannot be written")


def _replace(path: Path, data: bytes, *, like: Path | None) -> None:
    """Write a temporary file and rename it to `path`, with the permissions of `like`."""
    descriptor, name = tempfile.mkstemp(
        prefix=f".{path.name}.acp-agent-", suffix=".tmp", dir=path.parent
    )
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if like is not None:
            shutil.copymode(like, temporary)
            with suppress(PermissionError):  # a group that we are not a member of
                os.chown(temporary, -1, like.stat().st_gid)
        else:
            temporary.chmod(0o666 & ~_mask())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
    return f"{(error.strerror or type(error).__name__).lower()} ({error.filename})"
