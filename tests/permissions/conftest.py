"""What the tests of permissions share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.permissions.gate_room import Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A gate with an empty project."""
    return Room(tmp_path.resolve())
