"""Fixtures of the tests of skills' and agents' files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.definitions.definition_files import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A user and a project without any skills or agents."""
    return Files(tmp_path)
