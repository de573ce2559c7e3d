"""What a connection still hears and says at its end, and in which order."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Call
from protocol.transports.stdio import StdioTransport
from protocol.v1 import methods, types as t
from tests.protocol.connections import LIMIT, over, until, update

ASK = (
    b'{"jsonrpc":"2.0","id":1,"method":"session/prompt",'
    b'"params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}\n'
)


class Agent:
    """A connection that answers prompts by `prompt`, and what its peer reads of it."""

    def __init__(self, ours: socket.socket, theirs: socket.socket) -> None:
        self._ours = ours
        self.theirs = theirs
        self.begun = asyncio.Event()
        self.connection: Connection

    def serve(self, prompt: Callable[[Call], Any], **options: Any) -> asyncio.Task[None]:
        """Run, and hand in a prompt."""

        async def answer(params: t.PromptRequest, call: Call) -> t.PromptResponse:
            self.begun.set()
            return t.PromptResponse(stop_reason=await prompt(call))

        self.connection = over(self._ours, {"session/prompt": answer}, **options)
        self.theirs.sendall(ASK)
        return asyncio.create_task(self.connection.run())

    def tell(self, text: str) -> None:
        """Send an update."""
        self.connection.notify(methods.SESSION_UPDATE, update(text))

    async def told(self, run: asyncio.Task[None]) -> list[str]:
        """What came until the end: the texts of updates, `answer` or `error`."""
        await asyncio.wait_for(run, LIMIT)
        await asyncio.sleep(0)  # what would still be written is written in this pass
        return [_gist(json.loads(line)) for line in self.theirs.recv(1 << 16).splitlines()]


def _gist(message: dict[str, Any]) -> str:
    if "method" in message:
        return str(message["params"]["update"]["content"]["text"])
    assert message["id"] == 1
    return "error" if "error" in message else "answer"


@contextmanager
def between() -> Iterator[Agent]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Agent(ours, theirs)


@pytest.mark.covers("T8")
async def test_messages_of_a_peer_before_its_end_are_read() -> None:
    incoming, theirs = os.pipe()
    peer, outgoing = os.pipe()
    transport = StdioTransport(incoming, outgoing)
    os.close(peer)
    os.write(theirs, b"one\ntwo\nthr")
    transport.write(b"into the void\n")
    await until(lambda: transport.disconnected)
    os.write(theirs, b"ee\n")
    os.close(theirs)
    got = [await asyncio.wait_for(transport.read_message(), LIMIT) for _ in range(4)]
    assert got == [b"one", b"two", b"three", None]
    os.close(incoming)
    os.close(outgoing)


@pytest.mark.covers("T6")
async def test_nothing_follows_the_answer_of_a_cancelled_request() -> None:
    with between() as agent:

        async def work(call: Call) -> str:
            call.on_cancel(lambda: agent.tell("ending"))
            while True:  # what works for it ends later than it
                try:
                    await asyncio.Event().wait()
                finally:
                    asyncio.get_running_loop().call_soon(agent.tell, "late")

        run = agent.serve(work, drain_timeout=0.0, grace=0.0)
        await agent.begun.wait()
        agent.connection.stop()
        assert await agent.told(run) == ["ending", "error"]


@pytest.mark.covers("T6", "T8")
async def test_requests_that_end_on_shutdown_are_still_answered() -> None:
    with between() as agent:
        ended = asyncio.Event()

        async def work(call: Call) -> str:
            call.on_cancel(lambda: None)
            await ended.wait()
            return "cancelled"

        async def on_shutdown() -> None:
            agent.tell("the last")
            ended.set()

        run = agent.serve(work, drain_timeout=0.0, grace=0.0, on_shutdown=on_shutdown)
        await agent.begun.wait()
        agent.connection.stop()
        agent.connection.stop()  # once more changes nothing
        assert await agent.told(run) == ["the last", "answer"]


@pytest.mark.covers("T2", "T8")
async def test_a_request_right_before_the_end_is_answered() -> None:
    with between() as agent:

        async def work(call: Call) -> str:
            await asyncio.Event().wait()
            return "end_turn"

        run = agent.serve(work, admit=lambda *_: agent.connection.stop(), drain_timeout=0.0)
        assert await agent.told(run) == ["error"]
