"""What may be spent in a turn, a session and a day, and what becomes of a turn beyond that."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from acp_agent.content import TextBlock
from acp_agent.events import AgentText, ModelAnswered, NoticeShown, Usage, UsageReported
from acp_agent.ids import MessageId
from acp_agent.session.session import Session
from acp_agent.session.turns.budget import NO_PRICE, midnight
from tests.session.budgeted import budget, took
from tests.support.model_server import Call, ModelServer
from tests.support.open_session import MODEL, Desk, open_desk

READ = Call("list", {"path": "."})


def spoken(desk: Desk) -> str:
    return "".join(event.text for event in desk.editor.of(AgentText))


def notices(desk: Desk) -> list[str]:
    return [event.title for event in desk.editor.of(NoticeShown)]


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (budget(turn_tokens=12_000), "of this turn"),
        (budget(session_tokens=12_000), "of this session"),
        (budget(day_tokens=12_000), "of today"),
        # 5,000 tokens sent and 100 answered cost $0.006 each time.
        (budget(turn_cost=0.012), "of this turn"),
        (budget(session_cost=0.012), "of this session"),
        (budget(day_cost=0.012), "of today"),
    ],
)
async def test_no_request_is_made_beyond_a_budget_and_the_user_sees_why(
    config: str, word: str, tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.otherwise = took(READ, sent=5_000)
        assert await desk.say("Go") == "max_tokens"
        assert len(model_server.requests) == 2
        assert f"budget {word}" in spoken(desk)
        assert "/budget" in spoken(desk)


async def test_a_request_that_would_exceed_the_budget_is_not_made_at_all(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(turn_tokens=50)) as desk:
        assert await desk.say("Go") == "refusal"
        assert not model_server.requests
        assert "The next request would exceed the budget of this turn" in spoken(desk)


async def test_a_turn_begins_with_the_whole_of_its_budget(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = budget(turn_tokens=8_000)
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(took("Hello.", sent=4_000), took("Hello again.", sent=4_000))
        assert await desk.say("Hi") == "end_turn"
        assert await desk.say("Hi") == "end_turn"


async def test_the_user_is_warned_once_at_four_fifths(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = budget(session_tokens=100_000)
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(took("One.", sent=79_000), took("Two."), took("Three."))
        for _ in range(3):
            await desk.say("Go on")
        warnings = [title for title in notices(desk) if "of the budget" in title]
        assert warnings == [
            "80% of the budget of this session is used: 80,200 tokens of 100,000 tokens."
        ]


async def test_the_days_budget_includes_other_and_deleted_sessions(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = budget(day_tokens=20_000)
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(took("Done.", sent=25_000))
        await desk.say("Go")
        other = await desk.manager.create(str(desk.folder), [], desk.editor)
        await desk.manager.delete(desk.session.id)
        assert await _say(desk, other, "Go") == "refusal"
        assert len(model_server.requests) == 1


@pytest.mark.parametrize("at", [lambda: midnight() - 1, lambda: midnight(days=1)])
async def test_usage_of_other_days_does_not_count_even_if_the_clock_was_set_back(
    at: Callable[[], int], tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(day_tokens=20_000)) as desk:
        store, session = desk.services.store, desk.session.id
        now = store._clock
        store._clock = at
        event = ModelAnswered(message=MessageId("m"), model=MODEL, usage=Usage(input=50_000))
        await store.append(session, [event])
        store._clock = now
        model_server.add(took("Good morning."))
        assert await desk.say("Go") == "end_turn"


async def test_requests_without_a_known_price_count_as_tokens_and_the_user_sees_it(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = budget(session_cost=0.001, session_tokens=10_000)
    async with open_desk(tmp_path, model_server, config=config, flag="openai/blind") as desk:
        model_server.add(took("One.", sent=6_000), took("Two.", sent=6_000))
        assert await desk.say("Go") == "end_turn"
        assert NO_PRICE in notices(desk)
        assert await desk.say("Go") == "refusal"
        assert notices(desk).count(NO_PRICE) == 1
        await desk.say("/budget")
        assert "- This session: 6,100 tokens of 10,000 tokens, ? of $0.0010" in spoken(desk)
        assert NO_PRICE in spoken(desk)


async def test_side_requests_count_and_are_not_made_beyond_a_budget(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f'small_model = "{MODEL}"\ntitles = "prompt"\n' + budget(session_tokens=20_000)
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(took("word " * 1_500), took("They said words.", sent=3_000, answered=200))
        await desk.say("word " * 1_500)
        await desk.say("/compact")
        spent = desk.session.core.state.spent
        assert (spent.tokens, spent.unpriced) == (4_300, 0)
        assert spent.cost == pytest.approx(0.004 + 0.003)
        assert (await desk.services.store.spent_since(0)).cost == pytest.approx(spent.cost)


@pytest.mark.parametrize("scope", ["day", "session"])
async def test_a_request_without_a_saved_price_counts_at_todays_price(
    scope: str, tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(**{f"{scope}_cost": 1.0})) as desk:
        usage = Usage(input=500_000, output=50_001)  # $0.50 and $0.50
        event = ModelAnswered(message=MessageId("m"), model=MODEL, usage=usage)
        if scope == "session":
            await desk.session.core.emit(event)
        else:
            await desk.manager.create(str(desk.folder), [], desk.editor)
            await desk.services.store.append(desk.session.id, [event])
        assert await desk.say("Go") == "refusal"
        assert not model_server.requests
        assert "is used up: $1.00 of $1.00" in spoken(desk)


async def test_compact_is_not_made_beyond_a_budget_and_going_back_is(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f'small_model = "{MODEL}"\ntitles = "prompt"\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(took("word " * 1_500))
        await desk.say("word " * 1_500)
        for most, why in (("1k", "is used up"), ("2k", "The next request would exceed")):
            await desk.say(f"/budget session {most}")
            await desk.say("/compact")
            said = desk.editor.of(AgentText)[-1].text
            assert said.startswith("The conversation was not summarised: The ")
            assert why in said
            assert said.endswith("`/budget` shows and changes this.")
        assert len(model_server.requests) == 1
        await desk.say("/rewind 1 both")
        assert "rewound to before 1" in desk.editor.of(AgentText)[-1].text


async def test_a_turn_whose_summary_used_up_the_budget_makes_no_further_request(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f'small_model = "{MODEL}"\ntitles = "prompt"\n' + budget(session_tokens=50_000)
    config += "[context]\nthreshold = 0.1\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(
            took("word " * 3_000, sent=4_000, answered=4_000),
            took("They said words.", sent=45_000, answered=200),
            took("Beyond the budget."),
        )
        await desk.say("word " * 3_000)
        assert await desk.say("word " * 3_000) == "refusal"
        assert len(model_server.requests) == 2
        assert "The budget of this session is used up: 53,200 tokens" in spoken(desk)


async def test_the_budget_command_shows_usage_and_changes_limits(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(turn_cost=1.0)) as desk:
        model_server.add(took("Done."))
        await desk.say("Go")
        await desk.say("/budget")
        assert "- The last turn: 1,100 tokens, $0.0020 of $1.00" in spoken(desk)
        await desk.say("/budget session 1.5k")
        assert "- This session: 1,100 tokens of 1,500 tokens, $0.0020" in spoken(desk)
        assert spoken(desk).count("- The last turn: 1,100 tokens, $0.0020 of $1.00") == 2
        assert await desk.say("Go") == "refusal"
        await desk.say("/budget session none")
        model_server.add(took("Go on."))
        assert await desk.say("Go") == "end_turn"


@pytest.mark.parametrize(
    "rest",
    [
        "week $2",
        "turn lots",
        "turn -1",
        "turn $",
        "turn 0.4",
        "turn 1.2345k",
        "turn $2 tokens",
        "turn 20,00",
        "turn $0,50",
        "turn 1e3",
        "turn €5",
    ],
)
async def test_the_budget_command_explains_its_usage_after_a_mistake(rest: str, desk: Desk) -> None:
    await desk.say(f"/budget {rest}")
    assert "To change a budget of this session" in spoken(desk)
    assert not desk.session.resources.budget.limits


@pytest.mark.parametrize(
    ("amount", "most"),
    [
        ("$0.000001", "$0.00 of $0.000001"),
        ("$0.0000001", "$0.00 of $0.0000001"),
        ("$1,234,567.89", "$0.00 of $1,234,567.89"),
        ("2 usd", "$0.00 of $2.00"),
        ("$1.5k", "$0.00 of $1,500.00"),
        ("2,000", "0 tokens of 2,000 tokens"),
        ("2_000_000", "0 tokens of 2,000,000 tokens"),
        ("0.5k tokens", "0 tokens of 500 tokens"),
        ("0", "0 tokens of 0 tokens"),
    ],
)
async def test_a_budget_is_stored_and_shown_exactly(amount: str, most: str, desk: Desk) -> None:
    await desk.say(f"/budget day {amount}")
    (line,) = [line for line in spoken(desk).splitlines() if "Today" in line]
    assert most in line


async def test_a_changed_budget_holds_when_the_session_is_opened_again(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(took("Done."))
        await desk.say("Go")
        await desk.say("/budget session 1000")
        await desk.manager.close(desk.session.id, desk.editor)
        again = await desk.manager.open(desk.session.id, str(desk.folder), [])
        again.attach(desk.editor)
        assert await _say(desk, again, "Go") == "refusal"


async def test_a_fork_has_a_budget_of_its_own_and_is_not_counted_twice(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(session_tokens=9_000)) as desk:
        model_server.add(took("Done.", sent=6_000))
        await desk.say("Go")
        fork = await desk.manager.fork(desk.session.id, str(desk.folder), [], desk.editor)
        assert fork.core.state.spent.tokens == 0
        assert fork.core.state.cost == 0
        fork.attach(desk.editor)
        model_server.add(took("Done.", sent=1_000))
        assert await _say(desk, fork, "Go") == "end_turn"
        assert (
            desk.editor.of(UsageReported)[-1].cost == fork.core.state.cost == pytest.approx(0.002)
        )
        assert (await desk.services.store.spent_since(0)).tokens == 7_200


# By their rules, because the rules of a name differ between versions of the system's data.
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
SANTIAGO = "<-04>4<-03>,M9.1.6/24,M4.1.6/24"
HAVANA = "CST5CDT,M3.2.0/0,M11.1.0/1"
KATHMANDU = "<+0545>-5:45"


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (BERLIN, "2026-03-29", 23),
        (BERLIN, "2026-10-25", 25),
        (SANTIAGO, "2026-09-06", 23),  # has no midnight
        (HAVANA, "2026-11-01", 25),  # has two
        (KATHMANDU, "2026-11-01", 24),
    ],
)
def test_a_day_is_as_long_as_the_users_clocks_say(
    zone: str, day: str, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        clock.tzset()
        noon = datetime.fromisoformat(f"{day}T12:00:00Z")
        begins, ends = midnight(noon), midnight(noon, days=1)
        days = [clock.strftime("%F", clock.localtime(begins / 1000 + at)) for at in (-1, 0)]
    clock.tzset()
    assert ends - begins == hours * 3_600_000
    assert days[0] < day == days[1]


def test_a_day_begins_at_the_users_own_midnight() -> None:
    now = datetime(2026, 11, 22, 0, 30).astimezone()
    assert midnight(now) == int(now.replace(minute=0).timestamp() * 1000)


async def _say(desk: Desk, session: Session, text: str) -> str:
    said = await session.prompts.submit((TextBlock(text=text),), cancelled=lambda: False)
    async with asyncio.timeout(60):
        return await said.turn.result()
