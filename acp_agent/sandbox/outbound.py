"""Connections from the filtering proxy to the hosts that its rules allow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from acp_agent.config.network_addresses import Resolve, literal_address
from acp_agent.errors import HostRefusedError
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.sandbox.host_rules import HostRules, normalize_host

IDLE_LIMIT = 600.0  # seconds after which an idle connection is closed
CHUNK = 65_536  # bytes
_RESOLVE_LIMIT = 10.0  # seconds
_CONNECT_LIMIT = 5.0  # seconds for one address
_FLUSH_LIMIT = 2.0  # seconds for the peer to receive the last bytes and to close
_MAX_ADDRESSES = 4  # addresses of a host that are tried
_MAX_REFUSED = 100  # recorded hosts; a program can invent any number of them


class Stream(NamedTuple):
    """Both directions of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def close(self) -> None:
        """Close the connection after the peer has received everything, or after a moment.

        Bytes that still arrive are discarded: closing a socket with unread data would lose sent
        data.
        """
        try:
            async with asyncio.timeout(_FLUSH_LIMIT):
                await self.writer.drain()
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                while await self.reader.read(CHUNK):
                    pass
        except OSError:  # TimeoutError is one
            pass
        finally:
            self.writer.transport.abort()


class Outbound:
    """Opens connections to allowed hosts and records the refused ones."""

    def __init__(
        self, rules: HostRules, *, resolve: Resolve, on_refused: Callable[[str, int], None]
    ) -> None:
        """Create an instance without connections; the arguments are those of `FilteringProxy`."""
        self._rules = rules
        self._resolve = resolve
        self._on_refused = on_refused
        self._refused: set[tuple[str, int]] = set()

    async def open(self, host: str, port: int) -> Stream:
        """Connect to a host. Its name is resolved once, and only checked addresses are used.

        Raises:
            HostRefusedError: the rules refuse the host or one of its addresses.
            ConnectionError: the host cannot be reached.
        """
        name = normalize_host(host)
        try:
            self._rules.check_host(name, port)
            addresses = await self._addresses(name, port)
            for address in addresses:
                self._rules.check_address(name, address, port)
        except HostRefusedError:
            self._record(name, port)
            raise
        problem: OSError | None = None
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                async with asyncio.timeout(_CONNECT_LIMIT):
                    return Stream(*await asyncio.open_connection(address, port))
            except OSError as error:  # TimeoutError is one
                problem = error
        raise ConnectionError(f"cannot connect to {name}:{port}: {_reason(problem)}")

    async def _addresses(self, name: str, port: int) -> Sequence[str]:
        if literal_address(name) is not None:
            return [name]
        try:
            async with asyncio.timeout(_RESOLVE_LIMIT):
                return await self._resolve(name, port)
        except OSError as error:
            raise ConnectionError(f"cannot resolve {name}: {_reason(error)}") from None

    def _record(self, name: str, port: int) -> None:
        if (name, port) not in self._refused and len(self._refused) < _MAX_REFUSED:
            self._refused.add((name, port))
            self._on_refused(name, port)


async def exchange(first: Stream, second: Stream) -> None:
    """Copy bytes in both directions until both end, one fails, or the connection is idle."""
    try:
        async with asyncio.timeout(IDLE_LIMIT) as limit, asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(first.reader, second.writer, limit))
            tasks.create_task(_copy(second.reader, first.writer, limit))
    except* OSError:  # TimeoutError is one
        pass


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: asyncio.Timeout
) -> None:
    while data := await reader.read(CHUNK):
        restart_idle_timeout(limit)
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def restart_idle_timeout(limit: asyncio.Timeout) -> None:
    """Restart the idle timeout of a connection."""
    limit.reschedule(asyncio.get_running_loop().time() + IDLE_LIMIT)


def _reason(error: OSError | None) -> str:
    if error is None:
        return "it has no address"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return explain_descriptor_limit(error) or error.strerror or type(error).__name__
