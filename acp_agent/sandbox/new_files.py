"""Find files that other programs run automatically and that commands created."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from acp_agent.platform.nofollow import grant_owner_access, opened_folder
from acp_agent.sandbox.policy import existing_paths


class _State(Struct, frozen=True):
    """The target of a name."""

    link: str | None  # the text of the symlink, if it is one
    target: str  # the path with all links resolved
    exists: bool


class NewFiles:
    """Files that run automatically, as they were while no confined program ran.

    Args:
        paths: the names, absolute.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._initial = {path: _state(path) for path in existing_paths(self._paths)}
        # A folder's ctime changes with its entries, and programs cannot set it.
        self._folders = tuple({path.rpartition("/")[0] for path in self._paths})
        self._times: tuple[object, ...] = ()
        self._locked = {folder for folder in self._folders if not _is_open(folder)}

    def find(self, *, ended: bool) -> Iterator[str]:
        """Yield the paths to rename: new files, and links with another target.

        Args:
            ended: whether no command runs any more. Then everything is checked, since a folder's
                time does not tell two changes apart that are made within a few milliseconds.
        """
        times = tuple(_folder_stamp(folder) for folder in self._folders)
        linked = any(state.link for state in self._initial.values())
        if times == self._times and not (ended or linked):
            return
        self._times = times
        self._unlock()
        for path in existing_paths(self._paths):
            initial, current = self._initial.get(path), _state(path)
            if initial is not None and current == initial:
                continue
            if initial is not None and initial.link is not None and current.link == initial.link:
                yield current.target  # an old link with a new target
            else:
                yield path

    def _unlock(self) -> None:
        """Make folders readable again that a command made unreadable."""
        for folder in sorted(self._folders):  # parents first
            if folder not in self._locked and not _is_open(folder):
                with suppress(OSError), opened_folder(folder) as opened:
                    grant_owner_access(opened)

    def restore(self, path: str) -> None:
        """Create a replaced link again, after its replacement was renamed."""
        initial = self._initial.get(path)
        if initial is not None and initial.link is not None:
            with suppress(OSError):
                os.symlink(initial.link, path)  # noqa: PTH211 - as above

    def allow(self, path: str) -> None:
        """Ignore this path, and names above and below it."""
        for name in self._paths:
            if f"{path}/".startswith(f"{name}/") or f"{name}/".startswith(f"{path}/"):
                self._initial.pop(name, None)
                self._paths = tuple(remaining for remaining in self._paths if remaining != name)


def _state(path: str) -> _State:
    link = None
    with suppress(OSError):
        link = os.readlink(path)  # noqa: PTH115 - as above
    target = os.path.realpath(path)
    return _State(link, target, os.path.exists(target))


def _is_open(folder: str) -> bool:
    """Return whether this user can list and change a folder; true if it does not exist."""
    return not os.path.lexists(folder) or os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def _folder_stamp(folder: str) -> tuple[int, int, int] | None:
    with suppress(OSError):
        status = os.stat(folder)  # noqa: PTH116 - as above
        return status.st_dev, status.st_ino, status.st_ctime_ns
    return None
