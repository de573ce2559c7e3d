"""A conversation that no longer fits is summed up, in sight of the user, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from acp_agent.agent.context_shortening import OMITTED_TITLE
from acp_agent.agent.context_view import SUMMARISED_NOTE
from acp_agent.errors import ModelError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    CompactionChanged,
    CompactionSummaryText,
    ContextTrimmed,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    TurnEnded,
    Usage,
    UsageReported,
    UserMessage,
)
from acp_agent.models.base import CallDone, Failed, ModelRequest, UserSide, UserText
from acp_agent.session.commands.command import COMMANDS
from tests.agent.counting_model import CountingModel, last_words, results, use
from tests.support.model_server import ModelServer
from tests.support.open_session import Desk, open_desk

WINDOW = 16_000
CONFIG = """
small_model = "openai/tiny"
titles = "prompt"

[models."openai/narrow"]
context_window = 16_000
max_output_tokens = 2_000
price = { input = 1.0, output = 1.0 }

[models."openai/tiny"]
context_window = 16_000
max_output_tokens = 2_000
price = { input = 10.0, output = 10.0 }
"""
LONG = "Nothing of note happened in this step of the work, so there is little to tell. " * 40


@pytest.fixture
async def narrow(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    """A session whose model has a small window, and a model beside it for side work."""
    async with open_desk(tmp_path, model_server, config=CONFIG, flag="openai/narrow") as one:
        yield one


@pytest.fixture
def model(narrow: Desk, monkeypatch: pytest.MonkeyPatch) -> CountingModel:
    """The model behind it; it answers at length."""
    return use(narrow, CountingModel(WINDOW, lambda request: LONG), monkeypatch)


def compactions(events: list[AnyEvent]) -> list[str]:
    """How the compactions went."""
    return [event.status for event in events if isinstance(event, CompactionChanged)]


async def until_compacted(desk: Desk, *, most: int = 60) -> None:
    """Talk until a compaction has begun and ended."""
    for number in range(most):
        await desk.say(f"Say more, please ({number}).")
        if len(desk.editor.of(CompactionChanged)) > 1:
            return
    raise AssertionError("nothing was compacted")


def first_text(request: ModelRequest) -> str:
    """The text that a request's messages begin with."""
    first = request.messages[0]
    assert isinstance(first, UserSide)
    assert isinstance(first.parts[0], UserText)
    return first.parts[0].text


@pytest.mark.covers("P14")
async def test_a_full_context_is_summed_up_and_the_usage_falls(
    narrow: Desk, model: CountingModel
) -> None:
    await narrow.say("Fix the retry limit.")
    await until_compacted(narrow)
    assert compactions(narrow.editor.shown) == ["in_progress", "completed"]
    (done,) = [e for e in narrow.editor.of(CompactionChanged) if e.status == "completed"]
    assert done.summary.startswith("".join(e.text for e in narrow.editor.of(CompactionSummaryText)))
    assert first_text(model.requests[-1]) == f"{SUMMARISED_NOTE}\n\n{done.summary}"
    assert len(model.requests[-1].messages) < len(model.requests[-2].messages) // 2
    assert last_words(model.requests[-1]).startswith("Say more, please")  # still to be answered
    told = [event.used for event in narrow.editor.of(UsageReported)]
    assert max(told) > 0.8 * WINDOW
    assert told[-1] < 0.6 * WINDOW
    journal = await narrow.journal()
    behind = journal[journal.index(done) :]
    asked = next(at for at, event in enumerate(behind) if isinstance(event, ModelAsked))
    (at_once,) = [event for event in behind[:asked] if isinstance(event, UsageReported)]
    assert at_once.used < 0.6 * WINDOW
    assert max(model.counts) <= WINDOW


async def test_the_small_model_sums_up_and_is_paid_for(narrow: Desk, model: CountingModel) -> None:
    await until_compacted(narrow)
    (request,) = model.summed_up
    assert request.model.ref == "openai/tiny"
    assert not request.tools
    (side,) = [
        event
        for event in await narrow.journal()
        if isinstance(event, ModelAnswered) and event.model == "openai/tiny"
    ]
    main = [
        event.usage
        for event in await narrow.journal()
        if isinstance(event, ModelAnswered) and event.model == "openai/narrow"
    ]
    whole = sum(main, Usage())
    spent = (whole.input + whole.output + 10 * (side.usage.input + side.usage.output)) / 1e6
    assert narrow.editor.of(UsageReported)[-1].cost == pytest.approx(spent)
    ended = [event for event in await narrow.journal() if isinstance(event, TurnEnded)][-1]
    assert ended.usage is not None
    assert ended.usage.input > side.usage.input  # the turn's usage has both


