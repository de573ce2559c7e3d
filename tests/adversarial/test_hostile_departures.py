"""A client that does not read, or dies: bounded memory, an end in time, and nothing lost."""

from __future__ import annotations

import asyncio
import fcntl
from pathlib import Path

import pytest

from tests.support.agent_process import StartAgent
from tests.support.hostile import (
    ENDLESS_WINDOW,
    OpenSession,
    assert_goes_on,
    assert_replays,
)
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.waiting import until

pytestmark = pytest.mark.cold  # the end of a process and its memory are those of the real command

F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", None)  # Linux only


async def test_a_client_that_neither_reads_nor_stays_lets_the_agent_end_in_time(
    agent: StartAgent, opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened(config=ENDLESS_WINDOW)
    model_server.add(answer(*["word " * 200] * 3_000, Stall()))
    running.post_prompt(session, "go")
    await running.expect_update(session, "agent_message_chunk")
    running.may_read.clear()
    await running.close_stdin()
    running.cut_off = True
    # `wait` would read on.
    await until(lambda: running.process.returncode is not None)
    assert running.process.returncode == 0
    running.may_read.set()
    await running.stop()
    assert b"not everything could be ended" not in running.stderr
    await assert_replays(agent, model_server, session, workspace_repo, running)


@pytest.mark.parametrize("moment", ["streaming", "a command runs", "idle"])
async def test_a_client_that_dies_takes_the_agent_and_its_commands_with_it_and_loses_nothing(
    agent: StartAgent,
    opened: OpenSession,
    model_server: ModelServer,
    workspace_repo: Path,
    moment: str,
) -> None:
    running, session = await opened()
    if moment == "a command runs":
        model_server.add(answer("Wait. ", Call("shell", {"command": "sleep 300"})))
        running.post_prompt(session, "go")
        await running.expect_update(
            session, "tool_call_update", lambda update: update.get("status") == "in_progress"
        )
    elif moment == "streaming":
        model_server.add(answer("begun ", *["word "] * 50, Stall()))
        running.post_prompt(session, "go")
        await running.expect_update(session, "agent_message_chunk")
    else:
        await assert_goes_on(running, session, model_server)
    running.cut_off = True
    # What the kernel does when a process dies: all of its ends of pipes are closed at once.
    for descriptor in (0, 1, 2):
        running.pipe(descriptor).close()
    assert await running.wait() == 0
    assert running.left_behind() == {}
    await assert_replays(agent, model_server, session, workspace_repo, running)


async def test_a_client_that_only_stops_listening_ends_the_agent_when_it_next_speaks(
    agent: StartAgent, opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened()
    stall = Stall()
    model_server.add(answer("begun ", stall, *["more "] * 100, Stall()))
    running.post_prompt(session, "go")
    await running.expect_update(session, "agent_message_chunk")
    running.cut_off = True
    running.pipe(1).close()
    stall.release()  # stdin stays open: only writing tells that nobody reads any more
    assert await running.wait() == 0
    await assert_replays(agent, model_server, session, workspace_repo, running)


@pytest.mark.skipif(F_SETPIPE_SZ is None, reason="the system cannot shorten a pipe")
async def test_an_unread_stderr_stops_nothing(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    (workspace_repo / "AGENTS.md").mkdir()  # each session's first prompt warns of it
    agent, session = await opened()
    pipe = agent.pipe(2)
    assert isinstance(pipe, asyncio.ReadTransport)
    assert F_SETPIPE_SZ is not None
    fcntl.fcntl(pipe.get_extra_info("pipe"), F_SETPIPE_SZ, 4096)
    await assert_goes_on(agent, session, model_server)
    while b"AGENTS.md" not in agent.stderr:
        await asyncio.sleep(0.01)
    pipe.pause_reading()
    for _ in range(4096 // len(agent.stderr) + 5):
        session = await agent.new_session(workspace_repo)
        await assert_goes_on(agent, session, model_server)
    pipe.resume_reading()
