"""Whether a session may have files of extensions: skills, agents, MCP servers, hooks and rules.

This is asked before each prompt, and most folders have none, so the answer "no" costs only a few
`stat` calls.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    any_folder_exists,
    definition_paths,
    foreign_hook_paths,
    hook_files,
    mcp_files,
    project_hook_files,
    project_top,
)
from acp_agent.platform.absent_paths import AbsentPaths
from acp_agent.session.services import Services


class ExtensionFiles:
    """Tells whether a session may have files of extensions. Each method reads the disk."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._absent = AbsentPaths()

    def may_have_definitions(self, cwd: Path) -> bool:
        """Return whether there is a folder or table of skills, agents or plugins."""
        folders = self._services.definition_folders(cwd)
        return self._absent.any_exists(definition_paths(folders)) and any_folder_exists(folders)

    def may_have_servers(self, cwd: Path) -> bool:
        """Return whether there may be MCP servers that the client did not name."""
        services = self._services
        paths = _server_paths(cwd, services.definition_folders(cwd))
        return bool(services.config.mcp_servers) or self._absent.any_exists(paths)

    def may_have_hooks(self, cwd: Path) -> bool:
        """Return whether there may be hooks."""
        services = self._services
        paths = _hook_paths(cwd, services.home, services.definition_folders(cwd))
        configured = services.recorded_hooks is not None or bool(services.config.hooks)
        return configured or self._absent.any_exists(paths)

    def may_need_trust(self, cwd: Path) -> bool:
        """Return whether the project may have files that the user must trust.

        The programs of its repository are not included (`permissions.git_programs`).
        """
        paths = _trust_paths(cwd, project_top(cwd))
        return self._absent.any_exists(paths) or self.may_have_definitions(cwd)


@lru_cache(maxsize=32)
def _server_paths(cwd: Path, folders: DefinitionFolders) -> tuple[str, ...]:
    plugin_folders = (folder for folder, _ in folders.plugins)
    return tuple(map(str, (*mcp_files(cwd), *plugin_folders)))


@lru_cache(maxsize=32)
def _hook_paths(cwd: Path, home: Path, folders: DefinitionFolders) -> tuple[str, ...]:
    files = (*hook_files(home), *project_hook_files(cwd), *foreign_hook_paths(cwd))
    plugin_folders = (folder for folder, _ in folders.plugins)
    return tuple(map(str, (*files, *plugin_folders)))


@lru_cache(maxsize=32)
def _trust_paths(cwd: Path, top: Path) -> tuple[str, ...]:
    from acp_agent.permissions.policy.loading import project_files  # noqa: PLC0415 - not at start
    from acp_agent.workspace.instructions.files import item_paths  # noqa: PLC0415 - likewise

    files = (*mcp_files(cwd), *project_hook_files(cwd), *item_paths(cwd, top))
    return (*map(str, files), *project_files(str(cwd)))
