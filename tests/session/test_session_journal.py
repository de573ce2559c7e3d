"""The open journal of a session: written first, then taken in and shown, in one order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from acp_agent.errors import InvalidInputError, StoreError
from acp_agent.events import AgentText, AnyEvent, SessionStarted, TitleChanged, ToolOutput
from acp_agent.ids import CallId, MessageId, SessionId
from acp_agent.session.journal import JournalWriter
from acp_agent.session.store.records import UnknownEvent
from tests.support.open_session import FaultyStore

SESSION = SessionId("sess_1")


def text(piece: str, message: str = "m") -> AgentText:
    return AgentText(message=MessageId(message), text=piece)


def title(name: str) -> TitleChanged:
    return TitleChanged(title=name)


class Bench:
    """A journal over a real store, and what it passes on."""

    def __init__(self, store: FaultyStore) -> None:
        self.store = store
        self.taken: list[AnyEvent] = []
        self.shown: list[AnyEvent] = []
        self.bursts: list[int] = []
        self.journal = JournalWriter(SESSION, store, apply=self._take, show=self._show)

    def _take(self, events: Sequence[AnyEvent]) -> None:
        self.taken.extend(events)

    async def _show(self, events: Sequence[AnyEvent]) -> None:
        assert self.taken[-len(events) :] == list(events), "shown before it was taken in"
        stored = await self.kept()
        assert len(stored) > len(self.shown), "shown before it was kept"
        self.bursts.append(len(events))
        self.shown.extend(events)

    async def kept(self) -> list[AnyEvent | UnknownEvent]:
        stored = await self.store.read_all(SESSION)
        return [item.event for item in stored][1:]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = await FaultyStore.open(tmp_path / "sessions.db")
    await store.create(SESSION, [SessionStarted(cwd="/a")])
    assert isinstance(store, FaultyStore)
    yield Bench(store)
    await store.close()


async def test_events_are_saved_applied_and_shown_in_the_order_of_the_writes(bench: Bench) -> None:
    titles = [title(str(number)) for number in range(20)]
    await asyncio.gather(*(bench.journal.write((one,)) for one in titles))
    assert bench.shown == bench.taken == titles == await bench.kept()


async def test_waiting_events_are_written_in_one_transaction(bench: Bench) -> None:
    bench.store.held = asyncio.Event()
    first = bench.journal.write((title("first"),))
    await asyncio.sleep(0)
    rest = [bench.journal.write((title(str(number)),)) for number in range(5)]
    bench.store.held.set()
    await asyncio.gather(first, *rest)
    assert bench.bursts == [1, 5]


async def test_a_failed_write_fails_for_all_its_callers_and_is_not_shown(
    bench: Bench,
) -> None:
    bench.store.full = True
    waiting = [bench.journal.write((title(str(number)),)) for number in range(3)]
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 3
    assert bench.taken == bench.shown == await bench.kept() == []
    bench.store.full = False
    await bench.journal.write((title("after"),))
    assert bench.shown == await bench.kept() == [title("after")]


async def test_events_are_written_although_their_task_was_cancelled(bench: Bench) -> None:
    bench.store.held = asyncio.Event()

    async def write() -> None:
        await bench.journal.write((title("kept"),))

    writing = asyncio.create_task(write())
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.wait([writing])
    bench.store.held.set()
    await bench.journal.write((title("next"),))
    assert bench.shown == await bench.kept() == [title("kept"), title("next")]


async def test_an_action_runs_alone_between_what_came_before_and_after_it(bench: Bench) -> None:
    seen: list[list[AnyEvent]] = []

    async def look() -> None:
        seen.append(list(bench.shown))
        for _ in range(10):
            await asyncio.sleep(0)
        seen.append(list(bench.shown))

    before = bench.journal.write((title("before"),))
    alone = asyncio.create_task(bench.journal.run_exclusively(look))
    await asyncio.sleep(0)
    after = bench.journal.write((title("after"),))
    await asyncio.gather(before, alone, after)
    assert seen == [[title("before")], [title("before")]]
    assert bench.shown[-1] == title("after")


async def test_an_action_that_fails_tells_its_caller_only(bench: Bench) -> None:
    async def fail() -> None:
        raise InvalidInputError("cannot be shown")

    alone = asyncio.create_task(bench.journal.run_exclusively(fail))
    await asyncio.sleep(0)
    await bench.journal.write((title("after"),))
    with pytest.raises(InvalidInputError):
        await alone


async def test_an_action_without_a_waiting_caller_is_skipped(bench: Bench) -> None:
    ran = False

    async def run() -> None:
        nonlocal ran
        ran = True

    bench.store.held = asyncio.Event()
    before = bench.journal.write((title("before"),))
    alone = asyncio.create_task(bench.journal.run_exclusively(run))
    await asyncio.sleep(0)
    alone.cancel()
    await asyncio.wait([alone])
    bench.store.held.set()
    await before
    await bench.journal.flush()
    assert not ran


async def test_flush_waits_for_all_that_was_written_before(bench: Bench) -> None:
    bench.journal.write((title("one"),))
    bench.journal.write((title("two"),))
    await bench.journal.flush()
    assert bench.shown == [title("one"), title("two")]


@pytest.mark.parametrize(
    "events",
    [
        [text("good \ud83d"), text("\ude00 day")],
        [text("broken \ud83d alone")],
        [ToolOutput(call=CallId("c"), text="\udcff")],
        [title("t\udc00")],
    ],
)
async def test_text_with_lone_surrogates_is_shown_as_it_is_saved(
    bench: Bench, events: list[AnyEvent]
) -> None:
    await asyncio.gather(*(bench.journal.write((event,)) for event in events))
    assert bench.shown == bench.taken == await bench.kept()
    assert "\ud83d" not in repr(bench.shown)
    repr(bench.shown).encode()


async def test_two_halves_of_a_character_become_one(bench: Bench) -> None:
    await bench.journal.write((text("good \ud83d"), text("\ude00 day")))
    assert bench.shown == [text("good 😀 day")]


async def test_pieces_of_sound_text_are_shown_one_by_one(bench: Bench) -> None:
    await bench.journal.write((text("a"), text("é")))
    assert bench.shown == [text("a"), text("é")]
    assert await bench.kept() == [text("aé")]


async def test_events_written_after_reading_the_journal_are_part_of_its_history(
    bench: Bench,
) -> None:
    bench.journal.cache_history([SessionStarted(cwd="/a")])
    await bench.journal.write((title("new"),))
    assert (await bench.journal.history())[1:] == [title("new")]
