"""What `/name rest` does, and what it leaves to the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.server_session import OpenSession, messages
from tests.support.model_server import ModelServer, answer


@pytest.mark.covers("P11")
async def test_the_advertised_commands_are_those_that_help_lists_and_need_no_model(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    assert (await running.prompt(session, "/help"))["stopReason"] == "end_turn"
    offered = running.updates(session, "available_commands_update")[-1]["availableCommands"]
    for command in offered:
        assert f"/{command['name']}" in running.text(session)
        assert command["description"] in running.text(session)
    assert model_server.requests == []


@pytest.mark.covers("P11")
async def test_a_command_is_found_whichever_block_carries_it(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    context = {"type": "resource", "resource": {"uri": "file:///a", "text": "open file"}}
    await running.prompt(session, context, "  /status  ")
    assert session in running.text(session)
    assert model_server.requests == []


@pytest.mark.covers("P11", "S3")
async def test_a_command_that_switches_the_mode_tells_the_editor(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    await running.prompt(session, "/mode plan")
    assert running.updates(session, "current_mode_update")[-1]["currentModeId"] == "plan"
    assert "`plan` (current)" in running.text(session)
    await running.prompt(session, "/mode yolo")
    assert "yolo" in running.text(session)
    assert len(running.updates(session, "current_mode_update")) == 1
    assert model_server.requests == []


@pytest.mark.covers("P11")
async def test_an_unknown_command_is_sent_to_the_model_as_text(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("I know none.")
    running, session = await opened()
    for text in ("/frobnicate now", "/", "/usr/bin/env is a path", "// a comment"):
        await running.prompt(session, text)
        assert text in json.dumps(messages(model_server)[-1])
    assert len(model_server.requests) == 4


@pytest.mark.covers("P11", "S4")
async def test_the_output_of_a_command_is_replayed_but_never_sent_to_the_model(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.otherwise = answer("Hello.")
    running, session = await opened()
    await running.prompt(session, "/help")
    text = running.text(session)
    await running.prompt(session, "hi")
    assert "/help" not in json.dumps(messages(model_server))
    assert len(messages(model_server)) == 1
    assert running.updates(session, "session_info_update")[-1]["title"] == "hi"
    before = len(running.updates(session))
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await running.request("session/load", load)
    replayed = running.updates(session)[before:]
    texts = [update["content"]["text"] for update in replayed if "content" in update]
    assert texts[:2] == ["/help", text]


@pytest.mark.covers("P11")
async def test_init_requests_the_file_with_the_users_additions(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Written.")
    running, session = await opened()
    await running.prompt(session, "/init mind the tabs")
    request_text = json.dumps(messages(model_server)[-1])
    assert "AGENTS.md" in request_text
    assert "mind the tabs" in request_text
