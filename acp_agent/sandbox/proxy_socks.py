"""SOCKS 5 (RFC 1928) for the filtering proxy: CONNECT without authentication."""

from __future__ import annotations

import asyncio
import ipaddress

from acp_agent.errors import HostRefusedError
from acp_agent.sandbox.outbound import Outbound, Stream, exchange

SOCKS_VERSION = b"\x05"
_REQUEST_LIMIT = 10.0  # seconds
_NO_AUTHENTICATION, _NO_ACCEPTABLE_METHOD = 0x00, 0xFF
_CONNECT = 0x01
_IPV4, _NAME, _IPV6 = 0x01, 0x03, 0x04
_SUCCEEDED, _NOT_ALLOWED, _UNREACHABLE = 0x00, 0x02, 0x04
_UNKNOWN_COMMAND, _UNKNOWN_ADDRESS_TYPE = 0x07, 0x08


async def serve_socks(client: Stream, outbound: Outbound) -> None:
    """Serve a client whose first byte was `SOCKS_VERSION`.

    Raises:
        OSError: the client disconnected or timed out.
    """
    try:
        async with asyncio.timeout(_REQUEST_LIMIT):
            target = await _read_request(client)
    except asyncio.IncompleteReadError:
        return
    if target is None:
        return
    try:
        server = await outbound.open(*target)
    except HostRefusedError:
        _reply(client, _NOT_ALLOWED)
        return
    except ConnectionError:
        _reply(client, _UNREACHABLE)
        return
    try:
        _reply(client, _SUCCEEDED)
        await exchange(client, server)
    finally:
        server.writer.transport.abort()


async def _read_request(client: Stream) -> tuple[str, int] | None:
    """Return the requested host and port, or None if the request was refused."""
    reader = client.reader
    (count,) = await reader.readexactly(1)
    if _NO_AUTHENTICATION not in await reader.readexactly(count):
        client.writer.write(SOCKS_VERSION + bytes([_NO_ACCEPTABLE_METHOD]))
        return None
    client.writer.write(SOCKS_VERSION + bytes([_NO_AUTHENTICATION]))
    version, command, _, address_type = await reader.readexactly(4)
    if version != SOCKS_VERSION[0] or command != _CONNECT:
        _reply(client, _UNKNOWN_COMMAND)
        return None
    if address_type == _NAME:
        (length,) = await reader.readexactly(1)
        host = (await reader.readexactly(length)).decode("latin-1")
    elif address_type in {_IPV4, _IPV6}:
        packed = await reader.readexactly(4 if address_type == _IPV4 else 16)
        host = str(ipaddress.ip_address(packed))
    else:
        _reply(client, _UNKNOWN_ADDRESS_TYPE)
        return None
    return host, int.from_bytes(await reader.readexactly(2), "big")


def _reply(client: Stream, code: int) -> None:
    client.writer.write(SOCKS_VERSION + bytes([code, 0, _IPV4]) + bytes(6))
