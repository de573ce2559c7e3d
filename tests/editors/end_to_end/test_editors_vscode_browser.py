"""The VS Code extension in code-server: an edit from the request to its review.

ACP_AGENT_PICTURES names a folder for screenshots; those of the documentation are made that way.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent
from tests.support.model_server import Call, ModelServer, Pause, Thought, answer

pytestmark = pytest.mark.timeout(2700)

THEMES = {"dark": "Default Dark Modern", "light": "Default Light Modern"}
GREETING = '''"""Greetings."""


def greet(name: str) -> str:
    return f"Hello {name}"


def wave(name: str) -> str:
    return f"*waves at {name}*"


def part(name: str) -> str:
    return f"Bye {name}"
'''
POLITE = GREETING.replace("Hello {name}", "Good day, {name}").replace(
    "Bye {name}", "Goodbye, {name}"
)
STEPS = (
    "Read greeting.py",
    "Make both greetings polite",
    "Run the tests",
)
ANSWER = """Both are polite now:

```python
def greet(name: str) -> str:
    return f"Good day, {name}"
```

- `greet` wishes a good day,
- `part` says goodbye in full; see [greeting.py](greeting.py#L13).
"""


@pytest.fixture
def folder(folder: Path) -> Path:
    """The project, with a file that is to be changed."""
    (folder / "greeting.py").write_text(GREETING)
    return folder


def todo(done: int) -> Call:
    states = ["completed" if at < done else "pending" for at in range(len(STEPS))]
    if done < len(STEPS):
        states[done] = "in_progress"
    items = [{"content": step, "status": state} for step, state in zip(STEPS, states, strict=True)]
    return Call("todo", {"todos": items})


@pytest.mark.parametrize("theme", THEMES)
def test_an_edit_is_streamed_planned_allowed_and_reviewed_by_hunk(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer, theme: str
) -> None:
    model.add(
        answer(
            Thought("The file first, then the words."),
            "I look at the file.",
            todo(0),
            Call("read", {"path": "greeting.py"}),
        ),
        answer(
            "Now both greetings.",
            todo(1),
            Call("write", {"path": "greeting.py", "content": POLITE}),
        ),
        answer(*re.findall(r"\S+\s*", ANSWER), todo(3)),
        answer("That is all."),
    )
    seen = vscode.run(
        "reviewing.work",
        folder,
        agent(home, environ=model.environ("anthropic")),
        settings={"workbench.colorTheme": THEMES[theme]},
        file=str(folder / "greeting.py"),
        pictures=f"vscode-{theme}",
    )
    assert len(seen["options"]) == 4
    assert seen["badge"] == "1"
    assert seen["proposed"] == 1
    assert seen["thoughtOpen"] is None
    assert [entry.partition(": ")[2] for entry in seen["plan"]] == list(STEPS)
    assert any("Both are polite now" in text for text in seen["text"])
    assert seen["highlighted"] > 0
    assert seen["written"] == POLITE
    assert seen["hunks"] == 2
    assert seen["afterAccept"] == seen["written"]
    assert seen["afterReject"] == GREETING.replace("Hello {name}", "Good day, {name}")


def test_a_permission_is_answered_by_the_keyboard_and_a_hidden_chat_is_as_it_was(
    vscode: CodeServer, folder: Path, home: Path
) -> None:
    file = str(folder / "greeting.py")
    seen = vscode.run("reviewing.notified", folder, agent(home, "--model", "demo/demo"), file=file)
    assert seen == {"draft": "a draft", "users": 1}


def test_a_change_by_others_is_reported_and_stays_when_the_agents_is_rejected(
    vscode: CodeServer, folder: Path, home: Path
) -> None:
    file = str(folder / "greeting.py")
    seen = vscode.run("reviewing.changed", folder, agent(home, "--model", "demo/demo"), file=file)
    assert seen["text"] == GREETING + "# mine\n"


def test_a_notification_asks_when_the_chat_is_not_visible(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    call = Call("write", {"path": "made.txt", "content": "written\n"})
    model.add(answer("I write.", Pause(6), call), answer("Done."))
    seen = vscode.run(
        "reviewing.hidden",
        folder,
        agent(home, environ=model.environ("anthropic")),
        file=str(folder / "made.txt"),
    )
    assert seen["done"]


def test_text_that_is_not_saved_is_what_the_agent_reads(
    vscode: CodeServer, folder: Path, home: Path
) -> None:
    seen = vscode.run("reviewing.unsaved", folder, agent(home, "--model", "demo/demo"))
    assert "never saved" in seen["text"]
    assert (folder / "notes.txt").read_text() == "Kept on disk.\n"