async def test_details_missing_in_the_summary_are_appended_verbatim(
    narrow: Desk, model: CountingModel
) -> None:
    (narrow.folder / "limits.py").write_text("RETRIES = 3\n")
    calls = iter(
        [
            CallDone(
                index=0,
                name="todo",
                arguments=json.dumps(
                    {
                        "todos": [
                            {"content": "Raise the limit", "status": "completed"},
                            {"content": "Tell the caller of max_attempts"},
                        ]
                    }
                ),
            ),
            CallDone(index=0, name="read", arguments='{"path": "limits.py"}'),
            CallDone(
                index=0,
                name="edit",
                arguments=json.dumps({"path": "limits.py", "old": "3", "new": "5"}),
            ),
        ]
    )
    model.answering = lambda request: next(calls, LONG)
    model.summing = lambda request: "## Task\nSome limit was raised."
    words = (
        "The retry limit in net/retry_policy.py is wrong since commit 4f9ad21c, see "
        "https://tracker.example.com/T-8812?all=1; never touch legacyClient. 数字要改成五。"
    )
    await narrow.say(words)
    await until_compacted(narrow)
    sent = first_text(model.requests[-1])
    assert "Some limit was raised." in sent
    for kept in (
        words,
        "Tell the caller of max_attempts",
        str(narrow.folder / "limits.py"),
        "> Say more, please (0).",
    ):
        assert kept in sent
    assert "Raise the limit" not in sent  # it is done


async def test_names_and_numbers_of_answers_and_calls_survive(
    narrow: Desk, model: CountingModel
) -> None:
    answers: Iterator[str | CallDone] = iter(
        [
            "The culprit is src/net/pool.py:118 in class ConnectionPool, build 7.14.2.",
            "It came with id 0192f1c4-7d1e-7cc3-98c4-dc0c0c07398f.",
            CallDone(index=0, name="grep", arguments='{"pattern": "drain_timeout_ms"}'),
            CallDone(
                index=0, name="grep", arguments=r'{"pattern": "wait\nlast_seen\tr\u00e9el_id"}'
            ),
        ]
    )
    model.answering = lambda request: next(answers, LONG)
    model.summing = lambda request: "The culprit was found in ConnectionPool."
    await narrow.say("Find it.")
    await narrow.say("Since when?")
    await narrow.say("And?")
    await until_compacted(narrow)
    sent = first_text(model.requests[-1])
    for name in (
        "src/net/pool.py:118",
        "7.14.2",
        "0192f1c4-7d1e-7cc3-98c4-dc0c0c07398f",
        "drain_timeout_ms",
        " last_seen",  # and not what JSON writes before it
        " réel_id",
    ):
        assert name in sent
    assert sent.count("ConnectionPool") == 1  # the summary has it already


async def test_identifiers_of_a_result_survive_and_its_other_text_does_not(
    narrow: Desk, model: CountingModel
) -> None:
    request = "0192f1c4-7d1e-7cc3-98c4-dc0c0c07398f"
    log = f"plain_variable handled {request} at 9b1c0ffee4d5 in /srv/app/handler.py:12\n"
    (narrow.folder / "log.txt").write_text(log)
    calls = iter([CallDone(index=0, name="read", arguments='{"path": "log.txt"}')])
    model.answering = lambda request: next(calls, LONG)
    model.summing = lambda request: "The log was read."
    await narrow.say("Look at the log.")
    await until_compacted(narrow)
    sent = first_text(model.requests[-1])
    for identifier in (request, "9b1c0ffee4d5", "/srv/app/handler.py:12"):
        assert identifier in sent
    assert "plain_variable" not in sent


