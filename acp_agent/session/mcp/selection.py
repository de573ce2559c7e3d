"""The MCP servers that a session uses: those of the client, user, project and plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.locations import DefinitionFolders, mcp_files
from acp_agent.extensions.mcp.config import ServerConfig
from acp_agent.extensions.mcp.configured import FoundServers, find_servers, first_of_each_name
from acp_agent.platform.trusted_files import file_stamp
from acp_agent.session.core import SessionCore

_MAX_SHOWN_PROBLEMS = 3  # problems reported individually

Stamps = tuple[tuple[int, int, int] | None, ...]


class ServerSelection:
    """The servers available to a session, some enabled or disabled by the user.

    If servers have the same name, the client's takes precedence, then the user's, then the
    project's. Servers of plugins have unique names.

    Attributes:
        stamps: the stamps of the project's files when they were last read.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._configured = FoundServers()
        self._overrides: dict[str, bool] = {}
        self._reported: set[str] = set()
        self.client_servers: tuple[ServerConfig, ...] = ()
        self.stamps: Stamps = ()

    async def load(self) -> None:
        """Read the configuration and the project's files; report each problem once."""
        core, services = self._core, self._core.services
        self.stamps = file_stamps(core.cwd, services.definition_folders(core.cwd))
        self._configured = await asyncio.to_thread(
            lambda: find_servers(
                services.config,
                services.user_folder / "config.toml",
                core.cwd,
                services.environ,
                folders=services.definition_folders(core.cwd),
                trusts=services.trust().trusts,
            )
        )
        problems = (*self._configured.problems, *self._configured.notes)
        new_problems = [problem for problem in problems if problem not in self._reported]
        if new_problems:
            self._reported |= set(new_problems)
            # Not in the journal, because it describes the current files.
            await core.notify(self._notice(new_problems))

    @property
    def servers(self) -> Sequence[ServerConfig]:
        """All servers, the first one of each name, including disabled ones."""
        names = {server.name for server in self.client_servers}
        configured = (server for server in self._configured.servers if server.name not in names)
        return (*self.client_servers, *first_of_each_name(tuple(configured)))

    @property
    def enabled_servers(self) -> Sequence[ServerConfig]:
        """The servers to which the session should be connected."""
        return [server for server in self.servers if self.is_enabled(server)]

    def is_enabled(self, server: ServerConfig) -> bool:
        """Return whether a server is enabled."""
        return self._overrides.get(server.name, server.options.enabled)

    def switch(self, name: str, *, on: bool) -> None:
        """Enable or disable a server in this session."""
        self._overrides[name] = on

    @property
    def untrusted(self) -> Sequence[str]:
        """The files of the project that are not used because the user does not trust them."""
        return [item.path for item in self._configured.untrusted]

    def _notice(self, problems: Sequence[str]) -> NoticeShown:
        translate = self._core.translate
        lines = [
            self._core.clean(translate.rendered(problem))
            for problem in problems[:_MAX_SHOWN_PROBLEMS]
        ]
        if len(problems) > _MAX_SHOWN_PROBLEMS:
            lines.append(translate("`acp-agent mcp list` shows the others."))
        return NoticeShown(
            severity="warning",
            title="An MCP server is not used as it is written."
            if len(problems) == 1
            else f"{len(problems)} MCP servers are not used as they are written.",
            description="\n".join(lines),
        )


def file_stamps(cwd: Path, folders: DefinitionFolders) -> Stamps:
    """Return stamps that change with the project's server files and the plugins; blocks shortly."""
    plugins = (folder for folder, _ in folders.plugins)
    return tuple(map(file_stamp, (*mcp_files(cwd), *plugins)))
