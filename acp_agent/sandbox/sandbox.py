"""The sandbox of a session."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.config.network_addresses import Resolve
from acp_agent.sandbox.backends import Unavailable, find_backend
from acp_agent.sandbox.bubblewrap import memory_limit
from acp_agent.sandbox.host_rules import HostRules
from acp_agent.sandbox.launch import Backend, CommandNetwork, Launch, SandboxedProgram
from acp_agent.sandbox.policy import MountKind, SandboxPolicy

if TYPE_CHECKING:  # needed by the first command
    from acp_agent.sandbox.git_folders import GitFolders
    from acp_agent.sandbox.git_listings import FolderListings
    from acp_agent.sandbox.watch import FolderSnapshot, SandboxWatch, WatchedCommand

__all__ = ("Backend", "Sandbox", "Unavailable", "find_backend")

_SECRETS_TTL = 20.0  # seconds for which the list of secrets is valid


class Sandbox:
    """Confines the programs of a session.

    Args:
        policy: the rights of the programs, and their temporary folder.
    """

    def __init__(self, backend: Backend, policy: SandboxPolicy) -> None:
        self._backend = backend
        self.policy = policy
        self._mounts: dict[bool, list[tuple[str, MountKind]]] = {}
        self._secret_paths: tuple[float, list[str]] = (0.0, [])  # the time, and the paths
        self._network_count = 0
        self._watch: SandboxWatch | None = None
        self._listings: FolderListings | None = None

    @property
    def has_network(self) -> bool:
        """Return whether programs can reach hosts."""
        return self._backend.has_network

    @property
    def temporary(self) -> str:
        """The path of the temporary folder, as confined programs see it."""
        return self._backend.temporary(self.policy)

    async def launch(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        *,
        only_reads: bool,
        exclusive: bool,
        hosts: Sequence[str] = (),
        writable: Sequence[str] = (),
        resolve: Resolve,
    ) -> Launch:
        """Return how to start a program.

        Args:
            only_reads: whether it may change only temporary files.
            exclusive: whether no other confined program of the session runs. Another one could
                replace folders by links while the mounts are computed.
            hosts: hosts in addition to those that the configuration allows.
            writable: folders that it may change in addition to those of the session.

        Raises:
            ConfigError: a host is invalid.
            OSError: the temporary folder or the proxy's socket cannot be created.
        """
        network_config = self.policy.config.network
        network: CommandNetwork | None = None
        if self.has_network and not only_reads and (hosts or network_config.allowed_domains):
            self._network_count += 1
            rules = HostRules(
                [*network_config.allowed_domains, *hosts], network_config.denied_domains
            )
            path = Path(f"{self.policy.temporary}.{self._network_count}")
            network = await CommandNetwork.open(rules, path, resolve)

        def prepare() -> Launch:
            os.makedirs(self.policy.temporary, mode=0o700, exist_ok=True)  # noqa: PTH103 - in a thread
            surroundings: FolderSnapshot | None = None
            if exclusive or only_reads not in self._mounts:
                # Secrets are cached: confined programs cannot create any, and the user seldom does.
                if (
                    not self._secret_paths[0]
                    or time.monotonic() > self._secret_paths[0] + _SECRETS_TTL
                ):
                    self._secret_paths = time.monotonic(), self.policy.secret_paths()
                repositories = [] if only_reads else self._find_repositories()
                self._mounts[only_reads] = self.policy.mounts(
                    only_reads=only_reads, secret=self._secret_paths[1], repositories=repositories
                )
                if not only_reads:
                    surroundings = self._surroundings(repositories)
            extra_mounts: list[tuple[str, MountKind]] = [
                (os.path.realpath(folder), "write") for folder in writable
            ]
            launch = self._backend.launch(
                SandboxedProgram(
                    argv,
                    [*self._mounts[only_reads], *extra_mounts],
                    self.policy,
                    os.path.realpath(cwd),
                    environ,
                    network,
                )
            )
            if only_reads:
                return launch
            return replace(launch, watched=self._watch_command(surroundings))

        try:
            return await asyncio.to_thread(prepare)
        except BaseException:
            if network is not None:
                await network.aclose()
            raise

    def allow_new_file(self, path: str) -> None:
        """Do not rename a file that this program is about to write while commands run."""
        if self._watch is not None:
            self._watch.allow(path)

    def _watch_command(self, surroundings: FolderSnapshot | None) -> WatchedCommand:
        from acp_agent.sandbox.process_limits import ProcessLimits  # noqa: PLC0415 - when first needed
        from acp_agent.sandbox.watch import SandboxWatch  # noqa: PLC0415 - so

        if self._watch is None:
            self._watch = SandboxWatch()
        config = self.policy.config.limits
        limits = ProcessLimits(config.processes, memory_limit(config))
        return self._watch.start(surroundings, limits)

    def _find_repositories(self) -> list[GitFolders]:
        from acp_agent.sandbox.git_listings import FolderListings  # noqa: PLC0415 - when first needed

        if self._listings is None:
            self._listings = FolderListings()
        return self.policy.repositories(self._listings)

    def _surroundings(self, repositories: Sequence[GitFolders]) -> FolderSnapshot:
        from acp_agent.sandbox.new_files import NewFiles  # noqa: PLC0415 - when first needed
        from acp_agent.sandbox.new_repositories import NewRepositories  # noqa: PLC0415 - so
        from acp_agent.sandbox.programs import start_reader  # noqa: PLC0415 - so
        from acp_agent.sandbox.watch import FolderSnapshot  # noqa: PLC0415 - so

        writable = [path for path, kind in self._mounts[False] if kind == "write"]
        start = partial(start_reader, self._backend)
        return FolderSnapshot(
            NewFiles(self.policy.protected_paths()),
            [NewRepositories(repository, start) for repository in repositories],
            tuple(writable),
        )
