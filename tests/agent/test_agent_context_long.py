"""Conversations that are longer than the model's window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    CompactionChanged,
    ModelAnswered,
    ModelAsked,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import new_message_id, new_turn_id
from acp_agent.models.base import CallDone, ModelRequest
from tests.agent.counting_model import CountingModel, last_words, results, use
from tests.support.model_server import ModelServer
from tests.support.open_session import open_desk

WINDOW = 32_000
SMALL = f"""
[models."openai/narrow"]
context_window = {WINDOW}
max_output_tokens = 4096
"""


def turn(number: int) -> list[AnyEvent]:
    """A turn without calls, as one of real work reads."""
    message = new_message_id()
    words = f"Turn {number}: please look at module_{number}.py and tell me what it does."
    answer = f"The file module_{number}.py holds class Worker{number}. " + "It does its work. " * 20
    identity = new_turn_id()
    return [
        TurnStarted(turn=identity),
        UserMessage(message=new_message_id(), content=(TextBlock(text=words),)),
        ModelAsked(message=message, model="openai/narrow"),
        AgentText(message=message, text=answer),
        ModelAnswered(message=message, model="openai/narrow"),
        TurnEnded(turn=identity, stop_reason="end_turn"),
    ]


async def test_seven_hundred_turns_never_overrun_the_window_and_turn_1_can_still_be_found(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answering(request: ModelRequest) -> str | CallDone:
        if found := results(request):
            return found[0].text
        if "What colour" in last_words(request):
            return CallDone(
                index=0, name="session_search", arguments=json.dumps({"words": "bicycle paint"})
            )
        first = "Turn 1:" in last_words(request)
        return "I see bicycle paint here, and it is ultramarine." if first else "Done. " * 60

    async with open_desk(tmp_path, model_server, config=SMALL, flag="openai/narrow") as desk:
        model = use(desk, CountingModel(WINDOW, answering), monkeypatch)
        await desk.say("Turn 1: look into the garage.")
        for number in range(2, 701):
            if number % 8:
                await desk.session.core.emit(*turn(number))
            else:
                await desk.say(f"Turn {number}: read `module_{number}.py` again, please.")
        await desk.say("What colour is the bicycle paint?")
        journal = await desk.journal()
    assert sum(isinstance(event, TurnStarted) for event in journal) == 701
    assert max(model.counts) <= WINDOW
    ends = [e.status for e in journal if isinstance(e, CompactionChanged)]
    assert ends.count("completed") > 5
    assert set(ends) == {"in_progress", "completed"}
    asked, answered = model.bodies[-2:]
    assert b"ultramarine" not in asked  # long gone from what the model is sent
    assert b"ultramarine" in answered
    final = [event for event in journal if isinstance(event, AgentText)][-1]
    assert "it is ultramarine" in final.text
    assert "[turn 1, " in final.text
