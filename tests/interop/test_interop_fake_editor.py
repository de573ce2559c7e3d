"""A whole editor serves every method of the client.

Its JSON-RPC is that of a library that nobody here wrote.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import StartAgent
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import ModelServer, Stall, answer

DEMO = ("--model", "demo/demo")


async def opened(
    agent: StartAgent, cwd: Path, editor: Editor, *flags: str, **options: Any
) -> tuple[Any, str]:
    running = await agent(*flags, editor=editor, **options)
    await running.initialize()
    return running, await running.new_session(cwd)


def allow_terminals(home: Path) -> None:
    folder = home / "acp-agent"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text("[editor]\nterminals = true\n")


@pytest.mark.covers("P4")
async def test_the_agent_reads_and_edits_unsaved_text(
    agent: StartAgent, workspace_repo: Path
) -> None:
    editor = Editor(offers=frozenset({"read", "write"}))
    path = workspace_repo / "greeting.py"
    editor.buffers[str(path)] = "unsaved = 'Hello'\n"
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    result = await running.prompt(session, "replace Hello with Goodbye in greeting.py")
    assert result["stopReason"] == "end_turn"
    assert {request["path"] for request in editor.reads} == {str(path)}
    assert [request["content"] for request in editor.writes] == ["unsaved = 'Goodbye'\n"]
    assert path.read_text() == "unsaved = 'Goodbye'\n"
    [asked] = editor.asked
    [diff] = [part for part in asked["toolCall"]["content"] if part["type"] == "diff"]
    assert (diff["oldText"], diff["newText"]) == ("unsaved = 'Hello'\n", "unsaved = 'Goodbye'\n")


@pytest.mark.covers("P4", "I6")
async def test_an_editor_without_files_is_never_asked_for_them(
    agent: StartAgent, workspace_repo: Path
) -> None:
    editor = Editor()
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    await running.prompt(session, "replace Hello with Goodbye in greeting.py")
    assert editor.reads == editor.writes == []
    assert "Goodbye" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P6")
async def test_always_avoids_later_questions_about_the_same_command(
    agent: StartAgent, workspace_repo: Path
) -> None:
    editor = Editor(permission="allow_always")
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    for _ in range(2):
        result = await running.prompt(session, "$ touch made.txt")
        assert result["stopReason"] == "end_turn"
    assert len(editor.asked) == 1
    assert (workspace_repo / "made.txt").exists()
    assert [update["status"] for update in ended(running, session)] == ["completed"] * 2


@pytest.mark.covers("P6")
async def test_a_withdrawn_question_refuses_the_call_and_not_the_turn(
    agent: StartAgent, workspace_repo: Path
) -> None:
    editor = Editor(permission="cancelled")
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    await running.prompt(session, "$ touch made.txt")
    assert [update["status"] for update in ended(running, session)] == ["failed"]
    assert not (workspace_repo / "made.txt").exists()


@pytest.mark.covers("P12")
async def test_a_question_is_a_form_and_its_answer_reaches_the_model(
    agent: StartAgent, workspace_repo: Path
) -> None:
    editor = Editor(offers=frozenset({"elicitation"}))
    editor.answer = lambda request: {
        "action": "accept",
        "content": dict.fromkeys(request["requestedSchema"]["properties"], "green"),
    }
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    await running.prompt(session, "ask Which colour? red or green")
    [question] = editor.questions
    assert question["message"] == "Which colour?"
    assert "red" in json.dumps(question["requestedSchema"])
    assert "green" in running.text(session)


@pytest.mark.covers("P12", "I6")
async def test_without_forms_the_question_is_text_and_the_turn_ends(
    agent: StartAgent, workspace_repo: Path
) -> None:
    editor = Editor()
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    result = await running.prompt(session, "ask Which colour? red or green")
    assert result["stopReason"] == "end_turn"
    assert editor.questions == []
    assert "Which colour?" in running.text(session)
    assert "red" in running.text(session)


@pytest.mark.covers("P5")
async def test_a_command_runs_in_the_editors_terminal_where_the_user_wants_that(
    agent: StartAgent, home: Path, workspace_repo: Path
) -> None:
    allow_terminals(home)
    editor = Editor(offers=EVERYTHING)
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    await running.prompt(session, "$ echo from $((40 + 2)); exit 3")
    [command] = editor.commands
    assert command["cwd"] == str(workspace_repo)
    shown = [
        part
        for update in running.updates(session, "tool_call_update")
        for part in update.get("content") or ()
    ]
    assert {"type": "terminal", "terminalId": "terminal-1"} in shown
    await running.expect_served("terminal/release")  # nobody waits for it before the turn ends
    assert editor.terminals == {}, "the terminal was not released"
    assert "3" in running.text(session)


@pytest.mark.covers("P5", "P7")
async def test_a_cancel_kills_and_releases_the_editors_terminal(
    agent: StartAgent, home: Path, workspace_repo: Path
) -> None:
    allow_terminals(home)
    editor = Editor(offers=EVERYTHING)
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    prompted = running.post_prompt(session, "$ sleep 60; touch made.txt")
    await running.expect_update(
        session, "tool_call_update", lambda update: "terminal" in json.dumps(update)
    )
    [terminal] = editor.terminals.values()
    running.cancel(session)
    assert (await running.result(prompted))["stopReason"] == "cancelled"
    await terminal.process.wait()
    assert editor.terminals == {}


@pytest.mark.covers("P5")
async def test_terminals_that_are_only_offered_stay_unused(
    agent: StartAgent, workspace_repo: Path
) -> None:
    editor = Editor(offers=EVERYTHING)
    running, session = await opened(agent, workspace_repo, editor, *DEMO)
    await running.prompt(session, "$ echo mine")
    assert editor.commands == []
    assert "mine" in running.text(session)


@pytest.mark.covers("P2", "P7")
async def test_a_cancel_keeps_the_streamed_text_and_closes_the_connection_to_the_model(
    agent: StartAgent, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("The first ", "words ", Stall(), "never come."), answer("Again."))
    running, session = await opened(
        agent, workspace_repo, Editor(offers=EVERYTHING), environ=model_server.environ()
    )
    prompted = running.post_prompt(session, "Talk.")
    await running.expect_update(
        session, "agent_message_chunk", lambda update: "words" in update["content"]["text"]
    )
    running.cancel(session)
    assert (await running.result(prompted))["stopReason"] == "cancelled"
    await model_server.requests[0].closed_early.wait()
    await running.prompt(session, "Go on.")
    assert running.text(session) == "The first words Again."
    assert "The first words" in json.dumps(model_server.requests[1].json)


def ended(running: Any, session: str) -> list[Any]:
    return [
        update
        for update in running.updates(session, "tool_call_update")
        if update.get("status") in {"completed", "failed"}
    ]
