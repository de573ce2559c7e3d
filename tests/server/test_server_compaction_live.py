"""A compaction as it happens, on the wire of both versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_agent.events import Usage
from tests.server.server_session import OpenSession
from tests.server.v2_session import OpenV2
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.model_server import ModelServer, Reply, Request, Stall, Status, answer

NARROW = """
[models."openai/gpt-5"]
context_window = 16_000
max_output_tokens = 2_000
price = { input = 1.0, output = 1.0 }
"""
LONG = "Nothing of note happened in this step of the work. " * 60
SUMMARY = ("You asked for ", "x; it is done.")


def is_summing_up(request: Request) -> bool:
    """Whether a request is one for a summary."""
    return "tools" not in request.json


def talkative(request: Request) -> Reply:
    """A model that counts four bytes as a token, says much, and sums up briefly."""
    usage = Usage(input=len(request.body) // 4, output=400)
    if is_summing_up(request):
        return answer(*SUMMARY, usage=usage)
    return answer(LONG, usage=usage)


async def compacted(running: AgentProcess, session: str, server: ModelServer) -> None:
    """Talk until a summary was asked for and used."""
    for number in range(60):
        await running.prompt(session, f"Say more ({number}).")
        if any(map(is_summing_up, server.requests)):
            return
    raise AssertionError("nothing was summed up")


@pytest.mark.covers("P14", "P10")
async def test_version_1_shows_the_summary_as_it_is_written_and_the_usage_falls(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, NARROW)
    model_server.otherwise = talkative
    running = await agent("--model", "openai/gpt-5", environ=model_server.environ())
    await running.initialize(clientCapabilities={"session": {"compaction": {}}})
    session = await running.new_session(workspace_repo)
    await compacted(running, session, model_server)
    kinds = {"compaction_update", "compaction_summary_chunk", "usage_update"}
    updates = [update for update in running.updates(session) if update["sessionUpdate"] in kinds]
    at = next(
        n for n, update in enumerate(updates) if update["sessionUpdate"] == "compaction_update"
    )
    told = [(update["sessionUpdate"], update.get("status")) for update in updates[at:]]
    chunk = ("compaction_summary_chunk", None)
    assert told[0] == ("compaction_update", "in_progress")
    assert told[1] == chunk
    assert ("compaction_update", "completed") in told
    streamed = "".join(
        update["content"]["text"] for update in updates if update["sessionUpdate"] == chunk[0]
    )
    assert streamed == "".join(SUMMARY)
    used = [update["used"] for update in updates if update["sessionUpdate"] == "usage_update"]
    assert used[-1] < max(used) * 0.7
    assert len({update["compactionId"] for update in updates if "compactionId" in update}) == 1
    text = running.text(session)
    assert text.count(LONG.strip()) >= 2  # the user still sees all of it
    before = len(running.updates(session))
    await running.request(
        "session/load", {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    )
    replayed = running.updates(session)[before:]
    words = [update for update in replayed if update["sessionUpdate"] == "user_message_chunk"]
    assert words[0]["content"]["text"] == "Say more (0)."


@pytest.mark.covers("P14", "I6")
async def test_a_client_of_version_1_without_compactions_gets_a_line_and_the_usage(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, NARROW)
    model_server.otherwise = talkative
    running, session = await opened()
    await compacted(running, session, model_server)
    kinds = {update["sessionUpdate"] for update in running.updates(session)}
    assert not any(kind.startswith("compaction") for kind in kinds)
    thoughts = [
        update["content"]["text"]
        for update in running.updates(session)
        if update["sessionUpdate"] == "agent_thought_chunk"
    ]
    updates = [text.strip("\n_") for text in thoughts if "for the model" in text]
    assert updates == [
        "Summarising earlier parts of the conversation for the model …",
        "Earlier parts of the conversation were summarised for the model.",
    ]


@pytest.mark.covers("P14")
async def test_version_2_shows_the_summary_and_its_end(
    opened_v2: OpenV2, home: Path, model_server: ModelServer
) -> None:
    config_file(home, NARROW)
    model_server.otherwise = talkative
    client, session = await opened_v2()
    for number in range(60):
        await client.prompt(session, f"Say more ({number}).")
        if any(map(is_summing_up, model_server.requests)):
            break
    updates = client.wire.updates(session, "compaction_update")
    assert [update["status"] for update in updates] == ["in_progress", "completed"]
    assert updates[-1]["summary"][0]["text"].startswith("".join(SUMMARY))
    chunks = client.wire.updates(session, "compaction_summary_chunk")
    assert "".join(update["content"]["text"] for update in chunks) == "".join(SUMMARY)
    used = [update["used"] for update in client.wire.updates(session, "usage_update")]
    assert used[-1] < max(used) * 0.7


@pytest.mark.covers("P14", "P5")
async def test_compact_shows_its_progress_and_can_be_cancelled(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, NARROW)
    model_server.otherwise = talkative
    running = await agent("--model", "openai/gpt-5", environ=model_server.environ())
    await running.initialize(clientCapabilities={"session": {"compaction": {}}})
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "Say more.")
    await running.prompt(session, "And more.")
    stall = Stall()
    model_server.add(answer("You asked", stall))
    prompt = running.post_prompt(session, "/compact the file names")
    await running.expect_update(session, "compaction_summary_chunk")
    running.notify("session/cancel", {"sessionId": session})
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    states: list[Any] = [
        update["status"] for update in running.updates(session, "compaction_update")
    ]
    assert states == ["in_progress", "cancelled"]
    assert (await running.prompt(session, "/compact"))["stopReason"] == "end_turn"
    assert running.updates(session, "compaction_update")[-1]["status"] == "completed"
    stall.release()


@pytest.mark.covers("P8")
async def test_a_history_that_the_provider_finds_too_long_is_shortened_and_sent_once_more(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, "")
    model_server.otherwise = answer(LONG)
    running, session = await opened()
    for number in range(4):
        await running.prompt(session, f"Say more ({number}).")
    too_long = Status(code=400, message="prompt is too long: 205000 tokens > 200000 maximum")
    model_server.add(too_long, answer("Here I am."))
    result = await running.prompt(session, "And now?")
    assert result["stopReason"] == "end_turn"
    assert running.text(session).endswith("Here I am.")
    first, second = model_server.requests[-2:]
    assert len(second.body) < len(first.body)
    assert "And now?" in second.body.decode()
    model_server.add(too_long, too_long)
    failed = await running.answer(running.post_prompt(session, "Once more?"))
    assert "too long" in failed["error"]["message"]
