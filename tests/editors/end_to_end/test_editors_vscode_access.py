"""The VS Code extension by the keyboard alone, and for those who do not see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent
from tests.support.model_server import Call, ModelServer, Thought, answer

pytestmark = pytest.mark.timeout(2700)

GREETING = """def greet(name):
    return f"Hello {name}"


def part(name):
    return f"Bye {name}"
"""
POLITE = GREETING.replace("Hello", "Good day,").replace("Bye", "Goodbye,")
WRITE = Call("write", {"path": "greeting.py", "content": POLITE})
ASK = Call(
    "ask_user",
    {
        "question": "Which language?",
        "options": [{"label": "Python"}, {"label": "Rust"}],
        "further": [
            {"question": "How many?", "kind": "integer"},
            {"question": "Which checks?", "options": [{"label": "lint"}], "several": True},
            {"question": "Tests?", "kind": "yes_no"},
        ],
    },
)
PLAN = Call("todo", {"todos": [{"content": "Greet politely", "status": "in_progress"}]})


@pytest.fixture
def folder(folder: Path) -> Path:
    """The project, with a file that is to be changed."""
    (folder / "greeting.py").write_text(GREETING)
    return folder


def check(found: list[dict[str, Any]]) -> None:
    """Fail with what keeps somebody from using the chat, a line each."""
    barriers = [
        "{state} {theme} {id}: {html}: {why}".format_map(one)
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    if barriers:
        pytest.fail("\n".join(barriers))


def test_a_conversation_has_no_barrier_in_any_theme(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    text = "See [greeting.py](greeting.py):\n\n```python\nprint('Good day')  # greet\n```\n"
    model.add(
        answer(Thought("Politely."), text, PLAN, Call("read", {"path": "greeting.py"})),
        answer("Now.", WRITE),
        answer("I ask.", ASK),
    )
    started = agent(home, environ=model.environ("anthropic"))
    check(vscode.run("access.checked", folder, started)["found"])


def test_a_login_has_no_barrier_in_any_theme(vscode: CodeServer, folder: Path, home: Path) -> None:
    check(vscode.run("access.login", folder, agent(home))["found"])


def test_a_change_is_asked_for_allowed_and_reviewed_without_a_mouse(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    read = Call("read", {"path": "greeting.py"})
    model.add(answer("I look:", read), answer("Politely:", WRITE), answer("Both are polite now."))
    seen = vscode.run(
        "access.keyboard",
        folder,
        agent(home, environ=model.environ("anthropic")),
        file=str(folder / "greeting.py"),
    )
    assert seen["rejected"] in {
        POLITE.replace("Good day,", "Hello"),
        POLITE.replace("Goodbye,", "Bye"),
    }
    assert seen["final"] == seen["rejected"]
    for stops in (seen["way"], seen["toChange"]):
        assert all(stop.partition(": ")[2] for stop in stops), stops
        assert len(stops) < 12
