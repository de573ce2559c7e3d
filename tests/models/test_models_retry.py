"""Trying again: what is tried, how long is waited, and what the user sees."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import AsyncGeneratorType

import pytest

from acp_agent.config.localization import translator_for
from acp_agent.events import Usage
from acp_agent.models import exchange
from acp_agent.models.base import (
    Driver,
    Failed,
    Finished,
    ModelRequest,
    Retrying,
    StreamEvent,
    TextDelta,
)
from acp_agent.models.failures import timed_out
from acp_agent.models.retries import RetryPolicy, stream_with_retries
from tests.support.model_asking import Gathered, ask, driver_for, gather
from tests.support.model_server import (
    Cut,
    Drop,
    ModelServer,
    Pause,
    Raw,
    Reply,
    Stall,
    Status,
    answer,
)

POLICY = RetryPolicy(retries=4, first_byte=5, stall=5)


@pytest.fixture(params=["openai", "anthropic"])
async def driver(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[Driver]:
    made = driver_for(request.param, server)
    yield made
    await made.aclose()


class Clock:
    """Waits for nothing and remembers how long it should have."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


async def tried(
    driver: Driver, policy: RetryPolicy = POLICY, clock: Clock | None = None
) -> Gathered:
    sleep = (clock or Clock()).sleep
    return await gather(
        stream_with_retries(driver, ask(), policy, sleep=sleep, random_number=lambda: 1.0)
    )


@pytest.mark.parametrize(
    "reply",
    [
        Drop(),
        Status(code=408),
        Status(code=429),
        Status(code=500),
        Status(code=503),
        Status(code=529),
        answer(Cut()),
        answer(Raw(b"data: {nonsense\n\n")),
        answer(ended=False),
    ],
)
async def test_a_temporary_failure_is_retried_and_shown_to_the_user(
    driver: Driver, server: ModelServer, reply: Reply
) -> None:
    server.add(reply, answer("Better now."))
    got = await tried(driver)
    (retry,) = [event for event in got.events if isinstance(event, Retrying)]
    assert (retry.attempt, retry.attempts, retry.discard) == (1, 5, False)
    assert retry.reason
    assert "Try again" not in retry.reason
    assert got.text == "Better now."
    assert isinstance(got.last, Finished)


@pytest.mark.parametrize("code", [400, 401, 402, 403, 404, 413, 422])
async def test_a_permanent_failure_is_not_retried(
    driver: Driver, server: ModelServer, code: int
) -> None:
    server.add(Status(code=code))
    got = await tried(driver)
    assert [type(event) for event in got.events] == [Failed]
    assert len(server.requests) == 1


async def test_an_account_without_credit_is_not_asked_again(
    driver: Driver, server: ModelServer
) -> None:
    server.add(Status(code=429, kind="insufficient_quota", message="You exceeded your quota"))
    got = await tried(driver)
    assert isinstance(got.last, Failed)
    assert got.last.kind == "quota"
    assert len(server.requests) == 1


async def test_the_delay_doubles_up_to_its_highest(driver: Driver, server: ModelServer) -> None:
    server.otherwise = Status(code=500)
    clock = Clock()
    policy = RetryPolicy(retries=4, first_delay=1, highest_delay=3)
    got = await tried(driver, policy, clock)
    assert clock.waited == [1, 2, 3, 3]
    assert len(server.requests) == 5
    assert isinstance(got.last, Failed)
    assert [event.delay for event in got.events if isinstance(event, Retrying)] == clock.waited


async def test_the_delay_varies(driver: Driver, server: ModelServer) -> None:
    server.otherwise = Status(code=500)
    clock = Clock()
    one_retry = RetryPolicy(retries=1)
    await gather(
        stream_with_retries(driver, ask(), one_retry, sleep=clock.sleep, random_number=lambda: 0.0)
    )
    await gather(
        stream_with_retries(driver, ask(), one_retry, sleep=clock.sleep, random_number=lambda: 1.0)
    )
    assert clock.waited == [0.5, 1.0]


async def test_the_provider_is_never_asked_sooner_than_it_wants(
    driver: Driver, server: ModelServer
) -> None:
    server.add(Status(code=429, headers={"Retry-After": "17"}), answer("Now."))
    clock = Clock()
    assert (await tried(driver, clock=clock)).text == "Now."
    assert 17 <= clock.waited[0] < 18


async def test_a_provider_that_wants_to_be_left_alone_for_long_is_not_waited_for(
    driver: Driver, server: ModelServer
) -> None:
    server.add(Status(code=429, headers={"Retry-After": "3600"}))
    clock = Clock()
    got = await tried(driver, clock=clock)
    assert isinstance(got.last, Failed)
    assert got.last.retry_after == 3600
    assert clock.waited == []


