"""What a session has beside the agent's own: MCP servers, and skills and agents from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_agent.events import NoticeShown
from acp_agent.session.background_tasks import BackgroundTasks
from acp_agent.session.commands import Command, commands_in
from acp_agent.session.definitions import Definitions

if TYPE_CHECKING:  # for sessions that have MCP servers
    from acp_agent.extensions.mcp.config import ServerConfig
    from acp_agent.session.mcp.servers import McpServers
    from acp_agent.session.session import Session


class Extensions:
    """What extends one session.

    Args:
        session: the session.

    Attributes:
        mcp: the MCP servers that the editor named; None where it named none.
        definitions: the skills and agents.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ending = BackgroundTasks(f"the end of session {session.session}")
        self.mcp: McpServers | None = None
        self.definitions = Definitions(session)

    @property
    def commands(self) -> Sequence[Command]:
        """The slash commands as they are at the moment."""
        own = commands_in(self._session.services.translate)
        servers = () if self.mcp is None else self.mcp.commands
        return (*own, *self.definitions.commands, *servers)

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must not be shown, sent or stored."""
        known = self._session.services.secrets.values()
        return known if self.mcp is None else (*known, *self.mcp.secrets)

    def use_servers(self, servers: Sequence[ServerConfig]) -> None:
        """Connect to these MCP servers from now on; others that were connected end."""
        if tuple(servers) == (() if self.mcp is None else self.mcp.configs):
            return
        if self.mcp is not None:
            self._ending.run(self.mcp.aclose())
            self.mcp = None
        session = self._session
        if not servers or session.closing:
            return
        from acp_agent.session.mcp.servers import McpServers  # noqa: PLC0415 - where there are any

        self.mcp = McpServers(
            servers,
            session=session.session,
            cwd=session.cwd,
            services=session.services,
            editor=session.editor,
            notify=self._notify,
            on_commands=self.offer_commands,
        )

    async def ready(self) -> None:
        """Wait until it is known what a turn can use, for a few seconds at most."""
        await self.definitions.look()
        if self.mcp is not None:
            await self.mcp.ready()

    async def aclose(self) -> None:
        """End all connections and programs."""
        self.use_servers(())
        await self._ending.wait()

    async def _notify(self, notice: NoticeShown) -> None:
        # Not journaled: it is about this opening, not part of the conversation.
        await self._session.tell(notice)

    def offer_commands(self) -> None:
        """Say to the editor which commands there are now."""
        self._session.editor.offer_commands(self._session.session, self.commands)
