"""The tools of a session, built in a thread when a turn first needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.session.core import SessionCore

if TYPE_CHECKING:  # first needed when a prompt runs
    from acp_agent.session.folder_trust import FolderTrust
    from acp_agent.session.turns.plan import Repetition
    from acp_agent.session.turns.toolset import WorkspaceTools
    from acp_agent.workspace.background_commands import BackgroundCommands


class LazyTools:
    """The session's built-in tools, built in a thread when first needed.

    Attributes:
        background: the commands that run in the background; None before the first prompt.
        repetition: the repetition of the running turn; the model may end it.
    """

    def __init__(self, core: SessionCore, trust: Callable[[], FolderTrust]) -> None:
        self._core = core
        self._trust = trust
        self._version = 0  # counts changes of folders, client or trust
        self._current: WorkspaceTools | None = None
        self._building: tuple[int, asyncio.Task[WorkspaceTools]] | None = None
        self._retired: list[WorkspaceTools] = []
        self._lock = asyncio.Lock()
        self.background: BackgroundCommands | None = None
        self.repetition: Repetition | None = None

    async def get(self) -> WorkspaceTools:
        """Return the workspace and the tools; the first call imports their modules."""
        async with self._lock:
            while self._current is None:
                if self._building is None:
                    core, trust = self._core, self._trust()
                    build = asyncio.to_thread(self._build, trust, core.cwd, core.directories)
                    self._building = self._version, asyncio.create_task(build)
                version, building = self._building
                try:
                    # If the caller is cancelled, the next one waits for the same thread. Two
                    # threads would each make a `BackgroundCommands`.
                    tools = await asyncio.shield(building)
                finally:
                    if building.done():
                        self._building = None
                if version == self._version:
                    self._current = tools
            return self._current

    async def in_folder(self, cwd: Path) -> WorkspaceTools:
        """Return a workspace with tools for an agent in a folder of its own.

        The editor does not show that folder, so its files are read from the disk.
        """
        tools = await asyncio.to_thread(self._build, self._trust(), cwd, (), in_editor=False)
        self._retired.append(tools)
        return tools

    async def prepare(self) -> None:
        """Build the tools in advance, and read the tables by which commands are judged."""
        await self.get()
        from acp_agent.permissions.rules import load_rules  # noqa: PLC0415 - imported with the tools

        await asyncio.to_thread(load_rules)

    def rebuild(self) -> None:
        """Build new tools for the next turn; a running turn continues with its own."""
        self._version += 1
        if self._current is not None:
            self._retired.append(self._current)
            self._current = None

    async def aclose(self) -> None:
        """End every process that the tools started."""
        toolsets = [*self._retired, *([self._current] if self._current is not None else [])]
        await asyncio.gather(
            *(tools.workspace.processes.aclose() for tools in toolsets),
            *(tools.edit_checks.aclose() for tools in toolsets),
        )
        if self.background is not None:
            await self.background.ended()

    def _build(
        self, trust: FolderTrust, cwd: Path, directories: Sequence[Path], *, in_editor: bool = True
    ) -> WorkspaceTools:
        from acp_agent.extensions.definitions.locations import readable_skill_folders  # noqa: PLC0415 - in a thread
        from acp_agent.extensions.project_settings import find_settings  # noqa: PLC0415 - likewise
        from acp_agent.session.history.named_by_user import NamedAddresses, NamedFiles  # noqa: PLC0415 - likewise
        from acp_agent.session.turns.edit_checks import SessionEditChecks  # noqa: PLC0415 - likewise
        from acp_agent.session.turns.toolset import build_tools, session_sandbox  # noqa: PLC0415 - brings pydantic
        from acp_agent.workspace.background_commands import BackgroundCommands  # noqa: PLC0415 - likewise

        core, services = self._core, self._core.services
        if self.background is None:
            self.background = BackgroundCommands(services.config.limits.max_background_commands)
        gate = services.gate()  # in this thread, because its imports would block the event loop
        outputs = services.outputs / core.id
        readable = [
            *(services.outputs / source for source in core.state.sources),
            # Skills refer to their files.
            *readable_skill_folders(services.definition_folders(cwd)),
        ]
        tools = build_tools(
            cwd=cwd,
            directories=directories,
            outputs=outputs,
            readable=readable,
            buffers=core.client.buffers(core.id) if in_editor else None,
            terminals=core.client.terminals(core.id) if in_editor else None,
            environ=trust.environ(),
            settings=find_settings(core.cwd, services.trust().trusts),
            config=services.config,
            secrets=lambda: core.secrets,
            background=self.background,
            sandbox=session_sandbox(core, (cwd, *directories), [outputs, *readable]),
            sandbox_notice=services.sandboxes.notice,
            edit_checks=lambda files: SessionEditChecks(core, files),
            refused_reads=lambda paths: gate.refused_reads(
                paths, mode=core.settings.mode, project=str(cwd)
            ),
            is_named=NamedAddresses(core),
            is_named_file=NamedFiles(core),
            confine=services.confine,
        )
        plugins = services.plugins.load(services.definition_folders(cwd))
        if plugins is not None:
            toolset = tools.toolset.with_tools(plugins.tools(tools.workspace))
            tools = replace(tools, toolset=toolset)
        return replace(tools, toolset=services.adapt_tools(tools.toolset))

    def finish_loop(self) -> bool:
        """End the repetition of a prompt; return whether there is one."""
        if self.repetition is None:
            return False
        self.repetition.finished = True
        return True