async def test_text_of_an_attempt_that_broke_off_is_to_be_discarded(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer("Half an ", Cut()), answer("A whole answer."))
    got = await tried(driver)
    kinds = [type(event) for event in got.events if not isinstance(event, TextDelta | Usage)]
    assert kinds == [Retrying, Finished]
    retry = next(event for event in got.events if isinstance(event, Retrying))
    assert retry.discard
    after = got.events[got.events.index(retry) + 1 :]
    assert "".join(event.text for event in after if isinstance(event, TextDelta)) == (
        "A whole answer."
    )


async def test_an_answer_that_does_not_start_in_time_is_aborted(
    driver: Driver, server: ModelServer
) -> None:
    server.add(Status(code=500, hold=Stall()))
    got = await tried(driver, RetryPolicy(retries=0, first_byte=0.05))
    assert isinstance(got.last, Failed)
    assert got.last.kind == "timeout"
    assert "0.05 seconds" in got.last.message
    await asyncio.wait_for(server.requests[0].closed_early.wait(), 60)


@pytest.mark.parametrize(
    ("begun", "seconds", "english", "chinese"),
    [
        (False, 1, "within 1 second (set by limits.first_byte_timeout)", "未在 1 秒内开始回答"),
        (False, 1.5, "within 1.5 seconds (set by limits.first_byte_timeout)", "未在 1.5 秒内"),
        (True, 1, "more than 1 second (set by limits.stall_timeout)", "停顿超过 1 秒"),
    ],
)
def test_a_timeout_is_reported_with_the_setting_that_limits_it(
    begun: bool, seconds: float, english: str, chinese: str
) -> None:
    message = timed_out("openai", seconds, answer_started=begun).message
    assert f"{english}. Try again." in message
    assert chinese in translator_for("zh").rendered(message)


async def test_an_answer_that_pauses_too_long_is_aborted_and_requested_again(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer("Half", Stall()), answer("Whole."))
    got = await tried(driver, RetryPolicy(retries=1, first_byte=5, stall=0.05))
    retry = next(event for event in got.events if isinstance(event, Retrying))
    assert "paused" in retry.reason
    assert got.text == "HalfWhole."
    await asyncio.wait_for(server.requests[0].closed_early.wait(), 60)


async def test_keepalive_events_extend_the_wait_for_a_provider(
    driver: Driver, server: ModelServer
) -> None:
    signs = [step for _ in range(16) for step in (Raw(b": still there\n\n"), Pause(0.05))]
    server.add(answer(*signs, "At last."))
    got = await tried(driver, RetryPolicy(retries=0, first_byte=0.6))
    assert got.text == "At last."
    assert isinstance(got.last, Finished)


async def test_a_provider_that_only_keeps_the_connection_alive_times_out(
    driver: Driver, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_KEEP_ALIVE_LIMIT", 0.05)
    signs = [step for _ in range(200) for step in (Raw(b": still there\n\n"), Pause(0.01))]
    server.add(answer(*signs, "At last."))
    got = await tried(driver, RetryPolicy(retries=0, first_byte=0.1))
    assert isinstance(got.last, Failed)
    assert got.last.kind == "timeout"


async def test_a_wait_can_be_cancelled(driver: Driver, server: ModelServer) -> None:
    server.add(Status(code=429, headers={"Retry-After": "100"}))
    waiting = asyncio.Event()

    async def read() -> None:
        async for batch in stream_with_retries(driver, ask(), POLICY):
            if isinstance(batch[0], Retrying):
                waiting.set()

    task = asyncio.create_task(read())
    await asyncio.wait_for(waiting.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)


async def test_closing_closes_the_drivers_stream_before_it_returns(
    driver: Driver, server: ModelServer
) -> None:
    made: list[AsyncGeneratorType[Sequence[StreamEvent]]] = []

    class Watched(Driver):
        def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
            stream = driver.stream(request)
            assert isinstance(stream, AsyncGeneratorType)
            made.append(stream)
            return made[-1]

        async def connect(self) -> None:
            pass

        async def aclose(self) -> None:
            pass

    server.add(answer("Half", Stall()))
    stream = stream_with_retries(Watched(), ask(), POLICY)
    await anext(stream)
    await stream.aclose()
    assert made[0].ag_frame is None  # the generator has ended


async def test_a_driver_that_ends_without_a_last_event_is_a_failure() -> None:
    class Silent(Driver):
        async def stream(self, request: ModelRequest) -> AsyncIterator[list[TextDelta]]:
            yield [TextDelta("Half")]

        async def connect(self) -> None:
            pass

        async def aclose(self) -> None:
            pass

    got = await tried(Silent(), RetryPolicy(retries=0))
    assert isinstance(got.last, Failed)
