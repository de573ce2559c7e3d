"""A remote client's connection, which may have so many sessions open and no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from acp_agent.errors import InvalidInputError
from acp_agent.events import SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.link import ClientLink, Trace
from acp_agent.server.operations import Operations
from acp_agent.session.session import Session
from protocol.transports.base import Transport
from protocol.transports.streamable_http import StreamableHttpTransport

if TYPE_CHECKING:
    from acp_agent.session.history.fork import ForkPoint

_GRACE = 0.5  # seconds: the turns of who left go on, and their prompts are not waited for


class RemoteLink(ClientLink):
    """A `ClientLink` with a bound.

    Args:
        transport: what carries the messages.
        core: the sessions of the process.
        most: how many sessions may be open in it.
        local: whether the client is on this computer.
        trace: sees every message.
    """

    def __init__(
        self,
        transport: Transport,
        core: Core,
        *,
        most: int,
        local: bool,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(transport, core, trace=trace, local=local, grace=_GRACE)
        self._transport = transport
        self._most = most

    def leave(self) -> None:
        """Leave the sessions to who comes back.

        It has to be done before the requests that are being answered are cancelled, because a
        prompt that is cancelled by the client who has the session stops its turn.
        """
        for editor in self._editors:
            self.core.release(editor)

    def child_began(self, child: SessionId, parent: SessionId) -> None:
        """What is for the child goes to the stream of its parent, which the client has open."""
        if isinstance(self._transport, StreamableHttpTransport):
            self._transport.carry(child, parent)

    def operations(self, editor: ClientEditor) -> Operations:
        """The sessions, as this connection may use them through `editor`."""
        super().operations(editor)
        return _Bounded(self.core, editor, self._most)


class _Bounded(Operations):
    """Operations that open no more than so many sessions."""

    def __init__(self, core: Core, editor: ClientEditor, most: int) -> None:
        super().__init__(core, editor)
        self._most = most
        self._opening = 0

    async def create(
        self,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Start a session. Raises InvalidInputError where there are too many."""
        with self._room():
            return await super().create(cwd, directories, system_prompt=system_prompt)

    async def open(
        self,
        session_id: str,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
        then: Callable[[Session], Awaitable[None]],
    ) -> Session:
        """Open a session of the store. Raises InvalidInputError where there are too many."""
        found = None if self.core.opened is None else self.core.opened.find(SessionId(session_id))
        if found is not None and found.client.current is self._editor:
            opening: AbstractContextManager[None] = nullcontext()  # it has its place already
        else:
            opening = self._room()
        with opening:
            return await super().open(
                session_id, cwd, directories, system_prompt=system_prompt, then=then
            )

    async def fork(
        self,
        session_id: str,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
        point: ForkPoint | None = None,
    ) -> Session:
        """Start a session from another. Raises InvalidInputError where there are too many."""
        with self._room():
            return await super().fork(
                session_id, cwd, directories, system_prompt=system_prompt, point=point
            )

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Keep a place for one more session while it is opened.

        Raises:
            InvalidInputError: there is none left.
        """
        manager = self.core.opened
        held = 0 if manager is None else manager.held_by(self._editor)
        if held + self._opening >= self._most:
            raise InvalidInputError(
                f"this connection has {self._most} sessions open, as many as it may; close one, "
                "or start the agent with a higher --max-sessions"
            )
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1
