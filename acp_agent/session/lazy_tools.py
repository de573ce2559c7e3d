"""A session's workspace and tools, set up when a prompt first needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.ids import SessionId
from acp_agent.session.editor import Editor
from acp_agent.session.services import Services

if TYPE_CHECKING:  # brings pydantic, which is not needed before a prompt runs
    from acp_agent.session.tools_setup import Equipment
    from acp_agent.workspace.background_commands import BackgroundCommands


class LazyTools:
    """Sets the tools up in a thread, for the folders that the session has by then.

    Args:
        session: whose tools they are.
        cwd: the working folder.
        directories: the further folders.
        services: what they are built on.
        editor: whose files and terminals they may use.
        sources: the sessions that the conversation was copied from, whose outputs it names.
        finish_loop: ends the repetition of a prompt; whether one is repeated.
    """

    def __init__(
        self,
        session: SessionId,
        cwd: Path,
        directories: Sequence[Path],
        *,
        services: Services,
        editor: Editor,
        sources: Sequence[SessionId],
        finish_loop: Callable[[], bool],
    ) -> None:
        self._session = session
        self._folders = (cwd, tuple(directories))
        self._services = services
        self._editor = editor
        self._sources = sources
        self._finish_loop = finish_loop
        self._moves = 0
        self._current: Equipment | None = None
        self._building: tuple[int, asyncio.Task[Equipment]] | None = None
        self._retired: list[Equipment] = []
        self._background: BackgroundCommands | None = None  # the same, whatever the folders
        self._lock = asyncio.Lock()

    async def get(self) -> Equipment:
        """The workspace and the tools; the first time this imports them."""
        async with self._lock:
            while self._current is None:
                if self._building is None:
                    work = asyncio.to_thread(self._build, *self._folders)
                    self._building = self._moves, asyncio.create_task(work)
                moves, building = self._building
                try:
                    # Who is cancelled leaves it to the next: two threads that set the tools up
                    # would each have background commands of their own.
                    built = await asyncio.shield(building)
                finally:
                    if building.done():
                        self._building = None
                if moves == self._moves:
                    self._current = built
            return self._current

    def move(self, cwd: Path, directories: Sequence[Path]) -> None:
        """Use other folders from the next turn on; one that runs keeps what it has."""
        self._folders = (cwd, tuple(directories))
        self._moves += 1
        if self._current is not None:
            self._retired.append(self._current)
            self._current = None

    @property
    def background(self) -> BackgroundCommands | None:
        """The commands that go on behind their calls; None before the first prompt."""
        return self._background

    async def aclose(self) -> None:
        """End every process that was started."""
        everything = [*self._retired, *([self._current] if self._current is not None else [])]
        await asyncio.gather(*(one.workspace.processes.aclose() for one in everything))
        if self._background is not None:
            await self._background.ended()

    def _skill_folders(self) -> list[Path]:
        """Where the skills are, which name files of their own."""
        from acp_agent.extensions.definitions.locations import readable  # noqa: PLC0415 - in a thread

        cwd, _ = self._folders
        return readable(self._services.places(cwd))

    def _build(self, cwd: Path, directories: Sequence[Path]) -> Equipment:
        from acp_agent.session.tools_setup import equip  # noqa: PLC0415 - brings pydantic
        from acp_agent.workspace.background_commands import BackgroundCommands  # noqa: PLC0415 - so

        services = self._services
        if self._background is None:
            self._background = BackgroundCommands(services.config.limits.max_background_commands)
        services.gate()  # made here, so that what it imports does not hold up the event loop
        return equip(
            cwd=cwd,
            directories=directories,
            outputs=services.outputs / self._session,
            readable=[*(services.outputs / one for one in self._sources), *self._skill_folders()],
            buffers=self._editor.buffers(self._session),
            terminals=self._editor.terminals(self._session),
            environ=services.environ,
            config=services.config,
            secrets=services.secrets.values,
            background=self._background,
            finish_loop=self._finish_loop,
        )
