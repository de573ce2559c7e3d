"""What every test of connections in this process needs."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.protocol.connections import end_reading

LIMIT = 5.0


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
