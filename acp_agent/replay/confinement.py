"""Prevent a replay from starting programs, using the network and writing outside its folder.

An audit hook (PEP 578) sees every such call in this process. A hook cannot be removed, so there is
only one, which does nothing outside a replay.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from sys import addaudithook
from typing import Any

_REFUSED = frozenset(
    {
        "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork",
        "os.forkpty", "os.startfile", "pty.spawn", "socket.connect", "socket.sendto",
        "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname", "socket.bind",
    }
)  # fmt: skip
# The arguments that are changed paths, by event.
_CHANGED_PATHS: Mapping[str, tuple[int, ...]] = {
    "os.remove": (0,), "os.rmdir": (0,), "os.mkdir": (0,), "os.rename": (0, 1), "os.link": (1,),
    "os.symlink": (1,), "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,),
    "shutil.rmtree": (0,), "sqlite3.connect": (0,),
}  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class RefusedError(PermissionError):
    """A replay may not do this."""


class _Hook:
    """The hook; `folder` is where the current replay may write."""

    def __init__(self) -> None:
        self.folder: str | None = None

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _REFUSED:
            raise RefusedError(f"a replay does not do this: {event}")
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and not isinstance(path, int):
                self._check_path(path)
        elif event in _CHANGED_PATHS:
            for index in _CHANGED_PATHS[event]:
                self._check_path(arguments[index])

    def _check_path(self, path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        assert self.folder is not None
        name = Path(os.fsdecode(path))
        if not name.is_absolute():
            return  # relative to the working folder, which is `folder`, or to an open folder
        if not name.parent.resolve().is_relative_to(self.folder) and str(name) != os.devnull:
            raise RefusedError(f"a replay writes nothing outside its folder: {name}")


@cache
def _hook() -> _Hook:
    hook = _Hook()
    addaudithook(hook)
    return hook


@contextmanager
def confined(folder: Path) -> Iterator[None]:
    """Refuse forbidden actions in the whole process inside the `with` block.

    Args:
        folder: the folder in which writing is allowed; resolved.
    """
    hook = _hook()
    with chdir(folder):
        hook.folder = str(folder)
        try:
            yield
        finally:
            hook.folder = None
