"""A system prompt that the client gives a session, over the wire of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.either_version import EitherClient
from tests.support.agent_process import StartAgent
from tests.support.model_server import ModelServer, answer

pytestmark = pytest.mark.parametrize("version", [1, 2])


def system_prompt_params(mode: str, *texts: str) -> dict[str, object]:
    """A system prompt as clients send it."""
    return {"mode": mode, "content": [{"type": "text", "text": text} for text in texts]}


async def test_a_system_prompt_reaches_the_model_from_every_way_to_open_a_session(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    assert client.session_capabilities["systemPrompt"] == {"mode": {"override": {}}}

    async def system_prompt_text(session: str) -> str:
        await client.say(session, "Hello")
        return str(model_server.requests[-1].json["messages"][0]["content"])

    session = await client.new(
        workspace_repo, systemPrompt=system_prompt_params("append", "Rhyme.", "Be brief.")
    )
    first = await system_prompt_text(session)
    assert first.startswith("You are acp-agent")
    assert first.endswith("Rhyme.\n\nBe brief.")
    await client.close(session)
    await client.reopen(session, workspace_repo, systemPrompt=None)
    assert await system_prompt_text(session) == first
    fork = await client.fork(
        session, workspace_repo, systemPrompt=system_prompt_params("override", "A poet.")
    )
    assert (await system_prompt_text(fork)).startswith("A poet.\n")
    assert await system_prompt_text(session) == first
    await client.close(session)
    await client.reopen(
        session, workspace_repo, systemPrompt=system_prompt_params("override", "A painter.")
    )
    assert (await system_prompt_text(session)).startswith("A painter.\n")
    if version == 1:
        await client.close(session)
        params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
        await client.request(
            "session/load", **params, systemPrompt=system_prompt_params("append", "Loaded.")
        )
        assert (await system_prompt_text(session)).endswith("Loaded.")


@pytest.mark.covers("T4")
async def test_a_system_prompt_that_cannot_be_applied_opens_nothing(
    agent: StartAgent, model_server: ModelServer, home: Path, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    existing, cwd = await client.new(workspace_repo), str(workspace_repo)
    await client.say(existing, "Hello")
    await client.close(existing)
    assert list((home / "acp-agent" / "locks").iterdir()) == []
    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    link = {"type": "resource_link", "name": "x", "uri": "file:///x"}
    prompts: tuple[object, ...] = (
        system_prompt_params("prepend", "x"),
        system_prompt_params("_own", "x"),
        system_prompt_params("append"),
        system_prompt_params("override", "  "),
        {"mode": "append", "content": [image]},
        {"mode": "append", "content": [{"type": "text", "text": "x"}, link]},
        {"mode": "append", "content": [{"type": "_poem", "text": "x"}]},
        {"mode": "append"},
        {"content": []},
        "Rhyme.",
    )
    for prompt in prompts:
        for method, more in (
            ("session/new", {}),
            ("session/resume", {"sessionId": existing}),
            ("session/fork", {"sessionId": existing}),
            *([("session/load", {"sessionId": existing})] if version == 1 else []),
        ):
            error = await client.refused(
                method, cwd=cwd, mcpServers=[], systemPrompt=prompt, **more
            )
            assert error["code"] == -32602, (method, prompt, error)
            assert "systemPrompt" in error["message"] or "content" in error["message"]
    assert set(await client.listed(archived="include")) == {existing}
    assert (await client.request("session/status", sessionId=existing))["status"] == "saved"
    assert list((home / "acp-agent" / "locks").iterdir()) == []
