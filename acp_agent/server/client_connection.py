"""One client's connection: from the transport to the sessions that the client uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from acp_agent.errors import AcpAgentError
from acp_agent.ids import SessionId
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.errors import to_rpc_error
from acp_agent.server.handshake import Handshake
from acp_agent.server.operations import Operations
from acp_agent.workspace.threads import MemoryRelease
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Surface
from protocol.jsonrpc.messages import RpcError
from protocol.transports.base import Transport

if TYPE_CHECKING:
    from acp_agent.server.auth_status import AuthStatus

Trace = Callable[[Literal["in", "out"], bytes], None]


class ClientConnection:
    """A client, the version it speaks, and its access to the sessions.

    Args:
        transport: what carries the messages.
        surface_for: makes what answers the client in a version of the protocol.
        trace: sees every line.
        local: whether the client is on this computer.
        max_sessions: how many sessions the client may have open; None: any number.
        on_child: called with a child session and its parent before the child is first shown.
        on_shutdown: what is to be ended with the connection; see `Connection`.
        grace: seconds in which what is being answered ends with the connection; see there.
    """

    def __init__(
        self,
        transport: Transport,
        core: Core,
        surface_for: Callable[[ClientConnection, int], Surface],
        *,
        trace: Trace | None = None,
        local: bool = True,
        max_sessions: int | None = None,
        on_child: Callable[[SessionId, SessionId], None] = lambda *_: None,
        on_shutdown: Callable[[], Awaitable[None]] | None = None,
        grace: float = 2.0,
    ) -> None:
        self.core = core
        self.on_child = on_child
        self.handshake = Handshake(self._use_version, local=local)
        self.connection = Connection(
            transport,
            Surface({}, {}),
            admit=self.handshake.admit,
            trace=trace,
            on_shutdown=on_shutdown,
            grace=grace,
            on_memory_freed=MemoryRelease().schedule,
        )
        self._surface_for = surface_for
        self._max_sessions = max_sessions
        self._surfaces: dict[int, Surface] = {}
        self._operations: list[Operations] = []
        self._sent_auth_status: AuthStatus | None = None

    async def run(self) -> None:
        """Serve the client until its connection ends. Its sessions stay open for a reconnect."""
        self.core.subscribers.add(self)
        try:
            await self.connection.run()
        finally:
            self.core.subscribers.discard(self)
            self.release_sessions()

    def release_sessions(self) -> None:
        """Leave the sessions to a client that reconnects.

        If the connection is lost, this must come before its requests are cancelled: a prompt that
        is cancelled by the client whose turn it is cancels the turn.
        """
        for operations in self._operations:
            operations.release()

    def operations(self, editor: ClientEditor[Any]) -> Operations:
        """Return the sessions as this connection uses them through `editor`."""
        operations = Operations(self.core, editor, max_sessions=self._max_sessions)
        self._operations.append(operations)
        return operations

    async def auth_status(self) -> AuthStatus:
        """Return the authentication status, which is about to be sent to the client."""
        self._sent_auth_status = await self.core.auth.status()
        return self._sent_auth_status

    def auth_status_changed(self, before: AuthStatus | None, now: AuthStatus) -> None:
        """Send the authentication status if the client was sent another one."""
        if self.handshake.agreed and now != (self._sent_auth_status or before):
            from acp_agent.server.auth_status import AUTH_STATUS_UPDATE, to_json  # noqa: PLC0415

            self.connection.notify(AUTH_STATUS_UPDATE, to_json(now))
            self._sent_auth_status = now

    def options_changed(self, session: SessionId) -> None:
        """Send a session's options if this client has it."""
        for operations in self._operations:
            operations.editor.options_changed(session)

    def map_error(self, error: Exception) -> RpcError | None:
        """Return the error response for one of our exceptions or a system limit; else None."""
        if not isinstance(error, AcpAgentError):
            reason = explain_descriptor_limit(error)
            if reason is None:
                return None
            error = AcpAgentError(f"the system refuses this: {reason}")
        from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - its patterns take time to build

        response = to_rpc_error(error, self.handshake.auth_methods(), self.core.translate)
        return RpcError(
            response.code, scrub(response.message, self.core.secrets.values()), response.data
        )

    def _use_version(self, version: int) -> None:
        """Answer in a version of the protocol from here on."""
        surface = self._surfaces.get(version)
        if surface is None:
            surface = self._surfaces[version] = self._surface_for(self, version)
        self.connection.serve(surface)
