"""What the turns of a session work with, made when one first needs it."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

from acp_agent.models.base import Driver, ModelInfo
from acp_agent.session import start_up
from acp_agent.session.lazy_tools import LazyTools
from acp_agent.session.turn_host import SessionHost

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.session.budget import Budget
    from acp_agent.session.checkpoints import Checkpoints
    from acp_agent.session.chosen import Chosen
    from acp_agent.session.rewinder import Rewinder
    from acp_agent.session.session import Session
    from acp_agent.workspace.background_commands import BackgroundCommands

# What a prompt needs is imported this long after the session was opened: not while the editor
# still starts up, and before most people have written their first prompt.
WARM_UP_SECONDS = 2.0


class Workbench:
    """Tools, models' drivers, kept files and budgets of one session.

    Args:
        session: whose turns they are for.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._checkpoints: Checkpoints | None = None
        self._warm = False
        self._tools = LazyTools(
            session.session,
            session.cwd,
            session.directories,
            services=session.services,
            editor=session.editor,
            sources=session.state.sources,
            finish_loop=session.turns.finish_loop,
        )

    async def equip(self, chosen: Chosen | None = None) -> SessionHost:
        """What a turn needs, with the tools set up; the first time this imports them.

        `chosen` is what a skill wants it to be run with.
        """
        return SessionHost(self._session, await self._tools.get(), chosen)

    def move(self) -> None:
        """The session has other folders, or another editor, from the next turn on."""
        self._tools.move(self._session.cwd, self._session.directories)

    async def driver(self, model: ModelInfo) -> Driver:
        """The way to a model's provider; the first time this loads its SDK, in a thread.

        Raises:
            AuthRequiredError: the model cannot be used, or can be no more.
        """
        services = self._session.services
        services.account.require(model)
        made = services.models.made_driver(model)
        if made is not None:
            return made
        return await asyncio.to_thread(services.models.driver, model)

    async def warm_up(self) -> None:
        """Load what the first prompt will need, once, while nobody waits for it."""
        if self._warm:
            return
        self._warm = True
        try:
            await asyncio.sleep(WARM_UP_SECONDS)
            self._session.state.catch_up()
            await self._tools.get()
            await self.driver(self._session.model)
        finally:
            start_up.is_over()

    @cached_property
    def budget(self) -> Budget:
        """What may be spent."""
        from acp_agent.session.budget import Budget  # noqa: PLC0415 - for prompts only

        return Budget(self._session)

    @property
    def background(self) -> BackgroundCommands | None:
        """The commands that go on behind their calls; None where there never was one."""
        return self._tools.background

    @property
    def has_background(self) -> bool:
        """Whether a command runs behind its call."""
        return self.background is not None and bool(self.background.running)

    @property
    def checkpoints(self) -> Checkpoints:
        """The files as they were before turns changed them."""
        if self._checkpoints is None:
            from acp_agent.session.checkpoints import Checkpoints  # noqa: PLC0415 - for turns that write

            self._checkpoints = Checkpoints(self._session)
        return self._checkpoints

    @cached_property
    def rewinder(self) -> Rewinder:
        """What takes the session back to how it was."""
        from acp_agent.session.rewinder import Rewinder  # noqa: PLC0415 - rarely needed

        return Rewinder(self._session, self.checkpoints)

    async def turn_ends(self, *, cancelled: bool) -> None:
        """Do what is due before anybody hears that a turn has ended."""
        if self._checkpoints is not None:
            await self._checkpoints.turn_ends(cancelled=cancelled)

    def turn_ended(self) -> None:
        """Do what is due when a turn has ended."""
        if self._checkpoints is not None:
            self._checkpoints.turn_ended()

    async def aclose(self) -> None:
        """End every process that was started, and what is still kept of files."""
        if self._checkpoints is not None:
            await self._checkpoints.aclose()
        await self._tools.aclose()
