"""What the tests of the workspace share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.web_site import Server
from tests.workspace.checkpoint_folder import Checkpoints


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A web server on 127.0.0.1, which the network has to be allowed to reach."""
    async with Server() as test_server:
        yield test_server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder, whose files are kept."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def history(tmp_path: Path, root: Path) -> Checkpoints:
    """Checkpoints of an empty folder."""
    return Checkpoints(tmp_path, root)
