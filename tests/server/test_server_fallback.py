"""A turn over each of the newer APIs, and one whose model cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.server_session import READ, OpenSession
from tests.support.agent_process import config_file
from tests.support.model_server import ModelServer, Status, Thought, answer

FALLBACK = """
fallback_models = ["openai/no-key-needed", "anthropic/claude-sonnet-4-5"]
[limits]
max_retries = 0
"""


async def test_a_turn_continues_with_another_model_and_says_so(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, FALLBACK)
    model_server.add(
        Status(code=503, message="busy"), Status(code=529), answer(READ), answer("Done.")
    )
    environ = {"ANTHROPIC_BASE_URL": model_server.url, "ANTHROPIC_API_KEY": "sk-test"}
    running, session = await opened(environ=environ)
    assert (await running.prompt(session, "go"))["stopReason"] == "end_turn"
    assert running.text(session) == "Done."
    apis = [request.api for request in model_server.requests]
    assert apis == ["openai", "openai", "anthropic", "openai"]  # the next request asks it again
    updates = [
        update["content"]["text"] for update in running.updates(session, "agent_thought_chunk")
    ]
    assert any("anthropic/claude-sonnet-4-5 answers instead of openai/" in text for text in updates)
    assert any("503" in text for text in updates)


@pytest.mark.parametrize("api", ["openai_responses", "gemini"])
async def test_a_turn_with_a_tool_call_over_an_api(
    opened: OpenSession, home: Path, model_server: ModelServer, api: str
) -> None:
    base = f"{model_server.url}/v1"
    config_file(home, f'[providers.mine]\napi = "{api}"\nbase_url = "{base}"\n')
    model_server.add(answer(Thought("Hm", "sealed"), READ), answer("Done."))
    running, session = await opened("--model", "mine/some-model")
    await running.prompt(session, "go")
    assert running.text(session) == "Done."
    assert running.updates(session, "tool_call_update")[-1]["status"] == "completed"
    assert [request.api for request in model_server.requests] == [api, api]
    assert "sealed" in model_server.requests[1].body.decode()
