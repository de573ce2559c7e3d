"""Whether a session may have files of extensions: skills, agents, MCP servers, hooks and rules.

This is asked before each prompt, and most folders have none, so the answer "no" costs only a few
`stat` calls. Also uses the trusted settings that a project has for other programs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    any_folder_exists,
    definition_paths,
    foreign_hook_paths,
    hook_files,
    mcp_files,
    project_hook_files,
    project_top,
    settings_files,
)
from acp_agent.session.core import SessionCore
from acp_agent.session.services import Services

if TYPE_CHECKING:  # for few projects
    from acp_agent.extensions.project_settings import ProjectSettings

# A later change may show the same time, as the times of folders are as coarse as this, in
# nanoseconds: in whole seconds (vfat, HFS+), or in the ticks of the system's clock.
_SECONDS, _COARSE = 1_000_000_000, 2_000_000_000
_TICKS = 50_000_000
_Stamp: TypeAlias = tuple[int, int, int]
Move: TypeAlias = Callable[[Path, Sequence[Path]], Awaitable[None]]


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

    def may_have_settings(self, cwd: Path) -> bool:
        """Return whether there may be settings of other programs."""
        return self._absent.any_exists(_settings_paths(cwd))

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
def _settings_paths(cwd: Path) -> tuple[str, ...]:
    return tuple(map(str, settings_files(cwd)))


@lru_cache(maxsize=32)
def _trust_paths(cwd: Path, top: Path) -> tuple[str, ...]:
    from acp_agent.permissions.policy.loading import project_files  # noqa: PLC0415 - not at start
    from acp_agent.workspace.instructions.files import item_paths  # noqa: PLC0415 - likewise

    files = (*mcp_files(cwd), *project_hook_files(cwd), *item_paths(cwd, top))
    return (*map(str, files), *project_files(str(cwd)))


class _Group(NamedTuple):
    """Absent paths that can only appear if `folder` changes; without a stamp, look each time."""

    folder: str
    stamp: _Stamp | None
    paths: list[str]


class AbsentPaths:
    """Remembers that paths do not exist while the folders in which they could appear are unchanged.

    A path can only appear if the nearest existing folder above it changes or is replaced. If that
    folder has just changed, its time is not relied on, as git does not rely on the times of files
    that changed just before its index.

    Args:
        now: returns the time in nanoseconds since 1970.
    """

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._groups: dict[tuple[str, ...], list[_Group]] = {}

    def any_exists(self, paths: tuple[str, ...]) -> bool:
        """Return whether a path exists, be it a broken link. Blocks: reads the disk.

        Args:
            paths: absolute paths; what is known is stored for this tuple.
        """
        known_groups = self._groups.get(paths)
        if known_groups is None:
            groups, unsure = [], list(paths)
        else:
            groups = [
                group
                for group in known_groups
                if group.stamp and group.stamp == _stamp(group.folder)
            ]
            if len(groups) == len(known_groups):
                return False
            unsure = [path for group in known_groups if group not in groups for path in group.paths]
        absent = self._find_absent(unsure)
        if absent is None:
            self._groups.pop(paths, None)
            return True
        self._groups[paths] = groups + absent
        return False

    def _find_absent(self, paths: Sequence[str]) -> list[_Group] | None:
        """Return the groups of paths that do not exist; None if one exists."""
        now = self._now()
        nearest: dict[str, tuple[str, _Stamp | None]] = {}
        groups: dict[str, _Group] = {}
        # The folders come first, so that a path that appears in between is not missed.
        for path in paths:
            folder, stamp = _nearest_folder(os.path.dirname(path), nearest)  # noqa: PTH120 - strings are faster
            if stamp is not None and now - stamp[2] < (_TICKS if stamp[2] % _SECONDS else _COARSE):
                stamp = None
            groups.setdefault(folder, _Group(folder, stamp, [])).paths.append(path)
        return None if any(map(os.path.lexists, paths)) else list(groups.values())


def _nearest_folder(
    folder: str, nearest: dict[str, tuple[str, _Stamp | None]]
) -> tuple[str, _Stamp | None]:
    """Return the nearest existing folder above a path, with its stamp; cached in `nearest`.

    A broken link has no stamp: when its target appears, no folder above the path changes.
    """
    if folder not in nearest:
        stamp = _stamp(folder)
        if stamp is not None or os.path.lexists(folder):
            nearest[folder] = folder, stamp
        else:
            nearest[folder] = _nearest_folder(os.path.dirname(folder), nearest)  # noqa: PTH120 - as above
    return nearest[folder]


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - of a few folders before each prompt
    except (OSError, ValueError):  # ValueError: a null character
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


class FollowedSettings:
    """Adds the folders that the settings name, and notices when settings change.

    Args:
        files: tells whether there may be any.
        move: changes the folders of the session.

    Attributes:
        on_change: called when settings other than folders change.
    """

    def __init__(self, core: SessionCore, files: ExtensionFiles, move: Move) -> None:
        self._core = core
        self._files = files
        self._move = move
        self.on_change: Callable[[], None] = lambda: None
        self._used: ProjectSettings | None = None
        self._folders: list[Path] = []  # that settings added
        self._reported: set[str] = set()

    async def load(self) -> None:
        """Read the settings; report each new problem once."""
        core, services = self._core, self._core.services
        if self._used is None and not self._files.may_have_settings(core.cwd):
            return
        from acp_agent.extensions.project_settings import existing_folders, find_settings  # noqa: PLC0415 - if there are any

        settings = await asyncio.to_thread(find_settings, core.cwd, services.trust().trusts)
        folders, problems = await asyncio.to_thread(
            existing_folders, settings, core.cwd, services.home
        )
        kept = [folder for folder in core.directories if folder not in self._folders]
        self._folders = [folder for folder in folders if folder not in kept]
        await self._move(core.cwd, [*kept, *self._folders])
        if self._used is not None and settings != self._used:
            self.on_change()
        self._used = settings
        if new := [problem for problem in problems if problem not in self._reported]:
            self._reported |= set(new)
            title = "A setting of the project is not used."
            text = "\n".join(map(core.translate.rendered, new))
            await core.notify(NoticeShown(severity="warning", title=title, description=text))
