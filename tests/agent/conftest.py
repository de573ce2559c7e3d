"""What the tests of the loop share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer
from tests.support.open_session import Desk, open_desk


@pytest.fixture
async def desk(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    """An open session in an empty folder, before a scripted model."""
    async with open_desk(tmp_path, model_server) as one:
        yield one
