"""The folder for the temporary files of a process, and the removal of folders of dead processes."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from acp_agent.platform.posix import try_lock

_PREFIX = "acp-agent-"
_UNNAMED = ".new"  # ends the name of a folder that is not locked yet
_RANDOM_BYTES = 8
_HEX = "0123456789abcdef"
_ATTEMPTS = 3
_REMOVED_AT_ONCE = 50  # folders of dead processes


class TemporaryFolder:
    """A private folder that exists while this process runs.

    The process locks the folder. A process that is killed leaves it, without the lock, and one of
    the next processes removes it.
    """

    def __init__(self) -> None:
        self._base = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - created with a private mode
        # Random, so that other users cannot guess it.
        self.path = f"{self._base}/{_PREFIX}{os.urandom(_RANDOM_BYTES).hex()}"
        self._descriptor: int | None = None

    @property
    def exists(self) -> bool:
        """Return whether the folder was created, and not removed."""
        return self._descriptor is not None

    def create(self) -> None:
        """Create and lock the folder, and remove those of dead processes in the background.

        Raises:
            OSError: it cannot be created.
        """
        if self._descriptor is not None:
            return
        self._descriptor = _create_locked(self.path)
        arguments = (os.path.realpath(self._base),)
        threading.Thread(target=remove_abandoned_folders, args=arguments, daemon=True).start()

    def remove(self) -> None:
        """Remove the folder, and release its lock."""
        if self._descriptor is not None:
            remove_tree(self.path)
            os.close(self._descriptor)
            self._descriptor = None


def remove_abandoned_folders(base: str) -> None:
    """Remove this user's folders in `base` that no process locks; not more than fifty."""
    removed = 0
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if not _has_name(entry.name) or not _is_own_folder(entry):
                continue
            with suppress(OSError):
                descriptor = _open_folder(entry.path)
                try:
                    if try_lock(descriptor):
                        remove_tree(entry.path)
                        removed += 1
                finally:
                    os.close(descriptor)
            if removed == _REMOVED_AT_ONCE:
                return


def remove_tree(path: str) -> None:
    """Remove a folder with everything in it, as far as possible, and follow no symlink."""
    import shutil  # noqa: PLC0415 - heavy, and not needed at start-up

    from acp_agent.platform.nofollow import grant_owner_access, opened_folder, real_path  # noqa: PLC0415 - so

    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):  # it has folders without write permission, as Go's module cache has
        for folder, names, _ in os.walk(real_path(path)):
            for name in names:
                with suppress(OSError), opened_folder(Path(folder, name)) as descriptor:
                    grant_owner_access(descriptor)
        shutil.rmtree(path, ignore_errors=True)


def _create_locked(path: str) -> int:
    """Create a folder; it gets its name with the lock, since unlocked folders are removed."""
    for attempt in range(_ATTEMPTS):
        unnamed = f"{path}{_UNNAMED}{attempt}"
        os.mkdir(unnamed, 0o700)  # noqa: PTH102 - a string
        with suppress(FileNotFoundError):  # another process has just removed it
            descriptor = _open_folder(unnamed)
            try_lock(descriptor)
            os.rename(unnamed, path)  # noqa: PTH104 - a string
            return descriptor
    raise FileNotFoundError(path)


def _open_folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _has_name(name: str) -> bool:
    random = name.partition(_UNNAMED)[0].removeprefix(_PREFIX)
    return name.startswith(_PREFIX) and len(random) == 2 * _RANDOM_BYTES and not random.strip(_HEX)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            entry.is_dir(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    except OSError:
        return False
