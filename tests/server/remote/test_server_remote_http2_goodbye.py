"""HTTP/2 on a socket whose client said goodbye and vanished before it had read everything."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import h2.config
import h2.connection

from acp_agent.server.remote.endpoint import Endpoint
from acp_agent.server.remote.http2 import Http2
from acp_agent.server.remote.settings import Limits
from acp_agent.server.socket_slots import SocketSlots
from tests.support.waiting import until


class Unread(asyncio.Transport):
    """A socket of which nobody reads what is written, so that it is closed and never lost."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = False

    def write(self, _: Any) -> None:
        return

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def get_write_buffer_size(self) -> int:
        return 1

    def close(self) -> None:
        return

    def abort(self) -> None:
        self.cut = True


async def test_a_client_that_closes_and_reads_no_more_is_disconnected_like_a_silent_one() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    endpoint = SimpleNamespace(limits=Limits(ping=0.01), sockets=set())
    socket = Unread()
    slot = SocketSlots(1).acquire(socket.abort)
    assert slot is not None
    server = Http2(cast("Endpoint", endpoint), slot)
    server.connection_made(socket)
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    client.close_connection()
    server.data_received(client.data_to_send())
    await until(lambda: socket.cut)
    assert faults == []
    server.connection_lost(None)
