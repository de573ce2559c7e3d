"""What a client can do with sessions beyond opening and prompting them, in either version."""

from __future__ import annotations

from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.operations import Operations
from acp_agent.session import shelf
from acp_agent.session.session import Session


class Lifecycle:
    """Sessions archived, named and looked up, as one connection may do it.

    Args:
        core: the sessions of the process.
        editor: the connection's end of them.
        operations: the connection's other ways to them, whose order this keeps.
    """

    def __init__(self, core: Core, editor: ClientEditor, operations: Operations) -> None:
        self._core = core
        self._editor = editor
        self._operations = operations

    async def archive(self, session_id: str) -> None:
        """Leave a session out of lists; see `acp_agent.session.shelf.archive`."""
        self._operations.refuse_child(session_id)
        self._operations.cancel(session_id)  # what waits for its turn in the lane ends, too
        async with self._operations.turn_of(session_id):
            await shelf.archive(await self._core.manager(), SessionId(session_id))
            self._editor.forget(SessionId(session_id))

    async def unarchive(self, session_id: str) -> None:
        """Put a session into lists again; see `acp_agent.session.shelf.unarchive`."""
        async with self._operations.turn_of(session_id):
            await shelf.unarchive(await self._core.manager(), SessionId(session_id))

    async def set_title(self, session_id: str, title: str) -> str:
        """Name a session; see `acp_agent.session.shelf.set_title`."""
        async with self._operations.turn_of(session_id):
            return await shelf.set_title(await self._core.manager(), SessionId(session_id), title)

    async def look_up(self, session_id: str) -> Session | None:
        """A session that is open in this process; see `acp_agent.session.shelf.look_up`."""
        self._operations.refuse_child(session_id)
        return await shelf.look_up(await self._core.manager(), SessionId(session_id))
