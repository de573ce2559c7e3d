"""Asks the system for the addresses of a name without holding anything up."""

from __future__ import annotations

import functools
import socket
from collections.abc import Awaitable, Callable, Sequence

from acp_agent.workspace.background import in_daemon_thread

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of a host, from the system's resolver.

    Raises:
        OSError: the name is not known, or no name server answers.
    """
    # As bytes, so that Python's own, older IDNA encoding stays out of it.
    found = await in_daemon_thread(
        functools.partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
