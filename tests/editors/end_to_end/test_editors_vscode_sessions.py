"""Several conversations in the VS Code extension, in code-server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent
from tests.support.model_server import ModelServer, Request, answer

pytestmark = pytest.mark.timeout(2700)


def test_sessions_are_opened_again_with_their_conversation(
    vscode: CodeServer, folder: Path, home: Path
) -> None:
    seen = vscode.run("sessions.switched", folder, agent(home, "--model", "demo/demo"))
    assert [text.strip() for text in seen["users"]] == ["read notes.txt"]


def words(request: Request) -> str:
    """What the model was sent."""
    return json.dumps(request.json["messages"])


def test_a_fork_continues_the_conversation_and_its_source_remains(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    model.add(answer("Blue, then."), answer("It is blue."))
    seen = vscode.run("sessions.forked", folder, agent(home, environ=model.environ("anthropic")))
    assert [text.strip() for text in seen["copied"]] == ["The colour is blue.", "Blue, then."]
    assert "Blue, then." in words(model.requests[-1])
    assert seen["rows"] == 2


def test_a_session_keeps_its_new_title_and_continues_after_the_window_was_reloaded(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    model.add(answer("Blue, then."), answer("It is blue."))
    seen = vscode.run("sessions.renamed", folder, agent(home, environ=model.environ("anthropic")))
    assert [text.strip() for text in seen["again"]] == ["The colour is blue.", "Blue, then."]
    assert "Blue, then." in words(model.requests[-1])


def test_a_session_is_deleted_only_when_the_user_says_so_twice(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    model.add(answer("Blue, then."), answer("Something else."))
    seen = vscode.run("sessions.deleted", folder, agent(home, environ=model.environ("anthropic")))
    assert "The colour is blue." in seen["question"]
    assert seen["kept"] == 1
    assert [text.strip() for text in seen["said"]] == ["And now?"]
    assert "blue" not in words(model.requests[-1])
