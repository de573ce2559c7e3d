"""The agent at the end of a chain of proxies, and that it is none itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.server.either_version import EitherClient
from tests.server.proxy_chain import PROXY_CHAIN
from tests.server.server_session import DEMO, EDIT, OPENAI, READ
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2


def editor_for(version: int) -> Editor:
    return Editor(offers=EVERYTHING) if version == 1 else EditorV2(offers=EVERYTHING)


@pytest.mark.covers("T5", "T6", "I3")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_runs_whole_behind_a_proxy(
    home: Path, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.add(answer("Let me see. ", READ), answer(EDIT), answer("Done."))
    model_server.add(answer("Half", Stall()))
    record_file = home / "seen.txt"
    async with await AgentProcess.start(
        *OPENAI,
        home=home,
        environ=model_server.environ() | {"SEEN": str(record_file)},
        command=PROXY_CHAIN,
        editor=editor_for(version),
    ) as running:
        if version == 1:
            assert (await running.initialize())["agentInfo"]["name"] == "acp-agent"
            session = await running.new_session(workspace_repo)
            assert (await running.prompt(session, "Change it"))["stopReason"] == "end_turn"
            request_id = running.post_prompt(session, "Go on for ever")
            await running.expect_update(
                session, "agent_message_chunk", lambda update: "Half" in str(update)
            )
            running.cancel(session)
            assert (await running.result(request_id))["stopReason"] == "cancelled"
        else:
            client = V2Client(running)
            await client.initialize()
            session = await client.new_session(workspace_repo)
            assert (await client.prompt(session, "Change it"))["stopReason"] == "end_turn"
        assert len(running.editor.asked) == 1
        assert "Done." in str(running.updates(session))
        assert "Good day" in (workspace_repo / "greeting.py").read_text() + str(
            running.editor.writes
        )
    hops = Counter(record_file.read_text().splitlines())
    assert hops["client initialize"] == hops["conductor proxy/initialize"] == 1
    assert hops["agent session/update"] == hops["proxy session/update"] > 5
    assert hops["agent session/request_permission"] == 1


@pytest.mark.covers("T4", "I3")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_agent_is_no_proxy_and_says_so(
    agent: StartAgent, workspace_repo: Path, version: int
) -> None:
    client = await EitherClient.start(agent, version, *DEMO)
    inner = {"method": "session/new", "params": {"cwd": str(workspace_repo), "mcpServers": []}}
    for method, params in (
        ("proxy/initialize", {"protocolVersion": version}),
        ("proxy/successor", inner),
        ("proxy/successor", {}),
        ("proxy/other", {}),
    ):
        error = await client.refused(method, **params)
        assert error["code"] == -32601, method
        assert method in error["message"]
    assert "proxy" not in str(client.advertised)
    client.wire.notify("proxy/successor", inner)  # a notification is ignored
    session = await client.new(workspace_repo)
    assert await client.say(session, "hello") == "end_turn"
