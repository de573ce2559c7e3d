"""What the chat asks of an agent about its sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.method import Method
from protocol.v1 import methods, types as acp, unstable_methods, unstable_types as unstable

P = TypeVar("P")
R = TypeVar("R")


class AgentSessions:
    """The sessions of an agent. Every method raises RpcError, ConnectionError, TimeoutError.

    Args:
        connection: to the agent.
        capabilities: what it can do; a method that it has not is not to be called.
        patience: seconds that it has for each answer.
    """

    def __init__(
        self, connection: Connection, capabilities: acp.AgentCapabilities, *, patience: float
    ) -> None:
        self._connection = connection
        self._patience = patience
        has = capabilities.session_capabilities
        self.loads = capabilities.load_session
        self.resumes = has.resume is not None
        self.lists = has.list is not None
        self.forks = has.fork is not None
        self.renames = has.title is not None
        self.deletes = has.delete is not None
        self._closes = has.close is not None

    async def new(self, cwd: Path) -> acp.NewSessionResponse:
        """Make a session."""
        request = acp.NewSessionRequest(cwd=str(cwd), mcp_servers=[])
        return await self._ask(methods.SESSION_NEW, request)

    async def load(self, session: str, cwd: Path) -> acp.LoadSessionResponse:
        """Open a session and have it replayed."""
        request = acp.LoadSessionRequest(session_id=session, cwd=str(cwd), mcp_servers=[])
        return await self._ask(methods.SESSION_LOAD, request)

    async def resume(self, session: str, cwd: Path) -> acp.ResumeSessionResponse:
        """Open a session without a replay."""
        request = acp.ResumeSessionRequest(session_id=session, cwd=str(cwd))
        return await self._ask(methods.SESSION_RESUME, request)

    async def fork(self, session: str, cwd: Path) -> unstable.ForkSessionResponse:
        """Make a session that begins with what another one holds."""
        request = unstable.ForkSessionRequest(session_id=session, cwd=str(cwd))
        return await self._ask(unstable_methods.SESSION_FORK, request)

    async def rename(self, session: str, title: str) -> str:
        """Give a session a title; the title as it is kept."""
        request = unstable.SetSessionTitleRequest(session_id=session, title=title)
        return (await self._ask(unstable_methods.SESSION_SET_TITLE, request)).title

    async def delete(self, session: str) -> None:
        """Delete a session for good."""
        request = acp.DeleteSessionRequest(session_id=session)
        await self._ask(methods.SESSION_DELETE, request)

    async def close(self, session: str) -> None:
        """Let a session go that is not needed any more, where the agent has a way to be told."""
        if self._closes:
            request = acp.CloseSessionRequest(session_id=session)
            await self._ask(methods.SESSION_CLOSE, request)

    async def of_folder(self, cwd: Path, *, limit: int) -> list[acp.SessionInfo]:
        """The sessions of a folder, the newest first."""
        found: list[acp.SessionInfo] = []
        cursor: str | None = None
        while len(found) < limit:
            request = acp.ListSessionsRequest(cwd=str(cwd), cursor=cursor)
            page = await self._ask(methods.SESSION_LIST, request)
            found += page.sessions
            if page.next_cursor is None or not page.sessions or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        return found[:limit]

    async def set_option(self, session: str, option: str, value: str | bool) -> None:
        """Give a configuration option a value; the agent tells of the rest."""
        request = acp.SetSessionConfigOptionRequest(
            session_id=session,
            config_id=option,
            value=value,
            type="boolean" if isinstance(value, bool) else None,
        )
        await self._ask(methods.SESSION_SET_CONFIG_OPTION, request)

    async def set_mode(self, session: str, mode: str) -> None:
        """Put a session into a mode, where the agent has no options."""
        request = acp.SetSessionModeRequest(session_id=session, mode_id=mode)
        await self._ask(methods.SESSION_SET_MODE, request)

    async def _ask(self, method: Method[P, R], request: P) -> R:
        return await self._connection.request(method, request, timeout=self._patience)
