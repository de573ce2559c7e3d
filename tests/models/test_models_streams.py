"""Every driver against a real HTTP server: what is the same for each API."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping

import pytest

from acp_agent.events import Usage
from acp_agent.models import exchange
from acp_agent.models.base import (
    RESERVED_OUTPUT,
    CallStarted,
    Driver,
    Failed,
    Finished,
    StreamEvent,
    TextDelta,
)
from acp_agent.models.exchange import Exchanges
from acp_agent.models.http.proxied import HttpxBody
from acp_agent.models.providers import Provider
from tests.support.model_asking import KEY, ask, driver_for, gather
from tests.support.model_server import (
    Call,
    CallPiece,
    CallStart,
    Cut,
    Drop,
    ModelServer,
    Raw,
    Stall,
    Status,
    Thought,
    answer,
)

APIS = ("openai", "openai_responses", "anthropic", "gemini", "bedrock", "vertex", "azure")
# Gemini's calls come whole, their arguments as part of the event's JSON.
IN_PIECES = tuple(api for api in APIS if api != "gemini")


def sent_by(*apis: str) -> pytest.MarkDecorator:
    """With the driver of each of these APIs alone."""
    return pytest.mark.parametrize("driver", apis, indirect=True)


@pytest.fixture(params=APIS)
async def driver(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[Driver]:
    made = driver_for(request.param, server)
    yield made
    await made.aclose()


async def failure(driver: Driver) -> Failed:
    got = await gather(driver.stream(ask()))
    assert isinstance(got.last, Failed), got.events
    return got.last


async def test_text_reasoning_calls_and_usage_arrive_in_their_order(
    driver: Driver, server: ModelServer
) -> None:
    usage = Usage(input=1200, output=34, cache_read=1000)
    call = Call("read", {"path": "a.py"}, pieces=4)
    server.add(
        answer(Thought("Let me ", ""), Thought("see.", "sig"), "I ", "read.", call, usage=usage)
    )
    got = await gather(driver.stream(ask()))
    assert (got.thought, got.text) == ("Let me see.", "I read.")
    assert got.calls == [("read", '{"path": "a.py"}')]
    assert got.pieces == {0: '{"path": "a.py"}'}
    assert got.finished == Finished(stop="tool_calls", usage=usage)


async def test_characters_that_are_split_between_reads_come_whole(
    driver: Driver, server: ModelServer
) -> None:
    text = "Größe: 你好 😀"
    server.add(answer(text, Call("say", {"text": text}), write_size=1))
    got = await gather(driver.stream(ask()))
    assert got.text == text
    assert got.calls == [("say", f'{{"text": "{text}"}}')]


async def test_interleaved_calls_are_distinguished(driver: Driver, server: ModelServer) -> None:
    server.add(
        answer(
            CallStart(0, "read"),
            CallStart(1, "list"),
            CallPiece(1, '{"path'),
            CallPiece(0, '{"path": '),
            CallPiece(1, '": "b"}'),
            CallPiece(0, '"a"}'),
        )
    )
    got = await gather(driver.stream(ask()))
    assert got.calls == [("read", '{"path": "a"}'), ("list", '{"path": "b"}')]
    assert [e.name for e in got.events if isinstance(e, CallStarted)] == ["read", "list"]


async def test_a_call_without_arguments_has_an_empty_object(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer(Call("list")))
    assert (await gather(driver.stream(ask()))).calls == [("list", "{}")]


@sent_by(*IN_PIECES)
async def test_a_call_cut_off_by_the_token_limit_is_not_complete(
    driver: Driver, server: ModelServer, request: pytest.FixtureRequest
) -> None:
    stops = {"openai": "length", "openai_responses": "max_output_tokens"}
    stop = stops.get(request.node.callspec.params["driver"], "max_tokens")
    server.add(answer(Call("read", {"path": "a"}), Call("write", '{"path": "b", "te'), stop=stop))
    got = await gather(driver.stream(ask()))
    assert got.calls == [("read", '{"path": "a"}')]
    assert got.finished.stop == "max_tokens"


@sent_by(*IN_PIECES)
async def test_arguments_that_are_no_json_are_passed_on_unchanged(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer(Call("read", '{"path": unquoted')))
    assert (await gather(driver.stream(ask()))).calls == [("read", '{"path": unquoted')]


@pytest.mark.parametrize(
    ("code", "kind", "word"),
    [
        (400, "bad_request", "refused the request"),
        (401, "auth", "acp-agent login"),
        (402, "quota", "credit"),
        (404, "not_found", "scripted-model"),
        (408, "timeout", "in time"),
        (429, "rate_limit", "no more requests"),
        (500, "server", "failed"),
        (503, "overloaded", "overloaded"),
        (529, "overloaded", "overloaded"),
    ],
)
async def test_the_error_for_a_status_is_one_line_with_a_remedy(
    driver: Driver, server: ModelServer, code: int, kind: str, word: str
) -> None:
    server.add(Status(code=code, message=f"It is about\nyour key {KEY}"))
    failed = await failure(driver)
    assert (failed.kind, failed.status) == (kind, code)
    assert word in failed.message
    assert str(code) in failed.message
    assert "\n" not in failed.message
    assert KEY not in failed.message


async def test_a_too_long_history_has_its_own_failure(driver: Driver, server: ModelServer) -> None:
    server.add(Status(code=400, message="prompt is too long: 210000 tokens > 200000 maximum"))
    assert (await failure(driver)).kind == "overflow"


async def test_retry_after_is_read_in_seconds_and_as_a_date(
    driver: Driver, server: ModelServer
) -> None:
    server.add(Status(code=429, headers={"Retry-After": "7"}))
    assert (await failure(driver)).retry_after == 7
    then = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 90))
    server.add(Status(code=429, headers={"Retry-After": then}))
    waits = (await failure(driver)).retry_after
    assert waits is not None
    assert 80 < waits <= 90


@sent_by("openai", "openai_responses", "anthropic", "vertex", "azure")
@pytest.mark.parametrize("code", [400, 200])
async def test_a_request_refused_for_its_content_ends_in_a_refusal(
    driver: Driver, server: ModelServer, code: int
) -> None:
    server.add(Status(code=code, kind="content_filter", message="It hurts our policy"))
    got = await gather(driver.stream(ask()))
    assert "It hurts our policy" in got.finished.why
    assert got.finished.stop == "refusal"


async def test_an_error_page_is_not_shown_to_the_user(driver: Driver, server: ModelServer) -> None:
    server.add(Status(code=502, body=b"<html><body>Bad Gateway</body></html>"))
    failed = await failure(driver)
    assert failed.kind == "server"
    assert "<" not in failed.message


async def test_an_answer_cut_in_mid_event_fails_after_the_received_events(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer("begun", Cut(within=b'data: {"type": "content_bl')))
    got = await gather(driver.stream(ask()))
    assert got.text == "begun"
    assert isinstance(got.last, Failed)
    assert got.last.kind == "connection"


async def test_an_answer_that_just_stops_does_not_count_as_complete(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer("begun", ended=False))
    got = await gather(driver.stream(ask()))
    assert isinstance(got.last, Failed)
    assert got.last.kind == "connection"


# What says how an answer ended, where the API has something more to say after it.
LAST_WORDS = {
    "openai": b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n',
    "anthropic": b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n',
    "gemini": b'data: {"candidates": [{"finishReason": "STOP"}]}\n\n',
}


@pytest.mark.parametrize(
    "after", [Stall(), Cut(), Cut(within=b"data: {")], ids=["silent", "closed", "half"]
)
@pytest.mark.parametrize("driver", LAST_WORDS, indirect=True)
async def test_a_complete_answer_without_an_end_is_not_requested_again(
    driver: Driver,
    server: ModelServer,
    after: Stall | Cut,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "_END_MARK_TIMEOUT", 0.05)
    last = LAST_WORDS[request.node.callspec.params["driver"]]
    server.add(answer("whole", Raw(last), after, ended=False))
    async with asyncio.timeout(60):
        got = await gather(driver.stream(ask()))
    assert (got.text, type(got.last)) == ("whole", Finished)


async def test_a_server_that_hangs_up_is_a_connection_error(
    driver: Driver, server: ModelServer
) -> None:
    server.add(Drop())
    assert (await failure(driver)).kind == "connection"


async def test_no_server_at_all_is_a_connection_error_that_names_the_address(
    driver: Driver, server: ModelServer
) -> None:
    await server.stop()
    failed = await failure(driver)
    assert failed.kind == "connection"
    assert f"127.0.0.1:{server.port}" in failed.message


async def test_an_event_that_is_no_json_is_an_error_after_the_earlier_events(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer("begun", Raw(b"data: {nonsense\n\n"), "more"))
    got = await gather(driver.stream(ask()))
    assert got.text == "begun"
    assert isinstance(got.last, Failed)
    assert got.last.kind == "malformed"


async def test_an_error_inside_the_stream_ends_it(driver: Driver, server: ModelServer) -> None:
    told = b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    server.add(answer("begun", Raw(told), "never read"))
    got = await gather(driver.stream(ask()))
    assert got.text == "begun"
    assert isinstance(got.last, Failed)
    assert got.last.kind == "overloaded"


async def test_an_error_with_a_success_status_is_reported_as_an_error(
    driver: Driver, server: ModelServer
) -> None:
    message = "No money left: insufficient balance"
    server.add(Status(code=200, kind="billing_error", message=message))
    failed = await failure(driver)
    assert failed.kind == "quota"
    assert "No money left" in failed.message


async def test_a_page_in_place_of_a_stream_is_malformed(
    driver: Driver, server: ModelServer
) -> None:
    server.add(Status(code=200, body=b"<html>Log in to the hotel's network</html>"))
    failed = await failure(driver)
    assert failed.kind == "malformed"


async def test_closing_the_stream_closes_the_connection_at_once(
    driver: Driver, server: ModelServer
) -> None:
    stall = Stall()
    server.add(answer("begun", stall))
    stream = driver.stream(ask())
    assert (await anext(stream))[0] == TextDelta("begun")
    await stream.aclose()  # type: ignore[attr-defined] # drivers stream with generators
    async with asyncio.timeout(60):
        await server.requests[0].closed_early.wait()


async def test_a_cancelled_task_closes_the_connection_before_any_byte_has_come(
    driver: Driver, server: ModelServer
) -> None:
    stall = Stall()
    server.otherwise = lambda _: answer(stall)
    task = asyncio.create_task(gather(driver.stream(ask())))
    await server.arrived(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60):
        await server.requests[0].closed_early.wait()


async def test_a_fast_stream_comes_in_few_batches(driver: Driver, server: ModelServer) -> None:
    server.add(answer(*["word "] * 2000))
    batches = [batch async for batch in driver.stream(ask())]
    assert sum(isinstance(event, TextDelta) for batch in batches for event in batch) == 2000
    assert len(batches) < 500


async def test_a_slow_reader_limits_what_is_read_ahead() -> None:
    given = 0

    class Endless:
        headers: Mapping[str, str] = {}

        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            nonlocal given
            while True:
                given += 100_000
                yield bytes(100_000)

        async def aclose(self) -> None:
            pass

    body = HttpxBody(Endless())  # type: ignore[arg-type] # as much of a response as is used
    await body.read()
    for _ in range(50):
        await asyncio.sleep(0)
    assert given < 3_000_000
    await body.close()


async def test_a_cancellation_while_an_answer_is_closed_has_an_effect() -> None:
    reading, ending, let_go, closed = (asyncio.Event() for _ in range(4))

    class SlowToEnd:
        headers: Mapping[str, str] = {}

        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            reading.set()
            try:
                await asyncio.Event().wait()
                yield b""
            finally:
                ending.set()
                await let_go.wait()

        async def aclose(self) -> None:
            closed.set()

    body = HttpxBody(SlowToEnd())  # type: ignore[arg-type] # as much of a response as is used
    await reading.wait()
    closing = asyncio.create_task(body.close())
    await ending.wait()
    closing.cancel()
    let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert closed.is_set()


async def test_closing_a_driver_stops_reading_what_follows_an_answer() -> None:
    closed = asyncio.Event()

    class Lingering:
        headers: Mapping[str, str] = {}

        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            yield b"data: the end\n\n"
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            closed.set()

    class OneEvent:
        answered = ended = False

        def feed(self, data: bytes, events: list[StreamEvent]) -> None:
            self.answered = self.ended = True

        def end(self) -> list[StreamEvent]:
            return [Finished(stop="end_turn")]

    async def send() -> HttpxBody:
        return HttpxBody(Lingering())  # type: ignore[arg-type] # as much of a response as is used

    exchanges = Exchanges(Provider(id="any", name="Any", api="openai", base_url=""))
    async for _ in exchanges.stream(send, OneEvent(), model="any"):  # type: ignore[arg-type] # likewise
        pass
    await exchanges.aclose()
    assert closed.is_set()


async def test_a_slow_stream_comes_piece_by_piece(driver: Driver, server: ModelServer) -> None:
    stalls = [Stall(), Stall()]
    server.add(answer("one", stalls[0], "two", stalls[1], "three"))
    texts = []
    async for batch in driver.stream(ask()):
        said = "".join(event.text for event in batch if isinstance(event, TextDelta))
        if said:
            texts.append(said)
            if len(texts) <= 2:
                stalls[len(texts) - 1].release()
    assert texts == ["one", "two", "three"]


async def test_an_answer_that_ended_while_its_reader_was_busy_comes_whole(
    driver: Driver, server: ModelServer
) -> None:
    stall = Stall()
    server.add(answer("one", stall, "two"))
    batches = aiter(driver.stream(ask()))
    events = list(await anext(batches))
    stall.release()
    await server.requests[0].answered.wait()
    for _ in range(50):  # the reader's work, while the rest is read off the socket
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        async for batch in batches:
            events.extend(batch)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "onetwo"
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("late_end", [0, 0.02])
async def test_the_next_request_uses_the_same_connection(
    driver: Driver, server: ModelServer, late_end: float
) -> None:
    ports = set()
    for _ in range(3):
        server.add(answer("Hello", late_end=late_end))
        await gather(driver.stream(ask()))
        request = server.requests[-1]
        closing = asyncio.create_task(request.closed_early.wait())
        answered = asyncio.create_task(request.answered.wait())
        await asyncio.wait({closing, answered}, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert answered.done()
        closing.cancel()
        ports.add(server.requests[-1].client_port)
    assert len(ports) == 1


async def test_closing_the_driver_ends_everything(server: ModelServer, driver: Driver) -> None:
    server.add(answer("Hello"))
    await gather(driver.stream(ask()))
    await driver.aclose()
    assert (await gather(driver.stream(ask()))).last.__class__ is Failed


async def test_an_answer_limit_that_the_provider_names_is_used_afterwards(
    server: ModelServer,
) -> None:
    refusal = "max_tokens: 32000 > 8192, which is the maximum allowed for claude-3-5-20241022"
    server.add(Status(code=400, message=refusal), answer("One."), answer("Two."))
    driver = driver_for("anthropic", server)
    unknown = ask(model_max_output=RESERVED_OUTPUT, model_limit_known=False)
    texts = [(await gather(driver.stream(unknown))).text for _ in range(2)]
    await driver.aclose()
    assert texts == ["One.", "Two."]
    assert [request.json["max_tokens"] for request in server.requests] == [32_000, 8_192, 8_192]
