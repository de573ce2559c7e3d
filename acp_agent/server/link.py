"""One client's connection: from the transport to the sessions that the client drives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from acp_agent.errors import AcpAgentError
from acp_agent.ids import SessionId
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.errors import to_rpc_error
from acp_agent.server.handshake import Handshake
from acp_agent.server.operations import Operations
from acp_agent.workspace.threads import release_memory_soon
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.errors import RpcError
from protocol.jsonrpc.surface import Surface
from protocol.transports.base import Transport

if TYPE_CHECKING:
    from acp_agent.server.account import AuthStatus

Trace = Callable[[Literal["in", "out"], bytes], None]


class ClientLink:
    """A client, the version it speaks, and its way to the sessions.

    Args:
        transport: what carries the messages.
        core: the sessions of the process.
        trace: sees every line.
        local: whether the client is on this computer.
        farewell: what is to be ended with the connection; see `Connection`.
        grace: seconds in which what is being answered ends with the connection; see there.
    """

    def __init__(
        self,
        transport: Transport,
        core: Core,
        *,
        trace: Trace | None = None,
        local: bool = True,
        farewell: Callable[[], Awaitable[None]] | None = None,
        grace: float = 2.0,
    ) -> None:
        self.core = core
        self.handshake = Handshake(self._speak, local=local)
        self.connection = Connection(
            transport,
            Surface({}, {}),
            admit=self.handshake.admit,
            trace=trace,
            farewell=farewell,
            grace=grace,
            on_relief=release_memory_soon,
        )
        self._surfaces: dict[int, Surface] = {}
        self._editors: list[ClientEditor] = []
        self.told_auth_status: AuthStatus | None = None

    async def run(self) -> None:
        """Serve the client until its connection ends; its sessions are left to who comes back."""
        self.core.links.add(self)
        try:
            await self.connection.run()
        finally:
            self.core.links.discard(self)
            for editor in self._editors:
                self.core.release(editor)

    def operations(self, editor: ClientEditor) -> Operations:
        """The sessions, as this connection may use them through `editor`."""
        self._editors.append(editor)
        return Operations(self.core, editor)

    def child_began(self, child: SessionId, parent: SessionId) -> None:
        """A child session of one that this client has is about to be shown to it."""

    def map_error(self, error: Exception) -> RpcError | None:
        """The error response for an exception of ours, or a limit of the system's; else None."""
        if not isinstance(error, AcpAgentError):
            limited = explain_descriptor_limit(error)
            if limited is None:
                return None
            error = AcpAgentError(f"the system refuses this: {limited}")
        from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - its patterns take time to build

        found = to_rpc_error(error, self.handshake.auth_methods(), self.core.translate)
        return RpcError(found.code, scrub(found.message, self.core.secrets.values()), found.data)

    def _speak(self, version: int) -> None:
        """Answer in a version of the protocol from here on."""
        surface = self._surfaces.get(version)
        if surface is None:
            surface = self._surfaces[version] = _SURFACES[version](self)
        self.connection.serve(surface)


# Each imports its version's types, which a connection of the other version does not need.


def _version_1(link: ClientLink) -> Surface:
    from acp_agent.server.v1.handlers import surface_for  # noqa: PLC0415 - as said above

    return surface_for(link)


def _version_2(link: ClientLink) -> Surface:
    from acp_agent.server.v2.handlers import surface_for  # noqa: PLC0415 - as said above

    return surface_for(link)


_SURFACES = {1: _version_1, 2: _version_2}
