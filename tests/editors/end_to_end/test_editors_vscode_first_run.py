"""The VS Code extension in code-server, from nothing to a model that answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent

pytestmark = pytest.mark.timeout(2700)


def test_the_first_run_without_a_key_takes_three_steps(
    vscode: CodeServer, folder: Path, home: Path
) -> None:
    seen = vscode.run("first_run.firstRun", folder, agent(home), pictures="vscode")
    assert any("Log in" in method for method in seen["methods"])
    assert "Kept on disk." in seen["text"]
