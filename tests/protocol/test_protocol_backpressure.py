"""A peer that asks much and reads nothing: memory stays bounded, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from protocol.jsonrpc.connection import READ_LIMIT
from protocol.jsonrpc.handlers import MAX_BYTES, MAX_CALLS, Call
from protocol.v1 import methods, types as t
from tests.protocol.connections import LIMIT, PROMPT, over, serving

LIST = b'{"jsonrpc":"2.0","id":%d,"method":"session/list","params":{}}\n'
ANSWER = 10_000  # bytes of each answer


async def big_list(params: t.ListSessionsRequest, call: Call) -> t.ListSessionsResponse:
    return t.ListSessionsResponse(sessions=[], next_cursor="x" * ANSWER)


async def written(theirs: socket.socket, data: bytes) -> int:
    """Write what the other side takes; how many bytes, once it takes no more for a while."""
    theirs.setblocking(False)
    loop, done = asyncio.get_running_loop(), 0
    with theirs.dup() as sock:
        while done < len(data):
            writing = asyncio.create_task(loop.sock_sendall(sock, data[done : done + 4096]))
            finished, _ = await asyncio.wait([writing], timeout=0.3)
            if not finished:
                writing.cancel()
                break
            done += 4096
    return min(done, len(data))


@pytest.mark.covers("T9")
async def test_reading_stops_while_answers_wait_and_continues_with_the_peer() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        agent = over(ours, {"session/list": big_list})
        async with serving(agent):
            count = 20_000
            data = b"".join(LIST % number for number in range(count))
            taken = await written(theirs, data)
            assert taken < len(data)
            assert agent.queued < READ_LIMIT + 2 * MAX_CALLS * ANSWER
            theirs.settimeout(LIMIT)
            lines = 0
            while lines < 2 * MAX_CALLS + READ_LIMIT // ANSWER:  # more than was read at first
                lines += (await asyncio.to_thread(theirs.recv, 1 << 20)).count(b"\n")


@pytest.mark.covers("T9", "T7")
async def test_the_answer_to_our_request_is_read_although_output_waits() -> None:
    ours, theirs = socket.socketpair()
    asking = asyncio.Event()
    asked: list[t.ReadTextFileResponse] = []

    async def prompt(params: t.PromptRequest, call: Call) -> t.PromptResponse:
        read = t.ReadTextFileRequest(session_id="s", path="/a")
        asking.set()
        asked.append(await agent.request(methods.FS_READ_TEXT_FILE, read))
        return t.PromptResponse(stop_reason="end_turn")

    with ours, theirs:
        agent = over(ours, {"session/list": big_list, "session/prompt": prompt})
        async with serving(agent):
            for number in range(READ_LIMIT // ANSWER + 1):
                theirs.sendall(LIST % number)
                await asyncio.sleep(0)
            params = {"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]}
            request = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params}
            theirs.sendall(json.dumps(request).encode() + b"\n")
            await asyncio.wait_for(asking.wait(), LIMIT)
            await asyncio.sleep(0)  # it has its place among what waits
            theirs.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"content":"text"}}\n')
            async with asyncio.timeout(LIMIT):  # without a byte read on this side
                while not asked:
                    await asyncio.sleep(0.01)


@pytest.mark.covers("T9")
async def test_requests_beyond_the_byte_limit_are_refused_until_one_is_answered() -> None:
    ours, theirs = socket.socketpair()
    go_on = asyncio.Event()

    async def prompt(params: t.PromptRequest, call: Call) -> t.PromptResponse:
        await go_on.wait()
        return t.PromptResponse(stop_reason="end_turn")

    with ours, theirs:
        agent = over(ours, {"session/prompt": prompt})
        peer = over(theirs, {})
        async with serving(agent), serving(peer):
            half = t.PromptRequest(
                session_id="s", prompt=[t.TextContent(text="x" * (MAX_BYTES // 5 * 2))]
            )
            first = [
                asyncio.create_task(peer.request(methods.SESSION_PROMPT, half)) for _ in range(2)
            ]
            await asyncio.sleep(0)
            with pytest.raises(Exception, match="bytes of requests are being answered"):
                await peer.request(methods.SESSION_PROMPT, half)
            go_on.set()
            for one in first:
                assert (await one).stop_reason == "end_turn"
            assert (await peer.request(methods.SESSION_PROMPT, half)).stop_reason == "end_turn"
            assert (await peer.request(methods.SESSION_PROMPT, PROMPT)).stop_reason == "end_turn"
