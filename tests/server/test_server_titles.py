"""Titles that come after the turn, on the wire of both versions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acp_agent.events import Usage
from tests.server.either_version import EitherClient
from tests.support.agent_process import StartAgent, config_file
from tests.support.model_server import ModelServer, Reply, Request, Stall, answer

CONFIG = 'small_model = "openai/tiny"\n'


def namer(request: Request) -> Reply:
    """Answers, and names the conversation when asked aside."""
    usage = Usage(input=100, output=10)
    is_side_request = "tools" not in request.json
    return answer("Mend the retry limit" if is_side_request else "I mended it.", usage=usage)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_better_title_follows_the_first_turn(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    config_file(home, CONFIG)
    model_server.otherwise = namer
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    await client.say(session, "hi, it retries for ever")
    await client.wire.expect_update(
        session,
        "session_info_update",
        lambda update: update.get("title") == "Mend the retry limit",
    )
    assert model_server.requests[-1].json["model"] == "tiny"


async def test_a_title_that_does_not_come_holds_nothing_up(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, CONFIG)
    stall = Stall()
    model_server.add(answer("I mended it."), answer(stall, "Too late"), answer("And that."))
    running = await agent("--model", "openai/gpt-5", environ=model_server.environ())
    await running.initialize()
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "Mend it."))["stopReason"] == "end_turn"
    await model_server.arrived(2)
    assert (await running.prompt(session, "And that?"))["stopReason"] == "end_turn"
    await running.stop()  # within the time that an editor gives
    await asyncio.wait_for(model_server.requests[1].closed_early.wait(), 60)
