"""The VS Code extension in code-server, from nothing to a model that answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent
from tests.support.model_server import ModelServer, answer

pytestmark = pytest.mark.timeout(2700)

KEY = "sk-of-a-test"
READABLE = {"terminal.integrated.gpuAcceleration": "off"}  # else the terminal is a picture


def test_the_first_run_without_a_key_takes_three_steps(
    vscode: CodeServer, folder: Path, home: Path
) -> None:
    seen = vscode.run("first_run.demo", folder, agent(home), pictures="vscode")
    assert any("Log in" in method for method in seen["methods"])
    assert "Kept on disk." in seen["text"]


CONFIGURATION = """
model = "scripted/model"

[providers.scripted]
api = "anthropic"
base_url = "{url}"
api_key_env = "SCRIPTED_KEY"
"""


@pytest.fixture
def keyless(home: Path, model: ModelServer) -> dict[str, Any]:
    """An agent whose model wants a key that it does not have."""
    model.add(answer("Good day."))
    (home / "acp-agent").mkdir()
    (home / "acp-agent" / "config.toml").write_text(CONFIGURATION.format(url=model.url))
    return agent(home)


def test_a_key_that_is_given_in_the_terminal_makes_a_model_work_in_three_steps(
    vscode: CodeServer, folder: Path, model: ModelServer, keyless: dict[str, Any]
) -> None:
    seen = vscode.run("first_run.inTerminal", folder, keyless, settings=READABLE, key=KEY)
    assert seen["method"] == "Log in (in a terminal)"
    assert seen["answer"].strip() == "Good day."
    assert seen["left"] == 0
    assert model.requests[-1].headers["x-api-key"] == KEY
    assert not any(KEY in notice for notice in seen["notices"])


def test_a_login_page_that_this_browser_would_reach_otherwise_leads_to_the_terminal(
    vscode: CodeServer, folder: Path, model: ModelServer, keyless: dict[str, Any]
) -> None:
    seen = vscode.run("first_run.fromPageToTerminal", folder, keyless, settings=READABLE, key=KEY)
    assert "computer where the agent runs" in seen["told"]
    assert seen["opened"] == []
    assert seen["errors"] == []
    assert model.requests[-1].headers["x-api-key"] == KEY


def test_a_login_page_can_be_opened_in_a_browser_on_the_agents_computer(
    vscode: CodeServer, folder: Path, model: ModelServer, keyless: dict[str, Any]
) -> None:
    seen = vscode.run("first_run.byCopiedAddress", folder, keyless, key=KEY)
    assert seen["answer"].strip() == "Good day."
    assert model.requests[-1].headers["x-api-key"] == KEY
