"""Selects the handlers for the version of the protocol that a client speaks.

The other version's types are not imported.
"""

from __future__ import annotations

from acp_agent.server.client_connection import ClientConnection
from protocol.jsonrpc.handlers import Surface


def surface_for(client: ClientConnection, version: int) -> Surface:
    """Return the methods of a version and what answers them."""
    if version == 1:
        from acp_agent.server.v1.handlers import HandlersV1  # noqa: PLC0415 - as said above

        return HandlersV1(client).surface()
    from acp_agent.server.v2.handlers import HandlersV2  # noqa: PLC0415 - as said above

    return HandlersV2(client).surface()
