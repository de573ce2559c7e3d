"""Searching the web with the real agent, a scripted model and a search service of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.either_version import EitherClient
from tests.server.server_session import OPENAI, messages
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, answer
from tests.support.web_site import Server, response

RESULT = {"title": "The docs", "url": "https://example.com/docs", "content": "All about it."}


@pytest.mark.parametrize("version", [1, 2])
async def test_a_search_is_shown_with_its_sources(
    agent: StartAgent, workspace_repo: Path, model_server: ModelServer, version: int
) -> None:
    async with Server() as site:
        site.pages["/search?q=the+docs&format=json"] = response(
            json.dumps({"results": [RESULT]}).encode(), "application/json"
        )
        model_server.add(answer(Call("WebSearch", {"query": "the docs"})), answer("Done."))
        environ = {"SEARXNG_URL": f"http://127.0.0.1:{site.port}", "ACP_AGENT_MODE": "full"}
        client = await EitherClient.start(
            agent, version, *OPENAI, environ=dict(model_server.environ()) | environ
        )
        session = await client.new(workspace_repo)
        await client.say(session, "find the docs")
    (result,) = [
        message["content"] for message in messages(model_server) if message["role"] == "tool"
    ]
    assert result == "1. The docs\nhttps://example.com/docs\nAll about it."
    updates_text = str(client.wire.updates(session))
    assert "Search the web for the docs" in updates_text
    assert "The docs: <https://example.com/docs>" in updates_text
