"""A client that stops reading: the agent's memory stays small, and nothing is lost."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.server.server_session import OpenSession
from tests.support.agent_process import config_file
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.module_trace import until_idle
from tests.support.process_memory import needs_memory, resident_memory
from tests.support.waiting import until

MEGABYTE = 1024 * 1024


def kernel_may_hold() -> int:
    """Bytes on their way over a local connection that neither side holds in its own memory.

    Linux lets them grow to what these files say; elsewhere they are much less than any flood here.
    """
    files = [Path(f"/proc/sys/net/ipv4/tcp_{kind}mem") for kind in "rw"]
    return sum(int(file.read_text().split()[2]) for file in files if file.exists())


@pytest.mark.covers("T9", "P2")
@needs_memory
async def test_a_client_that_reads_nothing_during_a_long_stream_costs_little_and_gets_it_all(
    opened: OpenSession, model_server: ModelServer, home: Path
) -> None:
    config_file(home, "[limits]\nstall_timeout = 0.3\nmax_retries = 0\n")  # it is no stall
    piece = "0123456789abcdef" * 512  # 8 KiB
    count = (20 * MEGABYTE + kernel_may_hold()) // len(piece)
    model_server.add(
        answer("Begin."), answer(*[f"{n:06d}{piece}" for n in range(count)], "The end.")
    )
    running, session = await opened()
    await running.prompt(session, "warm up")
    await until_idle(running.process.pid)  # saving the imported modules takes memory, too
    before = resident_memory(running.process.pid)
    running.may_read.clear()
    prompt = running.post_prompt(session, "talk")
    await model_server.arrived(2)
    # Once it does not take any more from the provider either, it has what it will ever hold.
    highest, last = before, -1
    async with asyncio.timeout(60):
        while highest != last:
            last = highest
            for _ in range(5):
                await asyncio.sleep(0.05)
                highest = max(highest, resident_memory(running.process.pid))
    assert not model_server.requests[1].answered.is_set()  # the provider has to wait, too
    assert highest - before < 24 * MEGABYTE
    running.may_read.set()
    assert (await running.result(prompt, timeout=60))["stopReason"] == "end_turn"
    text = running.text(session).removeprefix("Begin.")
    assert text == "".join(f"{n:06d}{piece}" for n in range(count)) + "The end."


@pytest.mark.covers("T9", "P7")
async def test_a_client_that_reads_nothing_can_still_cancel(
    opened: OpenSession, model_server: ModelServer
) -> None:
    piece = "0123456789abcdef" * 512
    count = (4 * MEGABYTE + kernel_may_hold()) // len(piece)
    model_server.add(answer(*[piece] * count))
    # Also for a compaction: on a busy machine much of the flood comes before the cancellation.
    model_server.otherwise = answer("Going on.")
    running, session = await opened()
    running.may_read.clear()
    prompt = running.post_prompt(session, "talk")
    await model_server.arrived(1)
    running.cancel(session)
    async with asyncio.timeout(60):
        await model_server.requests[0].closed_early.wait()
    running.may_read.set()
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    assert (await running.prompt(session, "go on"))["stopReason"] == "end_turn"


@pytest.mark.covers("T9", "T6")
async def test_one_session_s_flood_does_not_lose_the_answers_of_another(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    flood = [f"{number} " for number in range(8_000)]
    model_server.otherwise = lambda request: (
        answer(*flood) if "flood" in str(request.json["messages"][1:]) else answer("A word.")
    )
    running, first = await opened()
    second = await running.new_session(workspace_repo)
    request_id = running.post_prompt(first, "flood")
    await model_server.arrived(1)
    assert (await running.prompt(second, "hi"))["stopReason"] == "end_turn"
    assert running.text(second) == "A word."
    assert (await running.result(request_id, timeout=60))["stopReason"] == "end_turn"
    assert running.text(first) == "".join(flood)


@pytest.mark.covers("T8", "T9")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
async def test_a_client_that_reads_nothing_cannot_delay_the_exit(
    opened: OpenSession, model_server: ModelServer, how: str
) -> None:
    model_server.add(answer(*["0123456789abcdef" * 64] * 4000))
    running, session = await opened()
    running.cut_off = True
    running.may_read.clear()
    running.post_prompt(session, "talk")
    await model_server.arrived(1)
    if how == "SIGTERM":
        running.process.send_signal(signal.SIGTERM)
    else:
        await running.close_stdin()
    # `wait` would wait for the pipes, too.
    await until(lambda: running.process.returncode is not None)
    assert running.process.returncode == 0


@pytest.mark.covers("T9")
@needs_memory
@pytest.mark.cold
async def test_memory_of_large_prompts_is_freed_when_their_session_is_closed(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Begin."), answer(stall))
    running, session = await opened()
    await running.prompt(session, "warm up")
    before = resident_memory(running.process.pid)
    turn = running.post_prompt(session, "wait")
    await model_server.arrived(2)
    large = [running.post_prompt(session, "x" * 8_000_000) for _ in range(20)]
    refused = await running.answer(large[-1])
    assert refused["error"]["code"] == -32600
    assert "bytes of requests are being answered" in refused["error"]["message"]
    running.cancel(session)
    assert (await running.result(turn, timeout=60))["stopReason"] == "cancelled"
    await running.request("session/close", {"sessionId": session}, timeout=60)
    await until(lambda: resident_memory(running.process.pid) - before < 48 * MEGABYTE, within=30)
