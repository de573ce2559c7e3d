"""Use the trusted settings that a session's project has for other programs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from acp_agent.events import NoticeShown
from acp_agent.session.core import SessionCore
from acp_agent.session.extension_files import ExtensionFiles

if TYPE_CHECKING:  # for few projects
    from acp_agent.extensions.project_settings import ProjectSettings

Move: TypeAlias = Callable[[Path, Sequence[Path]], Awaitable[None]]


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
