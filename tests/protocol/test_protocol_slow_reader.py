"""What is queued for a peer that reads slowly."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from protocol.jsonrpc.outbox import HIGH_WATER
from protocol.jsonrpc.surface import Surface
from protocol.v1 import methods, types as t
from tests.protocol.connections import ALL, LIMIT, over, serving, text_in, until, update


async def test_drain_waits_for_a_reader_that_lags_and_no_longer_than_that() -> None:
    ours, theirs = socket.socketpair()
    traced: list[bytes] = []
    with ours, theirs:
        agent = over(ours, {}, trace=lambda direction, line: traced.append(line))
        async with serving(agent):
            await asyncio.wait_for(agent.drain(), LIMIT)  # nothing queued: at once
            while agent.queued <= 2 * HIGH_WATER:
                agent.notify(methods.SESSION_UPDATE, update("x" * 10_000))
                await asyncio.sleep(0)
            waiting = asyncio.create_task(agent.drain())
            done, _ = await asyncio.wait([waiting], timeout=0.05)
            assert not done
            received = b""
            while not waiting.done():
                received += await asyncio.to_thread(theirs.recv, 65536)
            assert agent.queued <= HIGH_WATER
            while agent.queued:
                received += await asyncio.to_thread(theirs.recv, 65536)
            theirs.setblocking(False)
            while len(received) < sum(map(len, traced)):
                received += theirs.recv(65536)
            assert received == b"".join(traced)


async def test_only_notifications_that_still_wait_are_merged_and_never_across_others() -> None:
    ours, theirs = socket.socketpair()

    def merge(method: str, before: Any, after: Any) -> object:
        return update(text_in(before) + text_in(after))

    with ours, theirs:
        agent = over(ours, Surface(ALL, {}, merge=merge))
        async with serving(agent):
            for letter in "abc":  # the reader does not lag: all go out as they are
                agent.notify(methods.SESSION_UPDATE, update(letter))
            agent.notify(methods.SESSION_UPDATE, update("x" * 4_000_000))
            await until(lambda: agent.queued > 0)
            await asyncio.sleep(0)
            for letter in "def":
                agent.notify(methods.SESSION_UPDATE, update(letter))
            agent.notify(
                methods.ELICITATION_COMPLETE, t.CompleteElicitationNotification(elicitation_id="e")
            )
            for letter in "gh":
                agent.notify(methods.SESSION_UPDATE, update(letter))
            theirs.settimeout(LIMIT)
            received = b""
            while received.count(b"\n") < 7:
                received += await asyncio.to_thread(theirs.recv, 1_000_000)
            lines = received.splitlines()
            texts = [line.rpartition(b'"text":"')[2].partition(b'"')[0] for line in lines]
            assert texts[:3] == [b"a", b"b", b"c"]
            assert texts[4] == b"def"
            assert b"elicitation/complete" in lines[5]
            assert texts[6:] == [b"gh"]


async def test_a_notification_that_is_on_its_way_already_is_not_merged_with_the_next() -> None:
    ours, theirs = socket.socketpair()
    traced: list[bytes] = []

    def merge(method: str, before: Any, after: Any) -> object:
        return update(text_in(before) + text_in(after))

    with ours, theirs:
        theirs.settimeout(LIMIT)
        agent = over(
            ours, Surface(ALL, {}, merge=merge), trace=lambda direction, line: traced.append(line)
        )
        async with serving(agent):
            for letter in "abc":  # each far more than a socket holds
                agent.notify(methods.SESSION_UPDATE, update(letter * 4_000_000))
                await asyncio.sleep(0)
            received = b""
            while len(traced) < 2:
                received += await asyncio.to_thread(theirs.recv, 100_000)
            assert agent.queued > 4_000_000
            agent.notify(methods.SESSION_UPDATE, update("d"))
            while received.count(b"\n") < 3:
                received += await asyncio.to_thread(theirs.recv, 1_000_000)
            texts = [line.rpartition(b'"text":"')[2] for line in received.splitlines()]
            assert [text[:1] + text[-6:-5] for text in texts[:2]] == [b"aa", b"bc"]
            assert texts[2].startswith(b"d")
