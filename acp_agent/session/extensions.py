"""The extensions of a session: MCP servers, and skills and agents from files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from acp_agent.config.localization import Translator
from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.locations import (
    BundledSkill,
    any_folder_exists,
    any_plugin_folder,
    bundled_agents,
    bundled_skills,
    mcp_files,
)
from acp_agent.session.commands.command import Command, commands_in
from acp_agent.session.core import SessionCore
from acp_agent.session.settings import Value

if TYPE_CHECKING:  # only for sessions with extensions
    from acp_agent.config.types import AgentConfig
    from acp_agent.extensions.definitions.discovery import Found
    from acp_agent.extensions.definitions.locations import DefinitionFolders
    from acp_agent.extensions.definitions.reading import Problem
    from acp_agent.extensions.definitions.types import AgentSpec, Skill
    from acp_agent.extensions.mcp.config import ServerConfig
    from acp_agent.session.folder_trust import FolderTrust
    from acp_agent.session.mcp.selection import ServerSelection
    from acp_agent.session.mcp.servers import McpServers

    Definition = TypeVar("Definition", Skill, AgentSpec)

SHOWN = 3  # problems that a notice lists
PREFIX = "skill:"  # of the names of skills' commands
FLOW_PREFIX = "flow:"  # of the names of flows' commands


class Extensions:
    """The extensions of one session: MCP servers, and skills and agents from files.

    Args:
        core: the session.

    Attributes:
        mcp: the connected MCP servers; None if there were never any.
        selection: the selection among configured servers; None if only the client named servers.
        definitions: the skills and agents.
        on_trusted: called when the user trusts more of the session's folder.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.mcp: McpServers | None = None
        self.selection: ServerSelection | None = None
        self._named: Sequence[ServerConfig] = ()
        self._selection_lock = asyncio.Lock()
        self._trust: FolderTrust | None = None
        self.on_trusted: Callable[[], None] = lambda: None
        self.definitions = Definitions(core, self.announce_commands)

    @property
    def trust(self) -> FolderTrust:
        """The object that asks the user whether to trust the session's folder."""
        if self._trust is None:
            from acp_agent.session.folder_trust import FolderTrust  # noqa: PLC0415 - not at start

            self._trust = FolderTrust(self._core, self._trusted)
        return self._trust

    async def _trusted(self) -> None:
        self.on_trusted()
        await self.definitions.load()
        if self._any_configured():
            await self.select_servers()

    @property
    def commands(self) -> Sequence[Command]:
        """The current slash commands."""
        own = commands_in(self._core.translate)
        servers = () if self.mcp is None else self.mcp.commands
        return (*own, *self.definitions.commands, *servers)

    def announce_commands(self) -> None:
        """Send the current commands to the client."""
        self._core.client.offer_commands(self._core.id, self.commands)

    def use_servers(self, servers: Sequence[ServerConfig]) -> None:
        """Connect to these MCP servers and to configured ones; disconnect from all others."""
        if self._core.closing:
            return
        if self.selection is None and not self._any_configured():
            if servers or self.mcp is not None:
                self._connect(servers)
            self._named = servers
            return
        self._named = servers
        self._core.background.spawn(self.select_servers())

    async def select_servers(self) -> None:
        """Read the configured servers, and connect to the selected ones."""
        from acp_agent.session.mcp.selection import ServerSelection  # noqa: PLC0415 - if there are any

        async with self._selection_lock:
            selection = self.selection = self.selection or ServerSelection(self._core)
            selection.named = tuple(self._named)
            await selection.load()
            self.apply_selection()

    def apply_selection(self) -> None:
        """Connect to the selected servers, and disconnect from others."""
        if self.selection is not None and not self._core.closing:
            self._connect(self.selection.used)

    def _any_configured(self) -> bool:
        """Return whether there may be servers that the client did not name; reads the disk."""
        core = self._core
        return (
            bool(core.services.config.mcp_servers)
            or any(os.path.lexists(file) for file in mcp_files(core.cwd))
            or any_plugin_folder(core.services.places(core.cwd))
        )

    @property
    def server_configs(self) -> Sequence[ServerConfig]:
        """The configurations of the session's MCP servers."""
        return [] if self.mcp is None else [one.config for one in self.mcp.servers]

    def _connect(self, servers: Sequence[ServerConfig]) -> None:
        core = self._core
        if self.mcp is None:
            if not servers:
                return
            from acp_agent.session.mcp.servers import McpServers  # noqa: PLC0415 - if there are any

            self.mcp = McpServers(
                session=core.id,
                cwd=core.cwd,
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
            if self._any_configured():
                await self.select_servers()
            return
        from acp_agent.session.mcp.selection import file_stamps  # noqa: PLC0415 - already imported

        core = self._core
        if file_stamps(core.cwd, core.services.places(core.cwd)) != self.selection.stamps:
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

    The files are read when the session is opened, and again before each turn, so changes take
    effect with the next turn.

    Args:
        core: the session.
        on_commands: called when the commands have changed.

    Attributes:
        writing: whether the user asked for a skill in this session; the model then has the tool
            that writes one.
    """

    writing = False

    def __init__(self, core: SessionCore, on_commands: Callable[[], None]) -> None:
        self._core = core
        self._on_commands = on_commands
        self._found: Found | None = None
        self._reported: set[tuple[Path, str]] = set()
        self._loading = asyncio.Lock()

    @property
    def _places(self) -> DefinitionFolders:
        return self._core.services.places(self._core.cwd)

    @property
    def there(self) -> bool:
        """Return whether there is a folder of definitions; reads the disk."""
        return self._found is not None or any_folder_exists(self._places)

    @property
    def found(self) -> bool:
        """Return whether there are any besides bundled ones; does not read the disk."""
        return bool(self.skills or self.agents or self.other_agents)

    async def load(self) -> None:
        """Read the files, announce changed commands, and report each new problem once."""
        if not self.there:
            return
        async with self._loading:
            before = self.commands
            found = self._found = await asyncio.to_thread(self._find)
            if self.commands != before:
                self._on_commands()
            self._offer_agents()
            if new := [one for one in found.problems if (one.path, one.why) not in self._reported]:
                self._reported |= {(one.path, one.why) for one in new}
                # Not journaled: it concerns the current files, not the conversation.
                await self._core.notify(_notice(new, self._core.translate))

    def _offer_agents(self) -> None:
        """Offer the current agents to the client as values of the option `agent`."""
        core, own = self._core, {one.name for one in self.agents}
        values = [
            Value(
                id=one.name,
                name=one.name,
                description=one.description if one.name in own else core.translate(one.description),
            )
            for one in self.offered_agents
        ]
        if core.settings.offer_agents(values):
            core.client.options_changed(core.id)

    def _find(self) -> Found:
        from acp_agent.extensions.definitions.discovery import Found, find_definitions  # noqa: PLC0415 - in a thread
        from acp_agent.extensions.definitions.reading import Problem  # noqa: PLC0415 - likewise
        from acp_agent.session.known_providers import with_known_providers  # noqa: PLC0415 - likewise

        services = self._core.services
        found = find_definitions(self._places, services.config, services.trust().trusts)
        plugins = services.plugins.load(self._places)
        wrong = () if plugins is None else plugins.problems
        found = replace(
            found,
            problems=(
                *found.problems,
                *(Problem(self._places.plugins[0][0], one) for one in wrong),
            ),
        )
        # Clean only what is announced. Other texts are cleaned when they are used.
        clean = self._core.clean
        found = with_known_providers(
            found, self._core.settings.model, services.models, services.config
        )
        return Found(
            skills=tuple(
                replace(
                    one,
                    description=clean(one.description),
                    hint=None if one.hint is None else clean(one.hint),
                )
                for one in found.skills
            ),
            agents=tuple(replace(one, description=clean(one.description)) for one in found.agents),
            problems=tuple(replace(one, why=clean(one.why)) for one in found.problems),
            untrusted=found.untrusted,
        )

    @property
    def skills(self) -> Sequence[Skill]:
        """The skills that were found."""
        return () if self._found is None else self._found.skills

    @property
    def agents(self) -> Sequence[AgentSpec]:
        """The agents that were found."""
        return () if self._found is None else self._found.agents

    @property
    def has_untrusted(self) -> bool:
        """Return whether the project has definitions that the user does not trust."""
        return self._found is not None and bool(self._found.untrusted)

    def skill(self, name: str) -> Skill | None:
        """Return the skill of this name, bundled ones excluded."""
        return next((one for one in self.skills if one.name == name), None)

    @property
    def bundled(self) -> Sequence[BundledSkill]:
        """The offered bundled skills; a skill from a file hides a bundled one of its name."""
        hidden = {one.name for one in self.skills}
        offered = bundled_skills(self._core.services.config)
        return [one for one in offered if one.name not in hidden]

    async def find_skill(self, name: str) -> Skill | None:
        """Return the skill of this name, bundled ones included."""
        found = self.skill(name)
        if found is None and any(one.name == name for one in self.bundled):
            from acp_agent.config.types import DefinitionConfig  # noqa: PLC0415 - only when used
            from acp_agent.extensions.definitions.bundled import read_bundled  # noqa: PLC0415 - likewise

            config = self._core.services.config.skills.get(name, DefinitionConfig())
            found = await asyncio.to_thread(read_bundled, name, config)
        return found

    @property
    def offered_agents(self) -> Sequence[AgentSpec | BundledSkill]:
        """The available agents; one from a file hides a bundled one of its name."""
        names = {one.name for one in self.agents}
        offered = bundled_agents(self._core.services.config)
        return [*self.agents, *(one for one in offered if one.name not in names)]

    @property
    def other_agents(self) -> Mapping[str, AgentConfig]:
        """The agents that are other programs, by name; only the user's configuration has any."""
        agents = self._core.services.config.agents
        return {name: one for name, one in agents.items() if one.command and one.enabled}

    @property
    def task_agents(self) -> Sequence[tuple[str, str]]:
        """The names and descriptions of all agents that accept tasks."""
        others = self.other_agents
        own = [
            (one.name, one.description)
            for one in self.offered_agents
            if isinstance(one, BundledSkill) or one.takes_tasks
        ]
        return [
            *(one for one in own if one[0] not in others),
            *((name, one.description or name) for name, one in others.items()),
        ]

    async def find_agent(self, name: str) -> AgentSpec | None:
        """Return the agent of this name, bundled ones included."""
        found = next((one for one in self.offered_agents if one.name == name), None)
        if isinstance(found, BundledSkill):
            from acp_agent.config.types import AgentConfig  # noqa: PLC0415 - only when used
            from acp_agent.extensions.definitions.bundled import read_bundled_agent  # noqa: PLC0415 - likewise

            config = self._core.services.config.agents.get(name, AgentConfig())
            return await asyncio.to_thread(read_bundled_agent, name, config)
        return found

    @property
    def commands(self) -> Sequence[Command]:
        """The slash commands that run skills."""
        translate = self._core.translate
        own = [
            Command(
                name=(PREFIX if one.flow is None else FLOW_PREFIX) + one.name,
                description=one.description,
                hint=one.hint,
            )
            for one in self.skills
            if one.by_user
        ]
        bundled = [
            Command(
                name=PREFIX + one.name,
                description=translate(one.description),
                hint=None if one.hint is None else translate(one.hint),
            )
            for one in self.bundled
        ]
        return [*own, *bundled]


def _notice(problems: Sequence[Problem], translate: Translator) -> NoticeShown:
    """Return a notice of the problems; definitions that are left out come first."""
    from acp_agent.extensions.definitions.reading import grouped  # noqa: PLC0415 - loaded

    sorted_ones = sorted(grouped(problems), key=lambda one: not one.left_out)
    shown = [f"{one.place}: {translate.rendered(one.why)}" for one in sorted_ones[:SHOWN]]
    count = len(problems)
    if len(sorted_ones) > SHOWN:
        shown.append(translate("`acp-agent doctor` lists the others."))
    return NoticeShown(
        severity="warning",
        title="A skill or an agent is not used as it is written."
        if count == 1
        else f"{count} skills or agents are not used as they are written.",
        description="\n".join(shown),
    )
