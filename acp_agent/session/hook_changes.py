"""Changes that hooks are told: of settings files, skills, agents and the session's folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.extensions.definitions.locations import hook_files, project_hook_files
from acp_agent.platform.trusted_files import file_stamp
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions


class SessionChanges:
    """What has changed in a session since the last call of each method."""

    def __init__(self, core: SessionCore, definitions: Definitions) -> None:
        self._core = core
        self._definitions = definitions
        self._stamps: dict[Path, tuple[int, int, int] | None] | None = None
        self._contents: dict[str, str] | None = None
        self._folders = (core.cwd, core.directories)

    def settings(self) -> list[str]:
        """Return the settings files that have changed. Blocks: reads the disk."""
        files = (*hook_files(self._core.services.home), *project_hook_files(self._core.cwd))
        stamps = {file: file_stamp(file) for file in files}
        previous, self._stamps = self._stamps, stamps
        if previous is None:
            return []
        return [str(file) for file in stamps if stamps[file] != previous.get(file)]

    def definitions(self) -> list[str]:
        """Return the files of skills and agents that have changed, are new, or are gone."""
        definitions = self._definitions
        contents = {str(skill.path): repr(skill) for skill in definitions.skills}
        contents |= {str(agent.path): repr(agent) for agent in definitions.agents}
        previous, self._contents = self._contents, contents
        if previous is None:
            return []
        return [
            path
            for path in dict.fromkeys((*previous, *contents))
            if previous.get(path) != contents.get(path)
        ]

    def folders(self) -> Iterator[tuple[HookEvent, JsonObject]]:
        """Yield an event and its fields for another working folder, and for each added folder."""
        (old_cwd, old_directories), cwd = self._folders, self._core.cwd
        self._folders = cwd, self._core.directories
        if cwd != old_cwd:
            yield "CwdChanged", {"old_cwd": str(old_cwd), "new_cwd": str(cwd)}
        for folder in self._core.directories:
            if folder not in old_directories:
                fields: JsonObject = {"directory": str(folder), "source": "register_repo_root"}
                yield "DirectoryAdded", fields
