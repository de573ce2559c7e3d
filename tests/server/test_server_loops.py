"""Loops and budgets as clients of both versions see them, with the program ended in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import MODELS, OPENAI, READ, OpenSession, messages
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import Editor
from tests.support.model_server import ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2

FORMS: Any = frozenset({"elicitation"})


def choosing(choice: str) -> Any:
    return lambda request: {
        "action": "accept",
        "content": {next(iter(request["requestedSchema"]["properties"])): choice},
    }


@pytest.mark.covers("P12")
async def test_version_1_asks_by_a_form_and_the_turn_ends_with_a_limits_stop_reason(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer(READ)
    editor = Editor(offers=FORMS)
    editor.answer = choosing("Continue")
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "look"))["stopReason"] == "max_turn_requests"
    (form,) = editor.questions
    assert "5 times" in form["message"]
    assert len(model_server.requests) == 8
    assert "8 times" in running.text(session)


async def test_version_1_without_forms_is_asked_in_text(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer(READ)
    running, session = await opened(editor=Editor())
    assert (await running.prompt(session, "look"))["stopReason"] == "end_turn"
    assert len(model_server.requests) == 5
    assert "Continue?" in running.text(session)


@pytest.mark.covers("P12")
async def test_version_2_asks_by_a_form_while_the_session_waits_for_the_user(
    agent: StartAgent, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    config_file(home, MODELS)
    model_server.otherwise = answer(READ)
    editor = EditorV2(offers=FORMS)
    editor.answer = choosing("Stop")
    running = await agent(*OPENAI, editor=editor, environ=model_server.environ())
    client = V2Client(running)
    await client.initialize()
    session = await client.new_session(workspace_repo)
    assert (await client.prompt(session, "look"))["stopReason"] == "end_turn"
    states = [update["state"] for update in running.updates(session, "state_update")]
    assert states == ["running", "requires_action", "running", "idle"]
    assert len(model_server.requests) == 5


async def test_a_loop_is_known_and_no_byte_is_changed_when_the_session_is_loaded_again(
    agent: StartAgent, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    config_file(home, MODELS)
    model_server.otherwise = answer(READ)
    running = await _running(agent, model_server)
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "look")  # asked in text, behind the fifth
    before = messages(model_server)
    await running.stop()
    restarted = await _running(agent, model_server)
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await restarted.request("session/load", load)
    await restarted.prompt(session, "look once more")
    after = messages(model_server, 5)
    assert after[: len(before)] == before
    # The words let the count begin again from two: told with the first round, asked with the third.
    assert len(model_server.requests) == 5 + 3


async def test_a_prompt_beyond_a_budget_is_refused_and_the_budget_is_named(
    agent: StartAgent, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    config_file(home, f"[budget]\nday_tokens = 1\n{MODELS}")
    running = await _running(agent, model_server)
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "look"))["stopReason"] == "refusal"
    assert "budget of today" in running.text(session)
    assert not model_server.requests


async def _running(agent: StartAgent, server: ModelServer) -> AgentProcess:
    running = await agent(*OPENAI, editor=Editor(), environ=server.environ())
    await running.initialize()
    return running
