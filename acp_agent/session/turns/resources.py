"""The resources of a session's turns, made when a turn first needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from acp_agent.agent.resources import TurnResources
from acp_agent.models.base import Driver, ModelInfo
from acp_agent.session import start_up
from acp_agent.session.children.running import RunningChildren
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.session.preload import PROMPT_MODULES, Preload
from acp_agent.session.settings import DEFAULT_AGENT
from acp_agent.session.turns.lazy_tools import LazyTools

if TYPE_CHECKING:  # first needed when a prompt runs
    from acp_agent.content import ContentBlock
    from acp_agent.events import ServerTool
    from acp_agent.extensions.definitions.types import AgentSpec
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.session.children.delegation import Delegation
    from acp_agent.session.history.checkpoints import Checkpoints
    from acp_agent.session.history.rewind import Rewinder
    from acp_agent.session.hooks import HookSource
    from acp_agent.session.turns.budget import SessionBudget
    from acp_agent.session.turns.environment import EnvironmentGatherer
    from acp_agent.session.turns.parts import TurnTools
    from acp_agent.session.turns.plan import Repetition, RunOptions
    from acp_agent.tools.base import AnyTool
    from acp_agent.tools.memory.notes import NoteFolders
    from acp_agent.workspace.background_commands import BackgroundCommands


class SessionResources:
    """Tools, drivers, saved files and budgets of one session.

    Args:
        extensions: its MCP servers, skills and agents.

    Attributes:
        compaction_request: the focus of a requested compaction; None if none is requested.
    """

    def __init__(
        self, core: SessionCore, extensions: Extensions, children: RunningChildren
    ) -> None:
        self.compaction_request: str | None = None
        self._core = core
        self._extensions = extensions
        self.children = children
        self._checkpoints: Checkpoints | None = None
        self._checkpoints_used = False  # since the last turn end without background commands
        self._notes: NoteFolders | None = None  # valid if `_memory_known`
        self._memory_known = False
        self._hooks: HookSource | None = None
        self._environment: EnvironmentGatherer | None = None
        self._preload: tuple[Preload, asyncio.Task[None]] | None = None
        self._tools = LazyTools(core, lambda: extensions.trust)
        extensions.on_trusted = extensions.settings.on_change = self.rebuild_tools

    async def for_turn(self, options: RunOptions | None = None) -> TurnResources:
        """Return the resources of a turn; the first call imports the tools.

        The turn follows changes of the mode, and of the model unless `options` names it.

        Args:
            options: the run options of a skill; None: the user's settings.
        """
        await self._wait_for_imports()
        agent = await self._agent()
        built_in = await self._tools.get()
        if not self._memory_known:
            from acp_agent.session.memory import note_folders  # noqa: PLC0415 - for prompts only

            self._notes = await asyncio.to_thread(note_folders, self._core)
            self._memory_known = True

        from acp_agent.session.turns.parts import (  # noqa: PLC0415 - for prompts only
            SessionModels,
            SessionUser,
            TurnBudget,
            TurnTools,
            turn_limits,
        )

        core = self._core
        # Unless an agent tunes answers, the user can change the model during the turn.
        overrides = options
        if agent is not None:
            from acp_agent.session.turns.agent import agent_options  # noqa: PLC0415 - only if there is one

            options = agent_options(core, agent, options)
            overrides = options if overrides is not None or agent.uses.tunes_answers else None
        hooks = await self.current_hooks()
        if hooks is not None and agent is not None:
            from acp_agent.session.definition_search import definition_hooks  # noqa: PLC0415 - for agents

            hooks = hooks.for_agent(agent.name, definition_hooks(agent))
        models = SessionModels(core, overrides, self.driver)
        tools = TurnTools(core, built_in, self._extensions, options, lambda: self.checkpoints)
        turn = TurnResources(
            journal=core,
            models=models,
            user=SessionUser(core, self._take_compaction_request),
            budget=TurnBudget(core, self.budget, core, models, tools),
            tools=tools,
            limits=turn_limits(core.services, options),
            agent="" if agent is None else agent.name,
            hooks=hooks,
            take_changed_resources=tools.take_changed_resources,
            skills_for=self._extensions.definitions.skills_for,
        )
        self._add_tools(turn, tools, options)
        self._extensions.turn = turn
        return turn

    async def _agent(self) -> AgentSpec | None:
        if self._core.settings.agent == DEFAULT_AGENT:
            return None
        from acp_agent.session.turns.agent import find_agent  # noqa: PLC0415 - only if there is one

        return await find_agent(self._core, self._extensions)

    async def write_system_prompt(self) -> None:
        """Write the system prompt to the journal; further requests use it."""
        from acp_agent.session.turns.system_prompt import write_system_prompt  # noqa: PLC0415 - for prompts only

        core, agent_prompt = self._core, None
        agent = await self._agent()
        if agent is not None:
            from acp_agent.session.turns.agent import agent_system_prompt  # noqa: PLC0415 - only if there is one

            agent_prompt = agent_system_prompt(core, agent)
        client_prompt = core.state.client_prompt
        await write_system_prompt(core, core, client_prompt, self.environment, agent_prompt)

    async def _wait_for_imports(self) -> None:
        """Wait for the modules of a prompt if they are being imported."""
        if self._preload is None:
            return
        preload, preload_task = self._preload
        if not preload_task.done():
            # Importing the same modules here would block the event loop.
            preload.stop_pausing()
            await asyncio.wait([preload_task])

    async def ask_for_trust(self) -> None:
        """Ask whether to trust the session's folder, if there are new items."""
        await self._wait_for_imports()
        await self._extensions.ask_for_trust()

    async def check_background(self) -> None:
        """Warn about files that background commands changed since the last turn."""
        if self._checkpoints is not None and self._checkpoints_used:
            await self._checkpoints.check_background()

    def _add_tools(self, turn: TurnResources, tools: TurnTools, options: RunOptions | None) -> None:
        """Add the tools that a turn has under a condition, such as those for agents and rewinds."""
        from acp_agent.session.turns.parts import code_tools, write_skill_tools  # noqa: PLC0415 - for prompts only
        from acp_agent.session.turns.toolset import AddedTools  # noqa: PLC0415 - likewise

        core, definitions = self._core, self._extensions.definitions

        def delegation() -> Delegation:
            from acp_agent.session.children.delegation import Delegation  # noqa: PLC0415 - if any
            from acp_agent.session.children.task_run import ParentTurn  # noqa: PLC0415 - likewise

            parent = ParentTurn(
                core=core,
                turn=turn,
                tools=tools,
                budget=self.budget,
                definitions=definitions,
                children=self.children,
                environment=self.environment,
                tools_in=self._tools.in_folder,
                servers=self._extensions.server_configs,
                options=options,
            )
            return Delegation(parent)

        if turn.hooks is not None:
            self.hooks.use(turn, delegation)

        def bundled_agents() -> Sequence[AnyTool]:
            from acp_agent.tools.task import BundledTaskTool  # noqa: PLC0415 - for prompts only

            agents, records = definitions.task_agents, self.children.records
            task = BundledTaskTool(
                tools.workspace, agents, lambda *call: delegation().run_task(*call), records
            )
            return [task] if agents else []

        def search() -> Sequence[AnyTool]:
            from acp_agent.tools.session_search import SessionSearchTool  # noqa: PLC0415 - rarely needed

            return [SessionSearchTool(tools.workspace, core.journal.dated_history)]

        def web_search() -> Sequence[AnyTool]:
            from acp_agent.agent.provider_search import provider_search_tool  # noqa: PLC0415 - likewise

            return [provider_search_tool(turn)]

        def rewind() -> Sequence[AnyTool]:
            from acp_agent.tools.rewind import RewindTool  # noqa: PLC0415 - only if enabled

            by_model = self.rewinder.rewind_by_model
            return [RewindTool(tools.workspace, by_model, lambda: len(tools.open_calls) <= 1)]

        def finish_loop() -> Sequence[AnyTool]:
            from acp_agent.tools.finish_loop import FinishLoopTool  # noqa: PLC0415 - rarely needed

            return [FinishLoopTool(tools.workspace, self._tools.finish_loop)]

        def memory() -> Sequence[AnyTool]:
            from acp_agent.session.memory import memory_tool  # noqa: PLC0415 - only if there is one

            assert self._notes is not None
            return [memory_tool(core, tools.workspace, self._notes)]

        models = turn.models
        composed = options is not None and bool(options.uses.composed)
        tools.search = AddedTools(
            lambda: models.web_search(models.current) is not None, web_search, replaces="web_search"
        )
        tools.added = [
            AddedTools(lambda: self._notes is not None, memory),
            AddedTools(lambda: composed or definitions.any_loaded, lambda: delegation().tools()),
            AddedTools(lambda: not (composed or definitions.any_loaded), bundled_agents),
            # When the context is shortened, the provider's cache is lost anyway.
            AddedTools(lambda: core.context.is_shortened, search),
            AddedTools(lambda: core.services.config.checkpoints.rewind_tool, rewind),
            AddedTools(
                lambda: definitions.skill_requested,
                partial(write_skill_tools, core, definitions, tools),
            ),
            AddedTools(lambda: tools.edit_checks.know_symbols, partial(code_tools, tools)),
            # Stays after a loop, to preserve the provider's cache.
            AddedTools(
                lambda: self._tools.repetition is not None or core.context.was_repeated, finish_loop
            ),
        ]

    async def wait_for_extensions(self) -> None:
        """Wait until the extensions are loaded, a few seconds at most."""
        await self._extensions.ready()

    def rebuild_tools(self) -> None:
        """Build new tools for the next turn, after a change of folders, client or trust."""
        self._memory_known = False  # it depends on trust and on the folder
        self._tools.rebuild()

    async def driver(self, model: ModelInfo) -> Driver:
        """Return the driver of a model; the first call loads its SDK in a thread.

        Raises:
            AuthRequiredError: the model cannot be used, or can no longer be used.
        """
        services = self._core.services
        services.account.require(model)
        cached = services.models.cached_driver(model)
        if cached is not None:
            return cached
        return await asyncio.to_thread(services.models.driver, model)

    async def prepare(self, modules: Sequence[str], busy: Callable[[], bool]) -> None:
        """Load modules and start services for the first prompt in advance. Runs once.

        Args:
            modules: further modules that a prompt imports.
            busy: returns whether another request than a prompt is answered; imports pause for it.
        """
        if self._preload is not None:
            return
        try:
            preload = Preload(modules, PROMPT_MODULES, busy)
            preload_task = asyncio.create_task(preload.run())
            self._preload = preload, preload_task
            await preload_task
            if self._core.state.system_prompt_is_due:
                self.environment.start()
            await self._core.state.catch_up_in_steps()
            await self._tools.prepare()
            driver = await self.driver(self._core.settings.model)
            await driver.connect()
        finally:
            start_up.freeze_objects()

    @property
    def environment(self) -> EnvironmentGatherer:
        """The gatherer of the environment for the system prompt."""
        if self._environment is None:
            from acp_agent.session.turns.environment import EnvironmentGatherer  # noqa: PLC0415 - not at start

            self._environment = EnvironmentGatherer(self._core)
        return self._environment

    @cached_property
    def budget(self) -> SessionBudget:
        """The session's budgets."""
        from acp_agent.session.turns.budget import SessionBudget  # noqa: PLC0415 - for prompts only

        return SessionBudget(self._core)

    @property
    def background(self) -> BackgroundCommands | None:
        """The commands that run in the background; None before the first prompt."""
        return self._tools.background

    @property
    def has_background(self) -> bool:
        """Return whether a command runs in the background."""
        return bool(self.background and self.background.running)

    @property
    def checkpoints(self) -> Checkpoints:
        """The files that are saved before turns change them."""
        if self._checkpoints is None:
            from acp_agent.session.history.checkpoints import Checkpoints  # noqa: PLC0415 - for turns that write

            self._checkpoints = Checkpoints(
                self._core, self._files_restored, lambda: self.has_background
            )
        self._checkpoints_used = True
        return self._checkpoints

    @property
    def hooks(self) -> HookSource:
        """The session's hooks."""
        if self._hooks is None:
            from acp_agent.session.hooks import HookSource  # noqa: PLC0415 - for prompts only

            self._hooks = HookSource(self._core, self._extensions)
        return self._hooks

    def server_tools(self, turn: TurnResources) -> tuple[ServerTool, ...]:
        """Return the current tools of MCP servers, as the journal describes them."""
        mcp = self._extensions.mcp
        return mcp.offered if mcp is not None and turn.tools.toolset.specs() else ()

    async def current_hooks(self) -> SessionHooks | None:
        """Return the current hooks; None if there are none."""
        if self._hooks is None and not self._extensions.files.may_have_hooks(self._core.cwd):
            definitions = self._extensions.definitions
            await definitions.load(reload=False)
            if not definitions.any_hooks:
                return None
        await self._wait_for_imports()
        return await self.hooks.current(await self._tools.get())

    async def refuse_prompt(self, content: tuple[ContentBlock, ...]) -> str:
        """Return why a hook refuses a steering prompt; "" if none does."""
        hooks = await self.current_hooks()
        return "" if hooks is None else await self.hooks.run_prompt_hooks(hooks, content)

    async def _files_restored(self) -> None:
        (await self._tools.get()).workspace.files.note_commands_ran()

    @cached_property
    def rewinder(self) -> Rewinder:
        """The object that rewinds the session to earlier points."""
        from acp_agent.session.history.rewind import Rewinder  # noqa: PLC0415 - rarely needed

        return Rewinder(self._core, self.checkpoints)

    def _take_compaction_request(self) -> str | None:
        request, self.compaction_request = self.compaction_request, None
        return request

    # -- turns ---------------------------------------------------------------------------------

    def begin_turn(self, repetition: Repetition | None) -> None:
        """Set the repetition of a turn that begins; None if it has none."""
        self._tools.repetition = repetition

    async def save_turn_end(self, *, cancelled: bool) -> None:
        """Save the files at the end of a turn, before the end is reported."""
        if self._checkpoints is not None and self._checkpoints_used:
            await self._checkpoints.save_turn_end(cancelled=cancelled)

    def reset_turn(self) -> None:
        """Reset the state for the next turn."""
        self._tools.repetition = None
        if self._checkpoints is not None and self._checkpoints_used:
            self._checkpoints.reset_turn()
            self._checkpoints_used = self.has_background

    async def aclose(self) -> None:
        """End the session's hooks, background work and processes, and close the saved files."""
        if self._hooks is not None:
            await self._hooks.aclose()
        if self._environment is not None:
            await self._environment.aclose()
        await self._tools.aclose()
        if self._checkpoints is not None:  # last, to see the changes of those processes
            await self._checkpoints.aclose()
