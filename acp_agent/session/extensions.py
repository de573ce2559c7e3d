"""The extensions of a session: MCP servers, and skills and agents from files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from acp_agent.extensions.definitions.locations import BundledSkill, bundled_agents, bundled_skills
from acp_agent.session.commands.command import Command, commands_in
from acp_agent.session.core import SessionCore
from acp_agent.session.extension_files import ExtensionFiles, FollowedSettings, Move
from acp_agent.session.settings import Value

if TYPE_CHECKING:  # only for sessions with extensions
    from acp_agent.agent.resources import TurnResources
    from acp_agent.config.types import AgentConfig
    from acp_agent.extensions.definitions.discovery import FoundDefinitions
    from acp_agent.extensions.definitions.locations import DefinitionFolders
    from acp_agent.extensions.definitions.types import AgentSpec, Skill
    from acp_agent.extensions.mcp.config import ServerConfig
    from acp_agent.hooks.types import Hook
    from acp_agent.session.folder_trust import FolderTrust
    from acp_agent.session.mcp.selection import ServerSelection
    from acp_agent.session.mcp.servers import McpServers
    from acp_agent.trust.store import Item

    Definition = TypeVar("Definition", Skill, AgentSpec)

PREFIX = "skill:"  # of the names of skills' commands
FLOW_PREFIX = "flow:"  # of the names of flows' commands


class Extensions:
    """The extensions of one session: MCP servers, and skills and agents from files.

    Args:
        move: changes the folders of the session.

    Attributes:
        mcp: the connected MCP servers; None if there were never any.
        selection: the selection among configured servers; None if only the client named servers.
        on_trusted: called when the user trusts more of the session's folder.
        files: tells whether there may be any files of extensions.
        settings: the settings of the project for other programs.
        turn: the current or last turn.
    """

    def __init__(self, core: SessionCore, move: Move) -> None:
        self._core = core
        self.turn: TurnResources | None = None
        self.mcp: McpServers | None = None
        self.selection: ServerSelection | None = None
        self._client_servers: Sequence[ServerConfig] = ()
        self._selection_lock = asyncio.Lock()
        self._trust: FolderTrust | None = None
        self.on_trusted: Callable[[], None] = lambda: None
        self.files = ExtensionFiles(core.services)
        self.settings = FollowedSettings(core, self.files, move)
        self.definitions = Definitions(core, self.files, self.announce_commands)

    @property
    def trust(self) -> FolderTrust:
        """The object that asks the user about the session's folder."""
        if self._trust is None:
            from acp_agent.session.folder_trust import FolderTrust  # noqa: PLC0415 - not at start

            self._trust = FolderTrust(self._core, self.files, self._trusted)
        return self._trust

    async def ask_for_trust(self) -> None:
        """Ask about new items of the folder in a turn, and use its trusted settings."""
        await self.trust.ask_in_turn()
        await self.settings.load()

    async def _trusted(self) -> None:
        await self.settings.load()
        self.on_trusted()
        self.definitions.expire()
        await self.definitions.load()
        if self.files.may_have_servers(self._core.cwd):
            await self.select_servers()

    @property
    def commands(self) -> Sequence[Command]:
        """The current slash commands."""
        built_in = commands_in(self._core.translate)
        servers = () if self.mcp is None else self.mcp.commands
        return (*built_in, *self.definitions.commands, *servers)

    def announce_commands(self) -> None:
        """Send the current commands to the client."""
        self._core.client.offer_commands(self._core.id, self.commands)

    def use_servers(self, servers: Sequence[ServerConfig]) -> None:
        """Connect to these MCP servers and to configured ones; disconnect from all others."""
        if self._core.closing:
            return
        self._client_servers = servers
        if self.selection is None and not self.files.may_have_servers(self._core.cwd):
            if servers or self.mcp is not None:
                self._connect(servers)
        else:
            self._core.background.spawn(self.select_servers())

    async def select_servers(self) -> None:
        """Read the configured servers, and connect to the selected ones."""
        from acp_agent.session.mcp.selection import ServerSelection  # noqa: PLC0415 - if there are any

        async with self._selection_lock:
            selection = self.selection = self.selection or ServerSelection(self._core)
            selection.client_servers = tuple(self._client_servers)
            await selection.load()
            self.apply_selection()

    def apply_selection(self) -> None:
        """Connect to the selected servers, and disconnect from others."""
        if self.selection is not None and not self._core.closing:
            self._connect(self.selection.enabled_servers)

    @property
    def server_configs(self) -> Sequence[ServerConfig]:
        """The configurations of the session's MCP servers."""
        return [] if self.mcp is None else [server.config for server in self.mcp.servers]

    def _connect(self, servers: Sequence[ServerConfig]) -> None:
        core = self._core
        if self.mcp is None:
            if not servers:
                return
            from acp_agent.session.mcp.servers import McpServers  # noqa: PLC0415 - if there are any

            self.mcp = McpServers(
                session=core.id,
                cwd=core.cwd,
                roots=lambda: (core.cwd, *core.directories),
                turn=lambda: self.turn,
                services=core.services,
                client=core.client,
                # Not journaled: notices concern this connection, not the conversation.
                notify=core.notify,
                on_commands=self.announce_commands,
            )
        self.mcp.use(servers)
        core.server_secrets = self.mcp.secrets

    async def ready(self) -> None:
        """Wait until the extensions are loaded, a few seconds at most."""
        await self.definitions.load()
        async with self._selection_lock:
            pass  # wait for a running selection of servers
        await self._follow_files()
        if self.mcp is not None:
            await self.mcp.ready()

    async def _follow_files(self) -> None:
        """Read the project's lists of servers again if they have changed."""
        if self.selection is None:
            if self.files.may_have_servers(self._core.cwd):
                await self.select_servers()
            return
        from acp_agent.session.mcp.selection import file_stamps  # noqa: PLC0415 - already imported

        cwd, folders_of = self._core.cwd, self._core.services.definition_folders
        if file_stamps(cwd, folders_of(cwd)) != self.selection.stamps:
            await self.select_servers()

    async def aclose(self) -> None:
        """End all connections and programs."""
        if self.mcp is not None:
            mcp, self.mcp, self._core.server_secrets = self.mcp, None, ()
            await mcp.aclose()
        if self._trust is not None:
            await self._trust.aclose()


