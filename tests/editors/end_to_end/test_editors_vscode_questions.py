"""What an agent asks by a form or a page, in the VS Code extension in code-server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent, bad_agent
from tests.support.model_server import Call, ModelServer, answer

pytestmark = pytest.mark.timeout(2700)

QUESTIONS = Call(
    "ask_user",
    {
        "question": "Which language?",
        "options": [{"label": "Python"}, {"label": "Rust"}],
        "further": [
            {"question": "How many workers?", "kind": "integer"},
            {
                "question": "Which checks?",
                "options": [{"label": "lint"}, {"label": "types"}, {"label": "spelling"}],
                "several": True,
            },
            {"question": "Shall there be tests?", "kind": "yes_no"},
        ],
    },
)


def test_a_form_is_filled_in_and_the_model_has_the_answers(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    model.add(answer("I ask.", QUESTIONS), answer("Set up."))
    seen = vscode.run("questions.answered", folder, agent(home, environ=model.environ("anthropic")))
    assert seen["labels"][0].startswith("Which language?")
    assert seen["wanted"].startswith("How many workers?")
    assert seen["outcome"] == "accepted"
    told = json.dumps(model.requests[-1].json["messages"][-1])
    for words in ("Which language?: Python", "workers?: 3", "lint, types", "tests?: yes"):
        assert words in told


def test_the_model_learns_that_a_form_was_declined(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    model.add(answer("I ask.", QUESTIONS), answer("As you like."))
    seen = vscode.run("questions.declined", folder, agent(home, environ=model.environ("anthropic")))
    assert seen == {"outcome": "declined", "forms": 0}
    assert "does not want to answer" in json.dumps(model.requests[-1].json["messages"][-1])


def test_a_page_is_opened_only_after_its_address_was_seen_and_the_site_allowed(
    vscode: CodeServer, folder: Path
) -> None:
    seen = vscode.run("questions.page", folder, bad_agent("page"))
    assert seen["message"].strip() == "Give your consent on this page."
    assert seen["url"] == "https://example.invalid/consent?for=tests"
    assert "example.invalid" in seen["dialog"]
    assert len(seen["stillAsked"]) == 2
    assert '"action":"decline"' in seen["answer"]
    assert seen["opened"] == []
