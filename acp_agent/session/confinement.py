"""Sandbox policies of a process, and the launch of language servers and MCP servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.sandbox.launch import Confine, Launch, unconfined

if TYPE_CHECKING:
    from acp_agent.config.sandbox_types import SandboxConfig
    from acp_agent.extensions.mcp.config import ServerOptions
    from acp_agent.sandbox.policy import SandboxPolicy
    from acp_agent.session.sandboxes import SharedSandboxes
    from acp_agent.session.services import Services


class Confinement(Struct, frozen=True, kw_only=True):
    """Makes sandbox policies and launches services according to the user's configuration.

    Attributes:
        program_files: this program's own files, which are hidden from confined programs.
    """

    config: SandboxConfig
    sandboxes: SharedSandboxes
    environ: Mapping[str, str]
    home: Path
    program_files: tuple[Path, ...]

    @classmethod
    def from_services(cls, services: Services) -> Confinement:
        """Return the confinement that these services configure."""
        return cls(
            config=services.config.sandbox,
            sandboxes=services.sandboxes,
            environ=services.environ,
            home=services.home,
            program_files=services.program_files,
        )

    def policy(
        self, roots: Sequence[Path], temporary: str, readable: Sequence[Path] = ()
    ) -> SandboxPolicy:
        """Return the policy for confined programs.

        Args:
            temporary: the folder that is mounted as their /tmp.
            readable: files of this program that they may read all the same.
        """
        from acp_agent.sandbox.policy import SandboxPolicy  # noqa: PLC0415 - not while a session opens

        return SandboxPolicy(
            roots=tuple(map(str, roots)),
            home=str(self.home),
            program_files=tuple(map(str, self.program_files)),
            readable=tuple(map(str, readable)),
            temporary=temporary,
            search_path=self.environ.get("PATH") or os.defpath,
            config=self.config,
        )

    def language_server(self, argv: Sequence[str], environ: Mapping[str, str], cwd: str) -> Launch:
        """Return the launch of a language server, confined if possible; a `Confine`.

        A server that `sandbox.excluded_commands` names is not confined.
        """
        from acp_agent.sandbox.programs import is_excluded, launch_service  # noqa: PLC0415 - when first needed

        backend = self.sandboxes.find(self.config, self.environ.get("PATH"), cwd)
        if backend is None or is_excluded(argv[0], self.config):
            return unconfined(argv, environ, cwd)
        return launch_service(backend, argv, environ, policy=self._for_service(cwd), cwd=cwd)

    def writer(self, folders: Sequence[str]) -> Confine:
        """Return the launcher of helpers that read a project and write to this program's folders.

        Args:
            folders: the folders that they may change, resolved.
        """
        return self.sandboxes.confine(self.config, self.environ.get("PATH"), folders)

    async def mcp_server(
        self, argv: Sequence[str], environ: Mapping[str, str], cwd: str, options: ServerOptions
    ) -> Launch:
        """Return the launch of an MCP server's program; a `Launcher`.

        Raises:
            ConnectionError: it must be confined, and there is no sandbox.
            OSError: the proxy for its hosts cannot be started.
        """
        if not (self.config.mcp_servers if options.sandbox is None else options.sandbox):
            return unconfined(argv, environ, cwd)
        from acp_agent.sandbox.programs import launch_server  # noqa: PLC0415 - few are confined
        from acp_agent.workspace.network import system_resolve  # noqa: PLC0415 - likewise

        search_path = self.environ.get("PATH")
        backend = await asyncio.to_thread(self.sandboxes.find, self.config, search_path, cwd)
        if backend is None:
            raise ConnectionError("it is to run in the sandbox, and there is none")
        return await launch_server(
            backend,
            argv,
            environ,
            policy=self._for_service(cwd, *filter(None, [options.data])),
            cwd=cwd,
            hosts=options.hosts,
            resolve=system_resolve,
        )

    def _for_service(self, *folders: str) -> SandboxPolicy:
        return self.policy(tuple(map(Path, folders)), self.sandboxes.temporary("services"))