class Definitions:
    """The skills and agents of a session.

    The files are read when the session is opened, and once for each prompt, so changes take effect
    with the next prompt.

    Args:
        files: tells whether there may be any files.
        on_commands: called when the commands have changed.

    Attributes:
        skill_requested: whether the user asked for a skill in this session; the model then has the
            tool that writes one.
        active_hooks: the hooks of the skills that the conversation follows.
    """

    skill_requested = False

    def __init__(
        self, core: SessionCore, files: ExtensionFiles, on_commands: Callable[[], None]
    ) -> None:
        self._core = core
        self._files = files
        self._on_commands = on_commands
        self.active_hooks: list[Hook] = []
        self._loaded: FoundDefinitions | None = None
        self._reported: set[tuple[Path, str]] = set()
        self._load_lock = asyncio.Lock()
        self._due = self._read = 0  # how often the files had to be read, and how often they were

    @property
    def _folders(self) -> DefinitionFolders:
        return self._core.services.definition_folders(self._core.cwd)

    @property
    def folder_exists(self) -> bool:
        """Return whether there is a folder of definitions; reads the disk."""
        return self._loaded is not None or self._files.may_have_definitions(self._core.cwd)

    @property
    def any_loaded(self) -> bool:
        """Return whether there are any besides bundled ones; does not read the disk."""
        return bool(self.skills or self.agents or self.external_agents)

    @property
    def any_hooks(self) -> bool:
        """Return whether a skill or an agent has hooks; does not read the disk."""
        return any(skill.hooks for skill in self.skills) or any(
            agent.hooks for agent in self.agents
        )

    def skills_for(self, file: str) -> list[tuple[Path, str]]:
        """Return the path and a text for each skill that belongs to a file; see `Skill.paths`."""
        if not any(skill.paths for skill in self.skills):
            return []
        from acp_agent.workspace.instructions.rules import matches  # noqa: PLC0415 - rarely needed

        text = (
            "For files like this there is the skill {name}: {what} Use it with the tool `skill` "
            "before you work on them."
        )
        return [
            (skill.path, text.format(name=skill.name, what=skill.description))
            for skill in self.skills
            if skill.by_model and any(matches(pattern, file) for pattern in skill.paths)
        ]

    def use(self, skill: Skill) -> None:
        """Run the hooks of a skill that the conversation follows, until the session is closed."""
        if skill.hooks:
            from acp_agent.session.definition_search import definition_hooks  # noqa: PLC0415 - rarely needed

            hooks = definition_hooks(skill)
            self.active_hooks += [hook for hook in hooks if hook not in self.active_hooks]

    def expire(self) -> None:
        """Have the next `load` read the files again."""
        self._due += 1

    async def load(self, *, reload: bool = True) -> None:
        """Read the files, announce changed commands, and report each new problem once.

        Does nothing if they were read since the last `expire`.

        Args:
            reload: whether to read them again if they have expired.
        """
        if not self.folder_exists:
            return
        async with self._load_lock:
            if self._loaded is not None and (not reload or self._read == self._due):
                return
            previous, due = self.commands, self._due
            loaded = self._loaded = await asyncio.to_thread(self._find)
            self._read = due
            if self.commands != previous:
                self._on_commands()
            self._offer_agents()
            problems = {(problem.path, problem.why): problem for problem in loaded.problems}
            if new := [problems[key] for key in problems if key not in self._reported]:
                from acp_agent.session.definition_search import definition_notice  # noqa: PLC0415 - loaded

                self._reported |= problems.keys()
                # Not journaled: it concerns the current files, not the conversation.
                await self._core.notify(definition_notice(new, self._core.translate))

    def _offer_agents(self) -> None:
        """Offer the current agents to the client as values of the option `agent`."""
        core, local = self._core, {spec.name: spec.description for spec in self.agents}
        values = [
            Value(
                id=spec.name,
                name=spec.name,
                description=local.get(spec.name) or core.translate(spec.description),
            )
            for spec in self.offered_agents
        ]
        if core.settings.offer_agents(values):
            core.client.options_changed(core.id)

    def _find(self) -> FoundDefinitions:
        from acp_agent.session.definition_search import find_session_definitions  # noqa: PLC0415 - in a thread

        return find_session_definitions(self._core)

    @property
    def skills(self) -> Sequence[Skill]:
        """The skills that were found."""
        return () if self._loaded is None else self._loaded.skills

    @property
    def agents(self) -> Sequence[AgentSpec]:
        """The agents that were found."""
        return () if self._loaded is None else self._loaded.agents

    @property
    def untrusted(self) -> Sequence[Item]:
        """The files with definitions of the project that the user does not trust."""
        return () if self._loaded is None else self._loaded.untrusted

    def skill(self, name: str) -> Skill | None:
        """Return the skill of this name, bundled ones excluded."""
        return next((skill for skill in self.skills if skill.name == name), None)

    @property
    def bundled(self) -> Sequence[BundledSkill]:
        """The offered bundled skills; a skill from a file hides a bundled one of its name."""
        hidden = {skill.name for skill in self.skills}
        offered = bundled_skills(self._core.services.config)
        return [skill for skill in offered if skill.name not in hidden]

    async def find_skill(self, name: str) -> Skill | None:
        """Return the skill of this name, bundled ones included."""
        skill = self.skill(name)
        if skill is None and any(bundled.name == name for bundled in self.bundled):
            from acp_agent.config.types import DefinitionConfig  # noqa: PLC0415 - only when used
            from acp_agent.extensions.definitions.bundled import read_bundled  # noqa: PLC0415 - likewise

            config = self._core.services.config.skills.get(name, DefinitionConfig())
            skill = await asyncio.to_thread(read_bundled, name, config)
        return skill

    @property
    def offered_agents(self) -> Sequence[AgentSpec | BundledSkill]:
        """The available agents; one from a file hides a bundled one of its name."""
        local_names = {agent.name for agent in self.agents}
        offered = bundled_agents(self._core.services.config)
        return [*self.agents, *(agent for agent in offered if agent.name not in local_names)]

    @property
    def external_agents(self) -> Mapping[str, AgentConfig]:
        """The agents that are other programs, by name; only the user's configuration has any."""
        agents = self._core.services.config.agents
        return {name: agent for name, agent in agents.items() if agent.command and agent.enabled}

    @property
    def task_agents(self) -> Sequence[tuple[str, str]]:
        """The names and descriptions of all agents that accept tasks."""
        external_agents = self.external_agents
        tasks = [
            (agent.name, agent.description)
            for agent in self.offered_agents
            if isinstance(agent, BundledSkill) or agent.takes_tasks
        ]
        return [
            *(task for task in tasks if task[0] not in external_agents),
            *((name, agent.description or name) for name, agent in external_agents.items()),
        ]

    async def find_agent(self, name: str) -> AgentSpec | None:
        """Return the agent of this name, bundled ones included."""
        agent = next((spec for spec in self.offered_agents if spec.name == name), None)
        if isinstance(agent, BundledSkill):
            from acp_agent.config.types import AgentConfig  # noqa: PLC0415 - only when used
            from acp_agent.extensions.definitions.bundled import read_bundled_agent  # noqa: PLC0415 - likewise

            config = self._core.services.config.agents.get(name, AgentConfig())
            return await asyncio.to_thread(read_bundled_agent, name, config)
        return agent

    @property
    def commands(self) -> Sequence[Command]:
        """The slash commands that run skills."""
        translate = self._core.translate
        local = [
            Command(
                name=(PREFIX if skill.flow is None else FLOW_PREFIX) + skill.name,
                description=skill.description,
                hint=skill.hint,
            )
            for skill in self.skills
            if skill.by_user
        ]
        bundled = [
            Command(
                name=PREFIX + skill.name,
                description=translate(skill.description),
                hint=None if skill.hint is None else translate(skill.hint),
            )
            for skill in self.bundled
        ]
        return [*local, *bundled]
