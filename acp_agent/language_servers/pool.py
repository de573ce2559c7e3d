"""The language servers of a process, shared by its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from acp_agent.language_servers.process import new_watch
from acp_agent.language_servers.programs import InstalledServer
from acp_agent.language_servers.server import LanguageServer
from acp_agent.sandbox.launch import Confine, unconfined

MAX_SERVERS = 8
# Seconds after its last use in which a server is not stopped for another one.
_MIN_IDLE_SECONDS = 60.0

Key = tuple[str, Path, tuple[str, ...], bool]


class ServerPool:
    """Starts servers, at most `MAX_SERVERS`, and shares them.

    Args:
        confine: says how they are started.
    """

    def __init__(self, environ: Mapping[str, str], confine: Confine = unconfined) -> None:
        self.environ = environ
        self._confine = confine
        self._servers: dict[Key, LanguageServer] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._watch = new_watch()
        self._closed = False

    def get(
        self, installed: InstalledServer, root: Path, *, trusted: bool
    ) -> LanguageServer | None:
        """Return the server of a project, started if necessary.

        None if it failed, or where as many run as may.
        """
        key = (installed.spec.name, root, installed.command, trusted)
        server = self._servers.get(key)
        if server is not None and server.state == "stopped":
            del self._servers[key]
            server = None
        if server is None:
            if self._closed or not self._free_slot():
                return None
            server = self._servers[key] = LanguageServer(
                installed,
                root,
                environ=self.environ,
                trusted=trusted,
                watch=self._watch,
                confine=self._confine,
            )
        server.use()
        return None if server.state == "failed" else server

    def servers(self, roots: Sequence[Path]) -> list[LanguageServer]:
        """Return the servers of projects in these folders."""
        return [
            server
            for server in self._servers.values()
            if any(server.root.is_relative_to(root) for root in roots)
        ]

    async def aclose(self) -> None:
        """End all servers; returns within seconds, when none of their processes is left."""
        self._closed = True
        await asyncio.gather(*(server.stop() for server in self._servers.values()))
        if self._stopping:
            await asyncio.wait(self._stopping)
        await self._watch.aclose()

    def _free_slot(self) -> bool:
        """Stop the least recently used server if there are too many."""
        alive = [
            server for server in self._servers.values() if server.state in {"starting", "ready"}
        ]
        if len(alive) < MAX_SERVERS:
            return True
        oldest = min(alive, key=lambda server: server.used_at)
        if asyncio.get_running_loop().time() - oldest.used_at < _MIN_IDLE_SECONDS:
            return False
        task = asyncio.create_task(oldest.stop())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
        return True
