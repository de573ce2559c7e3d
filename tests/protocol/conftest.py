"""What the tests of connections share, in this process and with another."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.protocol.connections import end_reading
from tests.protocol.peer_process import PeerProcess, running_peer

LIMIT = 60.0


@pytest.fixture(autouse=True)
def readers_end_with_their_test() -> Iterator[None]:
    """End the threads that read for a transport of the test, and wait for them.

    The test has closed its descriptors; a thread that goes on to read would take bytes from
    whatever a later test opens under the same number.
    """
    yield
    end_reading()
    for thread in threading.enumerate():
        if thread.name == "stdio-reader":
            thread.join(LIMIT)
            assert not thread.is_alive(), "a transport still reads after its test"


@pytest.fixture
async def peer() -> AsyncIterator[PeerProcess]:
    """A peer in a process of its own, initialized."""
    async with running_peer() as one:
        await one.initialize()
        yield one