async def test_a_second_summary_tells_of_the_first(narrow: Desk, model: CountingModel) -> None:
    summaries = iter(["The first stretch was about apples.", "Apples, then pears."])
    model.summing = lambda request: next(summaries)
    await narrow.say("The first words of all.")
    await until_compacted(narrow)
    narrow.editor.shown.clear()
    await until_compacted(narrow)
    asked = model.summed_up[1].messages[0].parts[0]
    assert isinstance(asked, UserText)
    assert "The first stretch was about apples." in asked.text
    sent = first_text(model.requests[-1])
    assert "Apples, then pears." in sent
    assert "The first stretch" not in sent
    assert "> The first words of all." in sent


@pytest.mark.parametrize(
    "broken",
    [
        Failed(kind="bad_request", message="The service refused the request."),
        "",
        "long " * 20_000,
    ],
    ids=["an error", "an empty summary", "a summary longer than what it replaces"],
)
async def test_if_summarising_fails_the_oldest_turns_are_dropped_with_a_notice(
    narrow: Desk, model: CountingModel, broken: str | Failed
) -> None:
    model.summing = lambda request: broken
    await narrow.say("The very first words.")
    await until_compacted(narrow)
    assert compactions(narrow.editor.shown) == ["in_progress", "failed"]
    (failed,) = [e for e in narrow.editor.of(CompactionChanged) if e.status == "failed"]
    assert failed.error
    assert OMITTED_TITLE in [event.title for event in narrow.editor.of(NoticeShown)]
    request = model.requests[-1]
    assert "not shown here for lack of room" in first_text(request)
    second = request.messages[1]
    assert isinstance(second, UserSide)  # whole turns are left out
    assert "session_search" in [tool.name for tool in request.tools]
    assert max(model.counts) <= WINDOW


async def test_the_main_model_summarises_if_the_small_one_fails(
    narrow: Desk, model: CountingModel
) -> None:
    def summing(request: ModelRequest) -> str | Failed:
        if request.model.id == "tiny":
            return Failed(kind="not_found", message="There is no such model.")
        return "Summed up by the main model."

    model.summing = summing
    await until_compacted(narrow)
    assert compactions(narrow.editor.shown) == ["in_progress", "completed"]
    assert "Summed up by the main model." in first_text(model.requests[-1])


