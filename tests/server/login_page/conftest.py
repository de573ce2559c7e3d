"""What the tests of the login page share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from tests.cli.cli_process import Provider, provider
from tests.server.login_page.page_login import KEY


@pytest.fixture
def served() -> Iterator[Provider]:
    """A provider that takes KEY alone."""
    with provider(KEY) as first:
        yield first


@pytest.fixture
async def browser() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=20) as client:
        yield client
