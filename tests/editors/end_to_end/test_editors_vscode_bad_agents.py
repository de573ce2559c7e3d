"""The VS Code extension in code-server with agents that are missing, die or misbehave."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent, bad_agent
from tests.support.model_server import ModelServer, Pause, Stall, answer

pytestmark = pytest.mark.timeout(2700)


def test_a_killed_agent_is_restarted_and_the_conversation_continues(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    model.add(answer("The first words ", Pause(0.2), Stall(), "never come."), answer("Back again."))
    pid = folder / "agent.pid"
    started = agent(home, environ=model.environ("anthropic"))
    line = 'echo $$ > "$0"; exec "$@"'
    wrapped = {
        "command": "sh",
        "args": ["-c", line, str(pid), started["command"], *started["args"]],
        "env": started["env"],
    }
    seen = vscode.run("bad_agents.crash", folder, wrapped, pid=str(pid))
    assert "The first words" in seen["kept"]
    assert any("SIGKILL" in notice for notice in seen["notices"])


def test_markup_and_scripts_of_an_agent_stay_text(vscode: CodeServer, folder: Path) -> None:
    seen = vscode.run("bad_agents.hostile", folder, bad_agent("hostile"))
    assert seen["owned"] is None
    assert seen["elements"] == []
    assert "<script>" in seen["shown"]
    assert seen["commands"] == ["/evil"]
    assert seen["unknownOption"] == 1
    assert seen["refused"] == []


def test_a_file_outside_the_workspace_is_refused_with_the_reason(
    vscode: CodeServer, folder: Path
) -> None:
    contrast = {"workbench.colorTheme": "Default High Contrast"}
    seen = vscode.run("bad_agents.outside", folder, bad_agent("outside"), settings=contrast)
    assert "outside the workspace" in seen["answer"]
    assert "root:" not in seen["answer"]
    assert any("/etc/passwd" in notice for notice in seen["notices"])


def test_a_thousand_calls_leave_the_editor_responsive(vscode: CodeServer, folder: Path) -> None:
    seen = vscode.run("bad_agents.many", folder, bad_agent("calls"))
    assert seen["drawn"] <= 400
    assert seen["typed"] == "still here"


def test_a_missing_agent_is_named_and_the_message_is_not_lost(
    vscode: CodeServer, folder: Path
) -> None:
    seen = vscode.run("bad_agents.missing", folder, {"command": "no-such-agent"})
    assert "“no-such-agent” was not found" in seen["banner"]


NOT_STARTED = {
    "dies": ("ended while it was starting (exit code 3)", "cannot find its configuration"),
    "version": ("version 7 of the protocol", ""),
    "silent": ("did not answer within 2 seconds", ""),
}


@pytest.mark.parametrize("how", NOT_STARTED)
def test_an_agent_that_does_not_start_is_reported(
    vscode: CodeServer, folder: Path, how: str
) -> None:
    settings = {"acpAgent.startTimeout": 2}
    seen = vscode.run("bad_agents.notStarted", folder, bad_agent(how), settings=settings)
    told, detail = NOT_STARTED[how]
    assert told in seen["told"]
    assert detail in seen["detail"]


def test_output_of_an_agent_outside_the_protocol_is_reported_and_the_agent_continues(
    vscode: CodeServer, folder: Path
) -> None:
    seen = vscode.run("bad_agents.garbage", folder, bad_agent("garbage"))
    assert "heard all the same" in seen["answer"]
    assert any("Downloading 3 files" in notice for notice in seen["notices"])


def test_a_hundred_thousand_pieces_leave_every_press_of_a_key_shown_at_once(
    vscode: CodeServer, folder: Path
) -> None:
    seen = vscode.run("bad_agents.flood", folder, bad_agent("flood", "100000"))
    assert seen["typed"] == "x" * 20
    assert seen["running"]
    for place in ("inEditor", "inChat"):  # against the same keys before: machines differ
        assert median(seen[place]) < median(seen["before"][place]) + 150, seen
        assert max(seen[place]) < 1000, seen
