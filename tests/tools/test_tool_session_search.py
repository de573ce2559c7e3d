"""Finding what was said earlier in a session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from acp_agent.content import TextBlock, text_part
from acp_agent.errors import ToolError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ModelAnswered,
    ToolCalled,
    ToolEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.tools.base import RESULT_LIMIT, Outcome
from acp_agent.tools.session_search import DatedEvent, SessionSearchParams, SessionSearchTool
from tests.support import child_work
from tests.support.tool_calls import RecordedProgress, ToolUser

NOON = int(time.mktime((2026, 11, 22, 12, 0, 0, 0, 0, -1)) * 1_000)  # at the user's place


def turn(number: int, words: str, answer: str, *calls: tuple[str, str, str]) -> list[AnyEvent]:
    message = MessageId(f"m{number}")
    events: list[AnyEvent] = [
        TurnStarted(turn=TurnId(f"t{number}")),
        UserMessage(message=MessageId(f"u{number}"), content=(TextBlock(text=words),)),
    ]
    for name, arguments, result in calls:
        call = CallId(f"call_{number}_{name}")
        events += [
            ToolCalled(call=call, message=message, name=name, arguments=arguments, title=name),
            ToolEnded(call=call, result=result),
        ]
    half = len(answer) // 2
    return [
        *events,
        AgentText(message=message, text=answer[:half]),
        AgentText(message=message, text=answer[half:]),
        ModelAnswered(message=message, model="m"),
    ]


SESSION = [
    *turn(1, "Our port is 4711.", "Noted, I keep the port."),
    *turn(
        2,
        "把重试次数改成五次",
        "Done.",
        ("read", '{"path": "net.py"}', "x" * 30_000 + "needle" + "y" * 30_000),
    ),
    *turn(3, "And now the port again?", "It is the port of the service.", ("grep", "{}", "port")),
]


async def search_outcome(
    tmp_path: Path, events: Sequence[AnyEvent] = SESSION, **params: object
) -> Outcome:
    async def journal() -> Sequence[DatedEvent]:
        return [(NOON, event) for event in events]

    tool = SessionSearchTool(ToolUser(tmp_path).workspace, journal)
    prepared = await tool.prepare(SessionSearchParams.model_validate(params))
    outcome: Outcome = await prepared.run(RecordedProgress())
    assert len(outcome.text.encode()) <= RESULT_LIMIT
    return outcome


async def find(tmp_path: Path, events: Sequence[AnyEvent] = SESSION, **params: object) -> str:
    return (await search_outcome(tmp_path, events, **params)).text


async def test_a_passage_has_its_turn_time_and_speaker(tmp_path: Path) -> None:
    text = await find(tmp_path, words="4711")
    assert text == "[turn 1, 2026-11-22 12:00, user]\nOur port is 4711."


async def test_the_user_sees_the_found_passages(tmp_path: Path) -> None:
    outcome = await search_outcome(tmp_path, words="4711")
    assert outcome.content == (text_part(f"```\n{outcome.text}\n```"),)


async def test_passages_with_more_and_rarer_words_come_first(tmp_path: Path) -> None:
    text = await find(tmp_path, words="PORT keep")
    assert text.startswith("[turn 1, 2026-11-22 12:00, agent]\nNoted, I keep the port.")
    assert text.count("[turn ") == 5


async def test_words_are_found_in_scripts_without_spaces_and_in_the_middle_of_names(
    tmp_path: Path,
) -> None:
    assert "[turn 2, " in await find(tmp_path, words="重试")
    assert "net.py" in await find(tmp_path, words="et.p")


async def test_a_quoted_phrase_matches_only_as_a_phrase(tmp_path: Path) -> None:
    assert "[turn 3, " in await find(tmp_path, words='"port of the"')
    assert "Nothing" in await find(tmp_path, words='"of port"')


async def test_a_long_passage_is_cut_around_the_words(tmp_path: Path) -> None:
    text = await find(tmp_path, words="needle")
    assert "xxxneedleyyy" in text
    assert len(text) < 1_000
    assert "call_2_read" in text


async def test_a_long_result_is_read_in_pieces(tmp_path: Path) -> None:
    read, start = "", 0
    for _ in range(10):
        part = await find(tmp_path, call="call_2_read", start=start)
        body, _, more = part.partition("\n[")
        read += body
        if not more:
            break
        start = int(more.split()[-1].rstrip("."))
    assert read == "x" * 30_000 + "needle" + "y" * 30_000


async def test_a_turn_is_read_from_its_beginning_or_searched_alone(tmp_path: Path) -> None:
    text = await find(tmp_path, turn=1)
    assert text.index("Our port is 4711.") < text.index("Noted, I keep the port.")
    assert "[turn 1, " not in await find(tmp_path, turn=3, words="port")


async def test_its_own_earlier_calls_are_not_found(tmp_path: Path) -> None:
    asked = ("session_search", '{"words": "zebra"}', "nothing of a zebra")
    events = [*SESSION, *turn(4, "Look.", "I looked.", asked)]
    assert "Nothing" in await find(tmp_path, events, words="zebra")


async def test_messages_of_the_agent_itself_are_not_searched(tmp_path: Path) -> None:
    message = MessageId("s")
    notice: list[AnyEvent] = [
        AgentText(message=message, text="The commands are zebra."),
        ModelAnswered(message=message, model="", discarded=True),
    ]
    assert "Nothing" in await find(tmp_path, [*SESSION, *notice], words="zebra")


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "give words"),
        ({"words": "  "}, "give words"),
        ({"call": "call_9"}, "no call 'call_9'"),
        ({"turn": 9}, "the last one is 3"),
    ],
)
async def test_a_search_without_results_says_so(
    tmp_path: Path, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        await find(tmp_path, **params)


async def test_an_answer_stays_short_however_much_is_found(tmp_path: Path) -> None:
    events = [event for n in range(200) for event in turn(n, "word " * 2_000, "word " * 2_000)]
    assert len(await find(tmp_path, events, words="word")) < 13_000


def test_the_tools_share_of_every_request_is_small(tmp_path: Path) -> None:
    async def nothing() -> Sequence[DatedEvent]:
        return []

    tool = SessionSearchTool(ToolUser(tmp_path).workspace, nothing)
    assert len(tool.description()) < 900


async def test_the_work_of_a_subagent_is_found_and_attributed_to_it(tmp_path: Path) -> None:
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *child_work.did(AgentText(message=child_work.SAID, text="The par")),
        AgentText(message=MessageId("beside"), text="I wait"),
        *child_work.answered("ser is in lex.py."),
        *child_work.did(
            child_work.called(child_work.INNER, "read"),
            ToolEnded(call=child_work.INNER, result="def lex(): ..."),
        ),
        *child_work.done(),
    ]
    text = await find(tmp_path, events, words="parser")
    assert "agent, a subagent in call_task]\nThe parser is in lex.py." in text
    text = await find(tmp_path, events, words="lex():")
    assert "result, call_inner, a subagent in call_task]\ndef lex(): ..." in text
    assert await find(tmp_path, events, call="call_inner") == "def lex(): ..."
    full_text = await find(tmp_path, events, turn=1)
    assert full_text.count("Find it") == 0  # what it was asked is in the call
