"""What `/loop` can repeat, and what it says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.events import AgentText, PromptRepeated
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk

SKILL = """---
name: review
description: Reviews a change.
{more}
---
Look at the diff first. {secret}
"""
FINISH = Call("finish_loop", {})


def write_skill(folder: Path, more: str = "", secret: str = "") -> None:
    skill = folder / ".agents" / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL.format(more=more, secret=secret))


def said_by_the_agent(desk: Desk) -> str:
    return "".join(event.text for event in desk.editor.of(AgentText))


async def test_a_skill_is_followed_in_each_round(desk: Desk, model_server: ModelServer) -> None:
    write_skill(desk.folder)
    model_server.add(answer("One."), answer("Two."), answer(FINISH), answer("All."))
    await desk.say("/loop 5 /skill:review the parser")
    assert len(model_server.requests) == 4
    rounds = [words for words in desk.words(3) if "Look at the diff first." in words]
    assert len(rounds) == 3
    assert all("Use it for this: the parser" in words for words in rounds)
    assert rounds[0].startswith("/loop 5 /skill:review the parser")
    assert rounds[1].startswith("[Round 2 of 5.")


async def test_a_skill_that_is_repeated_has_its_own_model_and_tools_and_can_come_to_an_end(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "model: openai/blind\ntools: read, gr*")
    model_server.add(answer("One."), answer(FINISH), answer("All."))
    await desk.say("/loop 5 /skill:review")
    for request in model_server.requests:
        assert request.json["model"] == "blind"
        tools = {tool["function"]["name"] for tool in request.json["tools"]}
        assert tools == {"read", "grep", "finish_loop"}
    assert len(model_server.requests) == 3


async def test_a_skill_that_is_run_apart_is_run_in_each_round(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork")
    model_server.add(
        answer("Found one."),
        answer("Mended."),
        answer("Found none."),
        answer(FINISH),
        answer("So."),
    )
    await desk.say("/loop 5 /skill:review the parser")
    assert len(model_server.requests) == 5
    first, second = model_server.requests[0].json, model_server.requests[2].json
    for request in (first, second):  # the agent's, which knows nothing of the loop
        assert "Look at the diff first." in str(request["messages"])
        assert "Round" not in str(request["messages"])
    found_one, found_none, _ = desk.results()
    assert ("Found one." in found_one, "Found none." in found_none) == (True, True)
    assert "Call finish_loop as soon as" in desk.words()[0]


async def test_no_secret_of_a_skill_is_saved_with_a_round(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, secret="sk-ant-api03-" + "a1B2" * 10)
    model_server.otherwise = answer("Done.")
    await desk.say("/loop 2 /skill:review")
    (again,) = [event for event in await desk.journal() if isinstance(event, PromptRepeated)]
    assert "Look at the diff first." in again.text
    assert "sk-ant" not in again.text


@pytest.mark.parametrize(
    "command", ["status", "compact", "rewind 1", "model openai/blind", "loop 2 go", "budget turn 1"]
)
async def test_a_command_of_the_agents_own_is_not_repeated_and_not_done(
    desk: Desk, model_server: ModelServer, command: str
) -> None:
    assert await desk.say(f"/loop 3 /{command}") == "end_turn"
    assert f"`/{command.split(maxsplit=1)[0]}` cannot be repeated" in said_by_the_agent(desk)
    assert model_server.requests == []
    assert desk.session.core.settings.model.ref == "openai/gpt-5"


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("prompt", ["/skill:nothing", "/loop 3 /skill:nothing"])
async def test_a_missing_skill_is_reported_and_not_sent(
    desk: Desk, model_server: ModelServer, prompt: str, others: bool
) -> None:
    if others:
        write_skill(desk.folder)
    await desk.say(prompt)
    assert "Unknown skill 'nothing'" in said_by_the_agent(desk)
    assert model_server.requests == []


async def test_a_loop_of_one_round_is_in_the_singular(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Done."))
    await desk.say("/loop 1 go")
    assert "The loop ended after one round." in said_by_the_agent(desk)


async def test_init_and_words_that_only_look_like_a_command_are_repeated(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Done.")
    await desk.say("/loop 2\n/usr/bin/env is missing, mend that")
    assert len(model_server.requests) == 2
    assert "/usr/bin/env is missing, mend that" in desk.words()[-1]
    await desk.say("/loop 2 /init")
    assert all("AGENTS.md" in words for words in desk.words()[-2:])