async def test_a_model_that_refused_a_length_is_sent_less_than_that_to_sum_up(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = CONFIG.replace('small_model = "openai/tiny"', "").replace("16_000", "160_000")
    async with open_desk(tmp_path, model_server, config=wide, flag="openai/narrow") as desk:
        model = use(desk, CountingModel(60_000, lambda request: "Good."), monkeypatch)
        await desk.say("Hello.")
        with pytest.raises(ModelError, match="too long"):
            await desk.say("ab " * 60_000)
        assert await desk.say("Go on.") == "end_turn"
        assert compactions(await desk.journal()) == ["in_progress", "completed"]
        assert len(model.summed_up) == 1


async def test_a_summary_that_takes_too_long_is_abandoned(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = f"{CONFIG}\n[context]\ncompaction_timeout = 0.2\n"
    async with open_desk(tmp_path, model_server, config=config, flag="openai/narrow") as desk:
        model = use(desk, Slow(WINDOW, lambda request: LONG), monkeypatch)
        await until_compacted(desk)
        assert compactions(desk.editor.shown) == ["in_progress", "failed"]
        assert max(model.counts) <= WINDOW


class Slow(CountingModel):
    """Never ends a summary."""

    async def stream(self, request):  # type: ignore[no-untyped-def]  # as above
        if not request.tools:
            self.summed_up.append(request)
            await asyncio.Event().wait()
        async for batch in super().stream(request):
            yield batch


async def test_a_cancel_ends_a_compaction_with_its_turn(
    narrow: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(narrow, Slow(WINDOW, lambda request: LONG), monkeypatch)
    while True:
        turn = await narrow.begin("Say more.")
        begun = asyncio.create_task(narrow.editor.until(CompactionChanged))
        ended = asyncio.create_task(turn.result())
        await asyncio.wait({begun, ended}, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        if begun.done():
            break
        begun.cancel()
    ended.cancel()
    assert await narrow.cancel(turn) == "cancelled"
    assert compactions(await narrow.journal()) == ["in_progress", "cancelled"]


async def test_a_message_during_a_compaction_is_saved_and_answered(
    narrow: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Steered(CountingModel):
        async def stream(self, request):  # type: ignore[no-untyped-def]  # as above
            if not request.tools:
                await narrow.begin("Stop at line 40!")
            async for batch in super().stream(request):
                yield batch

    steered = use(narrow, Steered(WINDOW, lambda request: LONG), monkeypatch)
    await until_compacted(narrow)
    request = steered.requests[-1]
    assert "Stop at line 40!" in last_words(request)
    assert first_text(request).startswith(SUMMARISED_NOTE)


async def test_compact_summarises_at_once_with_the_given_focus(
    narrow: Desk, model: CountingModel
) -> None:
    for _ in range(3):
        await narrow.say("Say more.")
    assert await narrow.say("/compact the names of the files") == "end_turn"
    (request,) = model.summed_up
    assert "the names of the files" in request.system
    assert compactions(narrow.editor.shown) == ["in_progress", "completed"]
    assert "is summarised" in narrow.editor.of(AgentText)[-1].text
    await narrow.say("What next?")
    last = model.requests[-1]
    assert first_text(last).startswith(SUMMARISED_NOTE)
    assert [type(m) for m in last.messages] == [UserSide, UserSide]
    assert "/compact" not in model.bodies[-1].decode()
    assert "compact" in [command.name for command in COMMANDS]


async def test_compact_says_why_it_failed_in_one_sentence(
    narrow: Desk, model: CountingModel
) -> None:
    model.answering = lambda request: "word " * 1_000
    model.summing = lambda request: Failed(kind="not_found", message="There is no such model.")
    await narrow.say("Hi.")
    await narrow.say("/compact")
    told = narrow.editor.of(AgentText)[-1].text
    assert told == "The conversation was not summarised: There is no such model."


async def test_compact_says_if_there_is_nothing_to_summarise(
    narrow: Desk, model: CountingModel
) -> None:
    model.answering = lambda request: "Yes."
    await narrow.say("Hi.")
    await narrow.say("/compact")
    assert not model.summed_up
    assert "too little" in narrow.editor.of(AgentText)[-1].text


async def test_compact_can_be_cancelled_and_nothing_changes(
    narrow: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = use(narrow, Slow(WINDOW, lambda request: LONG), monkeypatch)
    for _ in range(3):
        await narrow.say("Say more.")
    turn = await narrow.begin("/compact")
    await narrow.editor.until(CompactionChanged)
    assert await narrow.cancel(turn) == "cancelled"
    await narrow.say("Go on.")
    assert len(model.requests[-1].messages) == 7


async def test_compact_during_a_turn_comes_before_its_next_request(
    narrow: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(CountingModel):
        async def stream(self, request):  # type: ignore[no-untyped-def]  # as above
            if "List" in last_words(request):
                await narrow.begin("/compact")
            async for batch in super().stream(request):
                yield batch

    call = CallDone(index=0, name="list", arguments='{"path": "."}')
    model = use(
        narrow,
        Interrupted(WINDOW, lambda request: call if "List" in last_words(request) else LONG),
        monkeypatch,
    )
    await narrow.say("One.")
    await narrow.say("Two.")
    await narrow.say("List the folder.")
    assert compactions(narrow.editor.shown) == ["in_progress", "completed"]
    final = model.requests[-1]
    assert results(final)
    assert first_text(final).startswith(SUMMARISED_NOTE)
    assert "> List the folder." in first_text(final)


async def test_a_fork_and_a_restart_send_what_the_source_sends(
    narrow: Desk, model: CountingModel
) -> None:
    await until_compacted(narrow)
    sent = list(narrow.session.core.context.messages)
    forked = await narrow.manager.fork(narrow.session.id, str(narrow.folder), [], narrow.editor)
    assert list(forked.core.context.messages) == sent
    await narrow.manager.close(narrow.session.id, narrow.editor)
    opened = await narrow.manager.open(narrow.session.id, str(narrow.folder), [])
    assert list(opened.core.context.messages) == sent
    narrow.manager.close_when_idle(opened)


async def test_the_journal_keeps_messages_that_are_no_longer_sent(
    narrow: Desk, model: CountingModel
) -> None:
    await narrow.say("The very first words.")
    await until_compacted(narrow)
    said = [e.content[0] for e in await narrow.journal() if isinstance(e, UserMessage)]
    assert getattr(said[0], "text", "") == "The very first words."
    assert not [e for e in await narrow.journal() if isinstance(e, ContextTrimmed)]
