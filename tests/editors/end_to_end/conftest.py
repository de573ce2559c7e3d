"""Whole editors are started only by `make test-editors`, which sets ACP_AGENT_EDITORS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.editors.end_to_end.code_server import CodeServer

collect_ignore_glob = [] if os.environ.get("ACP_AGENT_EDITORS") else ["test_*.py"]


@pytest.fixture(scope="session")
def vscode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeServer]:
    """code-server with the extension, one for all tests."""
    from tests.editors.end_to_end.code_server import code_server

    with code_server(tmp_path_factory.mktemp("code-server")) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a file of notes."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("Kept on disk.\n")
    return project
