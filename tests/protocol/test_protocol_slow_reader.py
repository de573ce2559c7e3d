"""What is queued for a peer that reads slowly."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise
from typing import Any

import pytest

from protocol.jsonrpc.handlers import Surface
from protocol.jsonrpc.outgoing import HIGH_WATER, PAUSE
from protocol.v1 import methods, types as t
from tests.protocol.connections import ALL, LIMIT, over, serving, text_in, until, update

READ = t.ReadTextFileRequest(session_id="s", path="/a")


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


def merge(method: str, before: Any, after: Any) -> object | None:
    text = text_in(before) + text_in(after)
    return update(text) if len(text) < 1_000 else None


def texts_of(lines: list[bytes]) -> list[bytes]:
    return [line.rpartition(b'"text":"')[2].partition(b'"')[0] for line in lines]


async def test_only_notifications_that_still_wait_are_merged_and_never_across_others() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        agent = over(ours, Surface(ALL, {}, merge=merge))
        async with serving(agent):
            for letter in "abc":  # the first goes out at once
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
            while received.count(b"\n") < 6:
                received += await asyncio.to_thread(theirs.recv, 1_000_000)
            lines = received.splitlines()
            texts = texts_of(lines)
            assert texts[:2] == [b"a", b"bc"]
            assert texts[3] == b"def"
            assert b"elicitation/complete" in lines[4]
            assert texts[5:] == [b"gh"]


async def test_a_stream_that_comes_at_once_is_sent_in_pieces_of_some_milliseconds() -> None:
    ours, theirs = socket.socketpair()
    sent: list[tuple[float, bytes]] = []
    loop = asyncio.get_running_loop()
    with ours, theirs:
        agent = over(
            ours,
            Surface(ALL, {}, merge=merge),
            trace=lambda direction, line: sent.append((loop.time(), line)),
        )
        async with serving(agent):
            began = loop.time()
            for number in range(100):
                agent.notify(methods.SESSION_UPDATE, update("w"))
                if number == 0:
                    assert len(sent) == 1  # the first is not held back
                await asyncio.sleep(0)
            took = loop.time() - began
            await until(lambda: sum(map(len, texts_of([line for _, line in sent]))) == 100)
        assert len(sent) <= 3 + took / PAUSE
        assert all(later - one >= PAUSE for (one, _), (later, _) in pairwise(sent))


@pytest.mark.covers("T6")
async def test_joined_messages_are_sent_before_any_other_and_at_once() -> None:
    ours, theirs = socket.socketpair()
    sent: list[bytes] = []
    with ours, theirs:
        agent = over(
            ours, Surface(ALL, {}, merge=merge), trace=lambda direction, line: sent.append(line)
        )
        async with serving(agent):
            for letter in "abc":
                agent.notify(methods.SESSION_UPDATE, update(letter))
            asked = asyncio.create_task(agent.request(methods.FS_READ_TEXT_FILE, READ))
            await asyncio.sleep(0)
            assert texts_of(sent[:2]) == [b"a", b"bc"]
            assert b"fs/read_text_file" in sent[2]
            asked.cancel()


async def test_a_notification_that_is_on_its_way_already_is_not_merged_with_the_next() -> None:
    ours, theirs = socket.socketpair()
    traced: list[bytes] = []

    def join(method: str, before: Any, after: Any) -> object:
        return update(text_in(before) + text_in(after))

    with ours, theirs:
        theirs.settimeout(LIMIT)
        agent = over(
            ours, Surface(ALL, {}, merge=join), trace=lambda direction, line: traced.append(line)
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
