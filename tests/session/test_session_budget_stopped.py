"""What answers took that came to nothing: those that were stopped, cut off, or of no use."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.events import AgentText, ModelAnswered, Usage, UsageReported
from acp_agent.models import retries
from tests.support.model_server import Answer, Cut, ModelServer, Raw, Stall, answer
from tests.support.open_session import MODEL, Desk, open_desk

SENT, ANSWERED = 4_000, 1
TOOK = SENT + ANSWERED


COUNTS = f'"prompt_tokens":{SENT},"completion_tokens":{ANSWERED}'.encode()
CHUNK = b'data: {"choices":[],"usage":{' + COUNTS + b"}}\n\n"


def told(*steps: str | Stall | Cut) -> Answer:
    """An answer whose provider counts along with it, as many services do in each chunk."""
    return answer(Raw(CHUNK), *steps, usage=None)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_delay", lambda *_: 0.0)


async def counted(desk: Desk, tokens: int) -> None:
    """The session, the day and the wire agree on what was spent."""
    state = desk.session.core.state
    assert state.spent.tokens == tokens
    assert (await desk.services.store.spent_since(0)).tokens == tokens
    assert state.cost == pytest.approx(state.spent.cost)
    assert desk.editor.of(UsageReported)[-1].cost == pytest.approx(state.spent.cost)


async def test_a_stopped_answer_counts_as_far_as_its_provider_reported(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(told("Begun", Stall()))
        turn = await desk.begin("Go")
        await desk.editor.until(AgentText)
        assert await desk.cancel(turn) == "cancelled"
        await counted(desk, TOOK)
        assert turn.usage == Usage(input=SENT, output=ANSWERED)


async def test_every_attempt_with_reported_usage_counts(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        usage = Usage(input=2_000, output=500, reasoning=500)
        model_server.add(
            told("Half an ", Cut()),
            answer(usage=usage),  # nothing but thoughts, all paid for
            answer("Done.", usage=Usage(input=2_000, output=100)),
        )
        assert await desk.say("Go") == "end_turn"
        await counted(desk, TOOK + 2_500 + 2_100)
        answers = [event for event in await desk.journal() if isinstance(event, ModelAnswered)]
        assert [one.complete for one in answers if one.model] == [False, True, True]


async def test_usage_counts_despite_an_unreadable_answer(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        broken = answer(Raw(CHUNK + b"data: {no JSON\n\n"), usage=None)
        model_server.add(broken, answer("Done.", usage=Usage(input=2_000, output=100)))
        assert await desk.say("Go") == "end_turn"
        await counted(desk, TOOK + 2_100)


async def test_an_answer_that_failed_permanently_counts(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config="[limits]\nmax_retries = 0\n") as desk:
        model_server.add(told("Half an ", Cut()))
        with pytest.raises(Exception, match="broke in the middle"):
            await desk.say("Go")
        await counted(desk, TOOK)


async def test_attempts_that_come_to_nothing_use_a_budget_up(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "[limits]\nmax_retries = 0\n[budget]\nsession_tokens = 8_000\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.otherwise = told("Half an ", Cut())
        for _ in range(2):
            with pytest.raises(Exception, match="broke in the middle"):
                await desk.say("Go")
        assert await desk.say("Go") == "refusal"
        assert len(model_server.requests) == 2


async def test_a_failed_request_is_not_retried_beyond_a_budget(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "[budget]\nturn_tokens = 8_000\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.otherwise = told("Half an ", Cut())
        assert await desk.say("Go") == "refusal"
        assert len(model_server.requests) == 2
        said = desk.editor.of(AgentText)[-1].text
        assert said.startswith("The budget of this turn is used up: 8,002 tokens of 8,000 tokens.")
        await counted(desk, 2 * TOOK)
        assert await desk.say("Go") == "refusal"  # a turn with a budget of its own
        assert len(model_server.requests) == 4


async def test_a_side_request_counts_each_of_its_attempts(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f'small_model = "{MODEL}"\ntitles = "prompt"\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        words = answer("word " * 1_500, usage=Usage(input=1_000, output=100))
        summary = answer("They said words.", usage=Usage(input=3_000, output=200))
        model_server.add(words, told("They sa", Cut()), summary)
        await desk.say("word " * 1_500)
        await desk.say("/compact")
        await counted(desk, 1_100 + TOOK + 3_200)
        assert "They saThey" not in str(await desk.journal())


async def test_input_usage_reported_at_the_start_counts(
    tmp_path: Path, model_server: ModelServer
) -> None:
    environ = model_server.environ("anthropic")
    async with open_desk(tmp_path, model_server, flag="anthropic/one", environ=environ) as desk:
        model_server.add(answer("Begun", Stall(), usage=Usage(input=SENT, output=700)))
        turn = await desk.begin("Go")
        await desk.editor.until(AgentText)
        assert await desk.cancel(turn) == "cancelled"
        assert SENT <= desk.session.core.state.spent.tokens < SENT + 700


async def test_a_side_request_that_failed_is_not_made_again_beyond_a_budget(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f'small_model = "{MODEL}"\ntitles = "prompt"\n[budget]\nsession_tokens = 8_000\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        words = answer("word " * 1_500, usage=Usage(input=1_000, output=100))
        model_server.add(words, told("They sa", Cut()))
        model_server.otherwise = told("They said", Cut())
        await desk.say("word " * 1_500)
        await desk.say("/compact")
        assert len(model_server.requests) == 2
        await counted(desk, 1_100 + TOOK)
