"""Two connections that talk to each other over real sockets."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec import Raw

from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Call, Handler, Reply, Surface
from protocol.jsonrpc.messages import RpcError
from protocol.transports.stdio import StdioTransport
from protocol.v1 import methods, types as t
from tests.protocol.connections import ALL, LIMIT, PROMPT, over, serving, text_in, until, update

Pair = Callable[..., Any]


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    """A factory: two served connections, of an agent and of a client, with these handlers."""
    async with AsyncExitStack() as stack:

        async def make(
            agent: dict[str, Handler] | Surface, client: dict[str, Handler], **options: Any
        ) -> tuple[Connection, Connection]:
            ours, theirs = socket.socketpair()
            stack.callback(ours.close)
            stack.callback(theirs.close)
            one = await stack.enter_async_context(serving(over(ours, agent, **options)))
            return one, await stack.enter_async_context(serving(over(theirs, client)))

        yield make


async def test_both_sides_ask_and_answer_at_the_same_time(pair: Pair) -> None:
    sides: dict[str, Connection] = {}

    async def prompt(params: t.PromptRequest, call: Call) -> t.PromptResponse:
        request = t.ReadTextFileRequest(session_id=params.session_id, path="/f")
        answer = await sides["agent"].request(methods.FS_READ_TEXT_FILE, request)
        assert answer.content == "text"
        return t.PromptResponse(stop_reason="end_turn")

    async def read(params: t.ReadTextFileRequest, call: Call) -> t.ReadTextFileResponse:
        return t.ReadTextFileResponse(content="text")

    sides["agent"], client = await pair({"session/prompt": prompt}, {"fs/read_text_file": read})
    answers = await asyncio.gather(
        *(client.request(methods.SESSION_PROMPT, PROMPT) for _ in range(20))
    )
    assert [answer.stop_reason for answer in answers] == ["end_turn"] * 20


async def test_notifications_are_handled_in_order_with_the_response_they_precede(
    pair: Pair,
) -> None:
    seen: list[str] = []
    sides: dict[str, Connection] = {}

    async def prompt(params: t.PromptRequest, call: Call) -> Reply:
        for number in range(5):
            sides["agent"].notify(methods.SESSION_UPDATE, update(str(number)))
        return Reply(
            t.PromptResponse(stop_reason="end_turn"),
            then=lambda: sides["agent"].notify(methods.SESSION_UPDATE, update("after")),
        )

    sides["agent"], client = await pair(
        {"session/prompt": prompt}, {"session/update": lambda params: seen.append(text_in(params))}
    )
    await client.request(methods.SESSION_PROMPT, PROMPT)
    assert seen[:5] == ["0", "1", "2", "3", "4"]
    await until(lambda: seen[5:] == ["after"])


async def test_an_asynchronous_notification_handler_runs_and_may_fail(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    async def on_update(params: t.SessionNotification) -> None:
        await asyncio.sleep(0)
        seen.append(text_in(params))
        if seen == ["bad"]:
            raise RuntimeError("broken handler")

    agent, _ = await pair({}, {"session/update": on_update})
    with caplog.at_level(logging.ERROR):
        agent.notify(methods.SESSION_UPDATE, update("bad"))
        agent.notify(methods.SESSION_UPDATE, update("good"))
        await until(lambda: seen == ["bad", "good"] and "broken handler" in caplog.text)


async def test_an_error_keeps_its_code_message_and_data_on_the_way(pair: Pair) -> None:
    async def prompt(params: t.PromptRequest, call: Call) -> object:
        raise RpcError(-32000, "log in\n  first", {"methods": ["a"]})

    _, client = await pair({"session/prompt": prompt}, {})
    with pytest.raises(RpcError) as caught:
        await client.request(methods.SESSION_PROMPT, PROMPT)
    error = caught.value
    assert (error.code, error.message, error.data) == (-32000, "log in first", {"methods": ["a"]})


async def test_an_error_mapping_that_fails_still_leaves_an_answer(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    async def prompt(params: t.PromptRequest, call: Call) -> object:
        raise RuntimeError("first")

    def map_error(error: Exception) -> RpcError:
        raise ValueError("second")

    surface = Surface(ALL, {"session/prompt": prompt}, map_error=map_error)
    _, client = await pair(surface, {})
    with pytest.raises(RpcError, match=r"^internal error, see the log for reference [0-9a-f]{8}$"):
        await client.request(methods.SESSION_PROMPT, PROMPT)
    assert "first" in caplog.text
    assert "second" in caplog.text


async def test_a_result_that_cannot_be_encoded_is_an_internal_error(pair: Pair) -> None:
    async def prompt(params: t.PromptRequest, call: Call) -> object:
        return object()

    _, client = await pair({"session/prompt": prompt}, {})
    with pytest.raises(RpcError) as caught:
        await client.request(methods.SESSION_PROMPT, PROMPT)
    assert caught.value.code == -32603


async def test_an_admission_that_fails_by_mistake_is_answered_too(pair: Pair) -> None:
    def admit(method: str, params: Raw) -> None:
        raise KeyError(method)

    async def prompt(params: t.PromptRequest, call: Call) -> object:
        raise AssertionError("not admitted")

    _, client = await pair({"session/prompt": prompt}, {}, admit=admit)
    with pytest.raises(RpcError) as caught:
        await client.request(methods.SESSION_PROMPT, PROMPT)
    assert caught.value.code == -32603


async def test_cancelling_a_waiting_request_cancels_the_peers_handler(pair: Pair) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def prompt(params: t.PromptRequest, call: Call) -> object:
        begun.set()
        try:
            return await asyncio.Event().wait()
        finally:
            assert call.cancelled
            ended.set()

    _, client = await pair({"session/prompt": prompt}, {})
    waiting = asyncio.create_task(client.request(methods.SESSION_PROMPT, PROMPT))
    await asyncio.wait_for(begun.wait(), LIMIT)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(ended.wait(), LIMIT)


async def test_requests_fail_once_the_peer_is_gone(pair: Pair) -> None:
    begun = asyncio.Event()

    async def prompt(params: t.PromptRequest, call: Call) -> object:
        begun.set()
        return await asyncio.Event().wait()

    _, client = await pair({"session/prompt": prompt}, {}, grace=0.1)
    waiting = asyncio.create_task(client.request(methods.SESSION_PROMPT, PROMPT))
    await asyncio.wait_for(begun.wait(), LIMIT)
    await asyncio.wait_for(client.close(), LIMIT)
    with pytest.raises(ConnectionError, match="session/prompt"):
        await waiting
    with pytest.raises(ConnectionError):
        await client.request(methods.SESSION_PROMPT, PROMPT)
    assert client.closed
    client.notify(methods.SESSION_UPDATE, update("into the void"))
    await asyncio.wait_for(client.drain(), LIMIT)


async def test_a_handler_that_will_not_stop_does_not_keep_the_connection_from_ending() -> None:
    ours, theirs = socket.socketpair()
    begun, release = asyncio.Event(), asyncio.Event()

    async def prompt(params: t.PromptRequest, call: Call) -> object:
        call.on_cancel(lambda: None)  # asked politely, it does nothing
        begun.set()
        try:
            return await asyncio.Event().wait()
        finally:
            release.set()

    with ours, theirs:
        agent = over(ours, {"session/prompt": prompt}, drain_timeout=0.01, grace=0.05)
        task = asyncio.create_task(agent.run())
        line = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s",'
        theirs.sendall(line + b'"prompt":[]}}\n')
        await asyncio.wait_for(begun.wait(), LIMIT)
        theirs.shutdown(socket.SHUT_WR)
        await asyncio.wait_for(task, LIMIT)
        assert release.is_set()
        assert b"-32800" in theirs.recv(4096)


async def test_a_handler_may_close_its_own_connection(pair: Pair) -> None:
    sides: dict[str, Connection] = {}

    async def logout(params: t.LogoutRequest, call: Call) -> t.LogoutResponse:
        await sides["agent"].close()
        return t.LogoutResponse()

    sides["agent"], client = await pair({"logout": logout}, {})
    await asyncio.wait_for(client.request(methods.LOGOUT, t.LogoutRequest()), LIMIT)
    await asyncio.wait_for(sides["agent"].wait_closed(), LIMIT)


async def test_bytes_read_before_the_transport_existed_come_first() -> None:
    read, write = os.pipe()
    transport = StdioTransport(read, write, initial=b"one\ntw")
    os.write(write, b"o\nthree\n")
    got = [await asyncio.wait_for(transport.read_message(), LIMIT) for _ in range(3)]
    assert got == [b"one", b"two", b"three"]
    os.close(write)
    assert await asyncio.wait_for(transport.read_message(), LIMIT) is None
    os.close(read)
