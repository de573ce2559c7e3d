"""How language servers and MCP servers are started, and what confined programs may do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.sandbox.launch import Confine, Launch, unconfined

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import Launcher, ServerOptions
    from acp_agent.sandbox.policy import SandboxPolicy
    from acp_agent.session.services import Services

_TEMPORARY = "services"  # the folder that all of them have as /tmp


def sandbox_policy(
    services: Services, roots: Sequence[Path], temporary: str, readable: Sequence[Path] = ()
) -> SandboxPolicy:
    """Return what confined programs may do, as the user configured it.

    Args:
        services: with the configuration.
        roots: the folders that they may change.
        temporary: the folder that they have as /tmp.
        readable: what they may read although it is among this program's own files.
    """
    from acp_agent.sandbox.policy import SandboxPolicy  # noqa: PLC0415 - not while a session opens

    return SandboxPolicy(
        roots=tuple(map(str, roots)),
        home=str(services.home),
        own=tuple(map(str, services.own_files)),
        readable=tuple(map(str, readable)),
        temporary=temporary,
        search_path=services.environ.get("PATH") or os.defpath,
        config=services.config.sandbox,
    )


def confine_language_servers(services: Services) -> Confine:
    """Return what starts language servers, confined where that is possible.

    One that `sandbox.excluded_commands` names runs outside.
    """

    def confine(argv: Sequence[str], environ: Mapping[str, str], cwd: str) -> Launch:
        from acp_agent.sandbox.programs import is_excluded, launch_service  # noqa: PLC0415 - when first needed

        config = services.config.sandbox
        backend = services.sandboxes.find(config, services.environ.get("PATH"), cwd)
        if backend is None or is_excluded(argv[0], config):
            return unconfined(argv, environ, cwd)
        return launch_service(backend, argv, environ, policy=_policy(services, cwd), cwd=cwd)

    return confine


def launch_mcp_servers(services: Services) -> Launcher:
    """Return what starts the programs of MCP servers, in the sandbox if they are to be there.

    It raises ConnectionError where one is to be confined and nothing here can do that, and OSError
    where the way to its hosts cannot be made.
    """

    async def launch(
        argv: Sequence[str], environ: Mapping[str, str], cwd: str, options: ServerOptions
    ) -> Launch:
        config = services.config.sandbox
        if not (config.mcp_servers if options.sandbox is None else options.sandbox):
            return unconfined(argv, environ, cwd)
        from acp_agent.sandbox.programs import launch_server  # noqa: PLC0415 - few are confined
        from acp_agent.workspace.network import system_resolve  # noqa: PLC0415 - so

        search_path = services.environ.get("PATH")
        backend = await asyncio.to_thread(services.sandboxes.find, config, search_path, cwd)
        if backend is None:
            raise ConnectionError("it is to run in the sandbox, and there is none")
        return await launch_server(
            backend,
            argv,
            environ,
            policy=_policy(services, cwd),
            cwd=cwd,
            hosts=options.hosts,
            resolve=system_resolve,
        )

    return launch


def _policy(services: Services, cwd: str) -> SandboxPolicy:
    return sandbox_policy(services, (Path(cwd),), services.sandboxes.temporary(_TEMPORARY))
