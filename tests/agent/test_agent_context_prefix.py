"""What is sent begins with what was sent before, but right after it was shortened."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from acp_agent.agent.context_view import OMITTED_NOTE, TURN_START_NOTE
from acp_agent.errors import ModelError
from acp_agent.events import (
    AnyEvent,
    CompactionChanged,
    ContextTrimmed,
    ModelAsked,
    NoticeShown,
    UsageReported,
)
from acp_agent.models.base import AnswerCall, CallDone, ModelRequest, ToolResult, UserSide, UserText
from tests.agent.counting_model import CountingModel, last_words, results, use
from tests.support.model_server import ModelServer
from tests.support.open_session import Desk, open_desk

CONFIG = """
[models."openai/narrow"]
context_window = 24_000
max_output_tokens = 2_000
"""
FILE = "".join(f"line {number} of a file that is read again and again\n" for number in range(70))


def reads(path: str = "file.txt") -> CallDone:
    return CallDone(index=0, name="read", arguments=json.dumps({"path": path}))


def reader_of_many() -> CountingModel:
    """A model with a window of 24,000 tokens that reads sixty times at once."""
    many = [
        CallDone(index=at, name="read", arguments=f'{{"path": "file.txt", "line": {at + 1}}}')
        for at in range(60)
    ]
    return CountingModel(24_000, lambda request: "Read." if results(request) else many)


def shortened_before(events: list[AnyEvent]) -> list[bool]:
    """Of every request of the conversation, whether the context was shortened right before it."""
    found: list[bool] = []
    shortened = False
    for event in events:
        match event:
            case ContextTrimmed() | CompactionChanged(status="completed"):
                shortened = True
            case ModelAsked():
                found.append(shortened)
                shortened = False
            case _:
                pass
    return found


def starts_like(before: bytes, after: bytes) -> bool:
    """Whether a request begins with the bytes of another, but for the brackets that close it."""
    return after.startswith(before.removesuffix(b"]}"))


async def reopen(desk: Desk) -> None:
    """Close the session and open it again, as another process would."""
    session = desk.session.id
    await desk.manager.close(session, desk.editor)
    desk._session = await desk.manager.open(session, str(desk.folder), [])
    desk._session.attach(desk.editor)


async def test_in_fifty_turns_every_request_extends_the_previous_one_unless_shortened(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(
        tmp_path, model_server, config=CONFIG.replace("24_000", "48_000"), flag="openai/narrow"
    ) as desk:
        (desk.folder / "file.txt").write_text(FILE * 2)
        model = use(
            desk,
            CountingModel(48_000, lambda request: "Read." if results(request) else reads()),
            monkeypatch,
        )
        for number in range(50):
            await desk.say(f"Read it, for the {number}th time.")
            if number % 10 == 5:
                await reopen(desk)
        journal = await desk.journal()
    shortened = shortened_before(journal)
    assert len(shortened) == len(model.bodies) == 100
    for (before, after), was_shortened in zip(pairwise(model.bodies), shortened[1:], strict=True):
        assert starts_like(before, after) is not was_shortened
    assert 2 <= sum(shortened) <= 20  # in large steps
    assert max(model.counts) <= 48_000
    assert {type(event) for event in journal} >= {ContextTrimmed, CompactionChanged}


async def test_old_results_are_cut_first_and_the_cut_says_how_to_get_the_rest(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=CONFIG, flag="openai/narrow") as desk:
        (desk.folder / "file.txt").write_text(FILE * 3)
        model = use(
            desk,
            CountingModel(24_000, lambda request: "Read." if results(request) else reads()),
            monkeypatch,
        )
        while not desk.session.core.context.is_shortened:
            await desk.say("Read it.")
        offered = ["session_search" in str(request.tools) for request in model.requests]
        assert offered == sorted(offered)
        assert (offered[0], offered[-1]) == (False, True)  # only once it is needed
        (trimmed,) = desk.editor.of(ContextTrimmed)
        assert (trimmed.keep_from, trimmed.result_limit) == (None, 2_000)
        sent = [
            part
            for message in desk.session.core.context.messages
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
        cut = [part for part in sent if "are left out here" in part.text]
        assert cut == sent[: len(cut)]  # the old ones
        assert all(len(part.text) < 2_200 for part in cut)
        assert "are left out here" not in sent[-1].text
        assert sent[-1].text.startswith("1\tline 0 ")
        asked = CallDone(
            index=0, name="session_search", arguments=json.dumps({"call": cut[0].call})
        )
        model.answering = lambda request: "I see." if results(request) else asked
        await desk.say("What was in the middle of the first?")
        (whole,) = results(model.requests[-1])
        assert "107\tline 36 of a file" in whole.text
        told = [event.used for event in desk.editor.of(UsageReported)]
        assert min(told[1:]) < max(told[:-1]) * 0.7


async def test_a_request_that_the_provider_finds_too_long_is_made_once_more_with_less(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The configuration says 24,000; the model takes far less.
    async with open_desk(tmp_path, model_server, config=CONFIG, flag="openai/narrow") as desk:
        model = use(desk, CountingModel(9_000, lambda request: "Words. " * 400), monkeypatch)
        for number in range(14):
            assert await desk.say(f"Say more ({number}).") == "end_turn"
        refused = [at for at, count in enumerate(model.counts) if count > 9_000]
        assert refused
        assert len(refused) <= 1  # what was learnt holds for the requests that follow
        assert model.counts[refused[0] + 1] < model.counts[refused[0]] * 0.8
        titles = [notice.title for notice in desk.editor.of(NoticeShown)]
        assert any("too long" in title for title in titles)
        await reopen(desk)
        for number in range(6):
            await desk.say(f"And more ({number}).")
        assert [at for at, count in enumerate(model.counts) if count > 9_000] == refused


async def test_a_context_that_cannot_be_shortened_fails_with_a_reason(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=CONFIG, flag="openai/narrow") as desk:
        model = use(desk, CountingModel(100, lambda request: "Yes."), monkeypatch)
        with pytest.raises(ModelError, match="too long"):
            await desk.say("Hi.")
        assert len(model.counts) <= 2
        assert not desk.editor.of(NoticeShown)


async def test_a_message_that_is_too_long_by_itself_is_not_sent_a_second_time(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = CONFIG.replace("24_000", "200_000")
    async with open_desk(tmp_path, model_server, config=wide, flag="openai/narrow") as desk:
        model = use(desk, CountingModel(24_000, lambda request: "Yes."), monkeypatch)
        await desk.say("Hello there. " * 20)
        with pytest.raises(ModelError, match="too long"):
            await desk.say("word " * 40_000)
        assert (
            len(model.counts) == 2
        )  # what says that the first turn is left out is as long as that
        assert await desk.say("Then this.") == "end_turn"
        assert "Then this." in last_words(model.requests[-1])


async def test_results_larger_than_the_window_are_shortened_more(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=CONFIG, flag="openai/narrow") as desk:
        (desk.folder / "file.txt").write_text(FILE * 3)
        model = use(desk, reader_of_many(), monkeypatch)
        assert await desk.say("Read it all at once.") == "end_turn"
        assert max(model.counts) <= 24_000
        assert len(results(model.requests[-1])) == 60
        model.answering = lambda request: "Read." if results(request) else reads()
        for number in range(12):
            assert await desk.say(f"Read it ({number}).") == "end_turn"
        assert max(model.counts) <= 24_000


async def test_results_that_a_model_refused_are_cut_further_until_it_may_take_them(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = CONFIG.replace("24_000", "200_000")
    async with open_desk(tmp_path, model_server, config=wide, flag="openai/narrow") as desk:
        (desk.folder / "file.txt").write_text(FILE)
        model = use(desk, reader_of_many(), monkeypatch)
        assert await desk.say("Read it all at once.") == "end_turn"
        assert [count > 24_000 for count in model.counts] == [False, True, False]


async def test_a_window_that_is_full_of_other_things_does_not_cost_a_summary_each_time(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CONFIG.replace("24_000", "12_000")
    async with open_desk(tmp_path, model_server, config=config, flag="openai/narrow") as desk:
        (desk.folder / "AGENTS.md").write_text("Follow rule 7. " * 1_800)
        model = use(desk, CountingModel(60_000, lambda request: "Yes. " * 60), monkeypatch)
        for number in range(40):
            await desk.say(f"Turn {number}.")
        changes = [
            event
            for event in await desk.journal()
            if isinstance(event, ContextTrimmed | CompactionChanged)
        ]
        assert len(changes) < 20
        assert len(model.summed_up) < 8
        assert "Turn 39." in last_words(model.requests[-1])


async def test_a_single_too_long_turn_keeps_the_users_messages(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = f"{CONFIG}\n[context]\ncompaction = false\n"
    async with open_desk(tmp_path, model_server, config=config, flag="openai/narrow") as desk:
        steps = iter(range(60))
        for number in range(60):
            (desk.folder / f"{number}.txt").write_text(f"{number} x y z " * 250)

        def answering(request: ModelRequest) -> str | CallDone:
            number = next(steps, None)
            return "Done." if number is None else reads(f"{number}.txt")

        model = use(desk, CountingModel(24_000, answering), monkeypatch)
        await desk.say("Read all sixty files.")
        assert max(model.counts) <= 24_000
        head = model.requests[-1].messages[0]
        assert isinstance(head, UserSide)
        texts = [part.text for part in head.parts if isinstance(part, UserText)]
        assert texts[0] == OMITTED_NOTE
        assert texts[1] == TURN_START_NOTE
        assert "Read all sixty files." in texts[2]
        assert well_formed(model.requests[-1])


async def test_only_so_many_turns_are_sent_where_the_user_says_so(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = f"{CONFIG}\n[context]\nmax_turns = 8\n"
    async with open_desk(tmp_path, model_server, config=config, flag="openai/narrow") as desk:
        model = use(desk, CountingModel(24_000, lambda request: "Yes."), monkeypatch)
        for number in range(20):
            await desk.say(f"Turn {number}.")
        sent = [sum("Turn" in text for text in words(request)) for request in model.requests]
        assert max(sent) == 8
        assert min(sent[8:]) >= 6
        assert "Turn 19." in last_words(model.requests[-1])


def words(request: ModelRequest) -> list[str]:
    return [
        part.text
        for message in request.messages
        for part in message.parts
        if isinstance(part, UserText) and "Turn" in part.text
    ]


def well_formed(request: ModelRequest) -> bool:
    """Whether every call has its result and every result its call, one right behind the other."""
    sent: list[dict[str, Any]] = [
        {
            "calls": [p.call for p in message.parts if isinstance(p, AnswerCall)],
            "results": [p.call for p in message.parts if isinstance(p, ToolResult)],
        }
        for message in request.messages
    ]
    return not sent[0]["results"] and all(
        before["calls"] == after["results"] for before, after in pairwise(sent)
    )
