"""The sandboxes of a process: their backend, temporary files, and the watchdog of helpers."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.ids import SessionId
from acp_agent.platform.posix import outside_folders
from acp_agent.platform.watchdog import Watchdog
from acp_agent.sandbox.temporary_folder import TemporaryFolder, remove_tree

if TYPE_CHECKING:  # not at start-up
    from acp_agent.config.sandbox_types import SandboxConfig
    from acp_agent.sandbox.launch import Confine, Launch
    from acp_agent.sandbox.policy import SandboxPolicy
    from acp_agent.sandbox.sandbox import Backend, Sandbox, Unavailable

_MARK = "ACP_AGENT_HELPER"  # the variable that identifies helpers
_CLOSE_SECONDS = 2.0  # seconds that closing waits for the search for a backend


class SharedSandboxes:
    """The sandboxes of a process; the machine's sandbox backend is detected once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backend: Backend | Unavailable | None = None
        self._notice_returned = False
        self._closed = False
        self._folder = TemporaryFolder()
        self._watch = Watchdog(f"{_MARK}={os.urandom(16).hex()}")  # ends helpers if we are killed

    def temporary(self, user: SessionId | str) -> str:
        """Return the folder that is a session's /tmp; it need not exist yet."""
        return f"{self._folder.path}/{user}"

    def notice(self) -> str:
        """Return why commands are not, or only partly, confined; "" after the first call."""
        if self._notice_returned or self._backend is None:
            return ""
        from acp_agent.sandbox.sandbox import Unavailable  # noqa: PLC0415 - when first needed

        self._notice_returned = True
        if isinstance(self._backend, Unavailable):
            return str(self._backend)
        return self._backend.notice

    def confine(
        self, config: SandboxConfig, search_path: str | None, write: Sequence[str] = ()
    ) -> Confine:
        """Return the launcher of this program's own helpers, confined if possible.

        Args:
            write: the folders that they may change, resolved.
        """

        def launch(argv: Sequence[str], environ: Mapping[str, str], cwd: str) -> Launch:
            from acp_agent.sandbox.launch import unconfined  # noqa: PLC0415 - when first needed
            from acp_agent.sandbox.programs import launch_reader  # noqa: PLC0415 - likewise

            backend = self.find(config, search_path, cwd)
            # Inside the sandbox, root has no rights to other users' folders.
            owned = all(os.stat(folder).st_uid == os.geteuid() for folder in write)  # noqa: PTH116 - strings
            if backend is None or not owned:
                return unconfined(argv, environ, cwd)
            return self._marked(launch_reader(backend, argv, environ, cwd, write=write))

        return launch

    def find(self, config: SandboxConfig, search_path: str | None, cwd: str) -> Backend | None:
        """Return the sandbox backend; None if there is none or the sandbox is disabled."""
        from acp_agent.sandbox.sandbox import Unavailable  # noqa: PLC0415 - when first needed

        backend = self._find(search_path, (cwd,), config) if config.enabled else None
        return None if isinstance(backend, Unavailable) else backend

    def _marked(self, launch: Launch) -> Launch:
        """Return the launch of a helper with the mark by which the watchdog finds it."""
        return replace(launch, environ=launch.environ | self._mark)

    async def remove_temporary(self, user: SessionId | str) -> None:
        """Remove a session's temporary files. Its programs have ended."""
        if self._folder.exists:
            await asyncio.to_thread(remove_tree, self.temporary(user))

    async def aclose(self) -> None:
        """Wait a moment for a running search for a backend, and remove all temporary files.

        If the search takes longer, the watchdog ends its program when this process ends, and a
        later process removes the files.
        """
        if await asyncio.to_thread(self._close):
            await self._watch.aclose()

    def _close(self) -> bool:
        if not self._lock.acquire(timeout=_CLOSE_SECONDS):
            return False
        self._closed = True
        self._lock.release()
        self._folder.remove()
        return True

    @property
    def _mark(self) -> dict[str, str]:
        name, _, value = self._watch.mark.partition("=")
        return {name: value}

    def make(self, policy: SandboxPolicy, search_path: str | None) -> Sandbox | Unavailable:
        """Return a session's sandbox, or why there is none. Blocks: call it in a thread.

        Args:
            search_path: the PATH variable in which programs are searched.
        """
        from acp_agent.sandbox.sandbox import Sandbox, Unavailable  # noqa: PLC0415 - when first needed

        backend = self._find(search_path, policy.roots, policy.config)
        return backend if isinstance(backend, Unavailable) else Sandbox(backend, policy)

    def _find(
        self, search_path: str | None, roots: Sequence[str], config: SandboxConfig
    ) -> Backend | Unavailable:
        from acp_agent.sandbox.sandbox import Unavailable, find_backend  # noqa: PLC0415 - when first needed

        with self._lock:
            if self._backend is None:
                if self._closed:
                    raise OSError(errno.ESHUTDOWN, "this program is ending")
                try:
                    self._folder.create()
                except OSError as error:
                    why = f"no temporary folder can be created ({error})"
                    self._backend = Unavailable(why, "set TMPDIR to a folder that you may change")
                    return self._backend
                self._watch.start()
                self._backend = find_backend(
                    outside_folders(search_path if search_path is not None else os.defpath, roots),
                    config.backend,
                    config.image,
                    folder=self._folder.path,
                    mark=self._mark,
                )
            return self._backend
