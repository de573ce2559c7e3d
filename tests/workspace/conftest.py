"""What the tests of the workspace share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.web_site import Server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A web server on 127.0.0.1, which the network has to be allowed to reach."""
    async with Server() as one:
        yield one
