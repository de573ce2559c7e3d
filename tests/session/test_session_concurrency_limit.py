"""Who waits for a slot is served in turn, and none is ever lost."""

from __future__ import annotations

import asyncio

from hypothesis import example, given, strategies as st

from acp_agent.session.services import ConcurrencyLimit


async def waiting(
    slots: ConcurrencyLimit, served: list[str], *sessions: str
) -> list[asyncio.Task[None]]:
    """Tasks that each take a slot for a session, all of which have to wait."""

    async def take(session: str) -> None:
        await slots.acquire(session)
        served.append(session)

    tasks = [asyncio.create_task(take(session)) for session in sessions]
    await asyncio.sleep(0)
    return tasks


async def test_sessions_share_the_slots_fairly() -> None:
    slots, served = ConcurrencyLimit(1), list[str]()
    await slots.acquire("first")
    tasks = await waiting(slots, served, "a", "a", "a", "b", "c")
    for task_count in range(1, 6):
        slots.release()
        while len(served) < task_count:
            await asyncio.sleep(0)
    assert served == ["a", "b", "c", "a", "a"]
    await asyncio.gather(*tasks)


async def test_a_later_request_does_not_overtake_a_waiting_one() -> None:
    slots, served = ConcurrencyLimit(1), list[str]()
    await slots.acquire("first")
    tasks = await waiting(slots, served, "a")
    slots.release()
    tasks += await waiting(slots, served, "b")
    assert served == ["a"]
    slots.release()
    await asyncio.gather(*tasks)


@example(1, [("take", 0), ("take", 0), ("take", 0), ("rest", 0), ("give", 0)])
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(st.sampled_from(["take", "cancel", "give", "rest"]), st.integers(0, 9)),
        max_size=60,
    ),
)
async def test_no_slot_is_lost_or_assigned_twice(
    count: int, actions: list[tuple[str, int]]
) -> None:
    slots = ConcurrencyLimit(count)
    tasks: list[asyncio.Task[None]] = []
    given_back = 0

    def held() -> int:
        done = [task for task in tasks if task.done() and not task.cancelled()]
        return len(done) - given_back

    for action, number in actions:
        match action:
            case "take":
                tasks.append(asyncio.create_task(slots.acquire(f"s{number % 3}")))
            case "cancel" if tasks:
                tasks[number % len(tasks)].cancel()
            case "give" if held():
                slots.release()
                given_back += 1
            case _:
                await asyncio.sleep(0)
        assert held() <= count
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    while held():
        slots.release()
        given_back += 1
    for _ in range(count):  # all are free again
        assert not slots.full
        await slots.acquire("last")
    assert slots.full
