"""Answers that are cut off, empty, or have their call in the text: the turn goes on."""

from __future__ import annotations

import json

import pytest

from acp_agent.agent.incomplete_answers import MAX_CONTINUATIONS
from acp_agent.events import AgentText, ModelAsked, ToolCalled, ToolEnded
from tests.support.model_server import (
    Call,
    CallPiece,
    CallStart,
    ModelServer,
    Reply,
    Thought,
    answer,
)
from tests.support.open_session import Desk

WRITTEN = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'


def said(desk: Desk) -> str:
    return "".join(event.text for event in desk.editor.of(AgentText))


def last_words(model_server: ModelServer) -> str:
    return json.dumps(model_server.requests[-1].json["messages"][-1])


async def test_a_text_that_was_cut_off_is_continued_as_the_same_message(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("One, t", stop="length"), answer("wo, ", stop="length"), answer("3."))
    assert await desk.say("Count") == "end_turn"
    assert said(desk) == "One, two, 3."
    first, second, third = desk.editor.of(ModelAsked)
    assert first.continues is None
    assert {second.continues, third.continues} == {first.message}
    before, after = (request.json["messages"] for request in model_server.requests[1:])
    assert after[: len(before)] == before
    assert "exactly where it stopped" in last_words(model_server)


async def test_a_turn_gives_up_an_answer_that_never_ends(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("more ", stop="length")
    assert await desk.say("Count") == "max_tokens"
    assert len(model_server.requests) == MAX_CONTINUATIONS + 1


@pytest.mark.parametrize("arguments", ["", '{"path": "b", "content": "abc'])
async def test_a_call_that_was_cut_off_does_not_run_and_the_model_reads_why(
    desk: Desk, model_server: ModelServer, arguments: str
) -> None:
    cut = (CallStart(index=0, name="write"), CallPiece(index=0, text=arguments))
    model_server.add(answer("Writing.", *cut, stop="length"), answer("In parts, then."))
    assert await desk.say("Write b") == "end_turn"
    assert not desk.editor.of(ToolCalled)
    told = last_words(model_server)
    assert f"write was cut off after {len(arguments)} characters" in told
    assert "smaller calls" in told


async def test_whole_calls_before_the_cut_are_run(desk: Desk, model_server: ModelServer) -> None:
    (desk.folder / "a").write_text("x\n")
    cut = (CallStart(index=1, name="write"), CallPiece(index=1, text='{"pa'))
    model_server.add(answer(Call("read", {"path": "a"}), *cut, stop="length"), answer("Good."))
    assert await desk.say("Go") == "end_turn"
    (ended,) = desk.editor.of(ToolEnded)
    assert not ended.failed
    assert "write was cut off" in last_words(model_server)


@pytest.mark.parametrize("nothing", [answer(), answer(" \n"), answer(Thought("Hm."))])
async def test_an_empty_answer_gets_one_nudge(
    desk: Desk, model_server: ModelServer, nothing: Reply
) -> None:
    model_server.add(nothing, answer("Hello."), nothing, nothing)
    assert await desk.say("Hi") == "end_turn"
    assert said(desk).strip() == "Hello."
    assert "neither text nor a tool call" in last_words(model_server)
    assert await desk.say("Again") == "end_turn"
    assert len(model_server.requests) == 4
    assert "returned an empty answer twice" in said(desk)


async def test_a_call_written_as_text_is_run(desk: Desk, model_server: ModelServer) -> None:
    (desk.folder / "a").write_text("x\n")
    model_server.add(answer("I'll look.\n", WRITTEN), answer("Seen."))
    assert await desk.say("Look") == "end_turn"
    assert said(desk) == "I'll look.\nSeen."
    (ended,) = desk.editor.of(ToolEnded)
    assert not ended.failed


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("It reads the header and retur", "It reads the header and returns it.", "returns it."),
        (
            "It reads it and returns the",
            "and returns the value.",
            "It reads it and returns the value.",
        ),
        ("one two ", "one two three", "one two one two three"),  # too short to be certain
        ("0, 0, 0, 0,\n0, 0, 0, 0,\n", "0, 0, 0, 0,\n1", "0,\n0, 0, 0, 0,\n0, 0, 0, 0,\n1"),
        ("It reads the header an", "d returns it.", "It reads the header and returns it."),
        ("It reads the header ", "It reads the header ", "It reads the header "),
    ],
)
async def test_a_continued_answer_does_not_repeat_its_end(
    desk: Desk, model_server: ModelServer, first: str, second: str, whole: str
) -> None:
    model_server.add(answer(first, stop="length"), answer(*second))
    assert await desk.say("Go") == "end_turn"
    assert said(desk).endswith(whole)
    assert said(desk).count("reads") <= 1
