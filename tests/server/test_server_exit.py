"""The ends of a process: in time, with status 0, and with nothing left behind."""

from __future__ import annotations

import ctypes
import fcntl
import signal
import sqlite3
import sys
import termios
from contextlib import closing
from pathlib import Path

import pytest

from tests.server.server_session import DEMO, OPENAI, OpenSession
from tests.server.v2_session import OpenV2, states
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.waiting import until

# It neither minds being told to end nor that its parent is gone.
STUBBORN = "trap '' TERM INT HUP; (trap '' TERM INT HUP; sleep 1000) & echo begun; sleep 1000"


async def end(running: AgentProcess, how: str) -> None:
    """End the agent in one of the ways in which editors do."""
    match how:
        case "end of input":
            await running.close_stdin()
        case name:
            running.oracle.leaving()
            running.process.send_signal(signal.Signals[name])


async def ended_in_order(running: AgentProcess) -> None:
    """Assert that the agent ends by itself, as no failure, before its own time limit."""
    assert await running.wait() == 0
    await running._settle()
    assert b"Traceback" not in running.stderr
    assert b"not everything could be ended" not in running.stderr


END_CAUSES = ["end of input", "SIGTERM", "SIGINT", "SIGHUP"]


@pytest.mark.cold
@pytest.mark.covers("T8")
@pytest.mark.parametrize("how", END_CAUSES)
async def test_a_fresh_agent_ends_at_once(agent: StartAgent, how: str) -> None:
    running = await agent(*DEMO)
    if how != "end of input":
        await running.initialize()  # before that the signal may find Python still starting
    await end(running, how)
    await ended_in_order(running)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the threads")
@pytest.mark.covers("T8")
async def test_a_signal_that_another_thread_receives_ends_an_idle_agent(agent: StartAgent) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    pid = running.process.pid
    tasks = Path(f"/proc/{pid}/task")
    looks: list[str] = []

    def has_slept() -> bool:
        looks.append((tasks / str(pid) / "status").read_text())
        return looks[-30:] == looks[-1:] * 30

    await until(has_slept)  # its switches between threads are counted there
    other = next(int(task.name) for task in tasks.iterdir() if task.name != str(pid))
    running.oracle.leaving()
    assert ctypes.CDLL(None).tgkill(pid, other, signal.SIGTERM) == 0
    await ended_in_order(running)


@pytest.mark.covers("T8")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
async def test_an_idle_session_ends_in_order_and_is_there_the_next_time(
    agent: StartAgent, workspace_repo: Path, how: str
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "hello")
    text = running.text(session)
    await end(running, how)
    await ended_in_order(running)
    restarted = await agent(*DEMO)
    await restarted.initialize()
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await restarted.request("session/load", load)
    assert restarted.text(session) == text


@pytest.mark.covers("T8", "P5")
@pytest.mark.parametrize("how", END_CAUSES)
async def test_a_running_command_is_ended_with_all_that_it_started(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, how: str
) -> None:
    model_server.add(answer("Running it.", Call("shell", {"command": STUBBORN})))
    running, session = await opened()
    running.post_prompt(session, "run")
    await running.expect(
        lambda _: any(
            "begun" in str(update.get("content")) and "trap" not in str(update.get("content"))
            for update in running.updates(session, "tool_call_update")
        )
    )
    await end(running, how)
    await ended_in_order(running)
    await running.stop()  # looks for processes that were left behind

    restarted, _ = await opened()
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await restarted.request("session/load", load)
    assert restarted.text(session).startswith("Running it.")
    assert restarted.updates(session, "tool_call_update")[-1]["status"] == "failed"


@pytest.mark.covers("T8")
async def test_a_stream_cut_off_by_the_end_of_the_agent_is_saved_as_far_as_it_came(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Half of it", Stall()))
    running, session = await opened()
    running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_message_chunk")
    await end(running, "SIGTERM")
    await ended_in_order(running)
    await model_server.requests[0].closed_early.wait()
    restarted, _ = await opened()
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await restarted.request("session/load", load)
    assert restarted.text(session).startswith("Half of it")


@pytest.mark.covers("T8")
async def test_a_prompt_that_runs_when_the_input_ends_is_answered_if_it_can_be(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("begun", Stall()))
    running, session = await opened()
    prompt = running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_message_chunk")
    await running.close_stdin()
    await ended_in_order(running)
    await running._settle()
    answers = [message for message in running.messages if message.get("id") == prompt]
    assert [one.get("result") for one in answers] in ([], [{"stopReason": "cancelled"}])


@pytest.mark.covers("T8", "P3")
async def test_a_question_that_is_open_when_the_input_ends_is_a_turn_that_was_stopped(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(Call("shell", {"command": "touch made"})))
    running, session = await opened(editor=Editor(permission="never"))
    prompt = running.post_prompt(session, "make it")
    await running.expect(lambda message: message.get("method") == "session/request_permission")
    await running.close_stdin()
    await ended_in_order(running)
    await running._settle()
    (answered,) = (message for message in running.messages if message.get("id") == prompt)
    assert answered["result"]["stopReason"] == "cancelled"
    assert running.updates(session, "tool_call_update")[-1]["status"] == "failed"
    assert not (workspace_repo / "made").exists()


@pytest.mark.covers("T8")
async def test_a_second_signal_does_not_disturb_the_end(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": STUBBORN})))
    running, session = await opened()
    running.post_prompt(session, "run")
    await running.expect_update(
        session, "tool_call_update", lambda update: update.get("status") == "in_progress"
    )
    for name in ("SIGINT", "SIGINT", "SIGTERM"):
        await end(running, name)
    await ended_in_order(running)


@pytest.mark.cold
@pytest.mark.covers("T8")
async def test_a_client_that_reads_no_more_ends_the_agent_even_with_its_input_open(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("begun", stall, *["more "] * 200, Stall()))
    running, session = await opened()
    running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_message_chunk")
    running.cut_off = True  # what follows is not read any more, so it cannot be judged
    running.may_read.clear()
    running.pipe(1).close()
    stall.release()
    await ended_in_order(running)


@pytest.mark.covers("T8")
async def test_an_agent_whose_standard_error_is_gone_works_and_ends(
    home: Path, workspace_repo: Path
) -> None:
    async with await AgentProcess.start(
        *DEMO,
        home=home,
        command=("sh", "-c", 'exec "$0" -m acp_agent "$@" 2>&-', sys.executable),
    ) as running:
        await running.initialize()
        session = await running.new_session(workspace_repo)
        assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"
        await running.close_stdin()
        await ended_in_order(running)


@pytest.mark.cold
@pytest.mark.covers("T8")
async def test_a_host_that_vanished_with_all_its_pipes_is_no_failure(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": STUBBORN})))
    running, session = await opened()
    running.post_prompt(session, "run")
    await running.expect_update(
        session, "tool_call_update", lambda update: update.get("status") == "in_progress"
    )
    running.cut_off = True
    for descriptor in (1, 2):
        running.pipe(descriptor).close()
    await running.close_stdin()
    assert await running.wait() == 0


@pytest.mark.covers("T6", "T8", "P3")
@pytest.mark.parametrize("first", ["end of input", "SIGINT"])
async def test_a_signal_while_the_agent_ends_already_hides_no_call_s_end(
    opened: OpenSession, model_server: ModelServer, home: Path, workspace_repo: Path, first: str
) -> None:
    command = "echo $$ > number; exec sleep 300"
    model_server.add(answer(Call("shell", {"command": command})))
    running, session = await opened()
    prompt = running.post_prompt(session, "run")
    number = workspace_repo / "number"
    await until(lambda: number.exists() and number.read_text())
    with closing(sqlite3.connect(home / "acp-agent" / "sessions.db")) as second:
        second.execute("BEGIN IMMEDIATE")  # so that the turn cannot have ended yet
        await end(running, first)
        await until(lambda: not Path(f"/proc/{number.read_text().strip()}").exists())
        await end(running, "SIGTERM")
        second.rollback()
    await ended_in_order(running)
    await running._settle()
    (answered,) = (message for message in running.messages if message.get("id") == prompt)
    assert answered["result"]["stopReason"] == "cancelled"
    assert running.updates(session, "tool_call_update")[-1]["status"] == "failed"


@pytest.mark.covers("T6", "T8")
async def test_a_client_of_version_2_that_still_reads_gets_the_end_of_its_turn(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "echo begun; sleep 300"})))
    client, session = await opened_v2()
    await client.said(client.post_prompt(session, "Go"))
    await client.expect_update(session, "terminal_output_chunk")
    await end(client.wire, "SIGTERM")
    await ended_in_order(client.wire)
    await client.wire._settle()
    assert states(client, session) == ["running", "idle: cancelled"]
    assert [call["status"] for call in client.view(session).calls.values()] == ["cancelled"]


# An agent that has time for what its client sent last, also on a busy machine.
WITHOUT_HURRY = """
from protocol.jsonrpc.connection import Connection
from protocol.transports import stdio
stdio._DRAIN_TIMEOUT = 60.0
Connection.__init__.__kwdefaults__["drain_timeout"] = 60.0
from acp_agent.cli.main import main
main()
"""


@pytest.mark.covers("T8")
async def test_a_prompt_sent_right_before_the_client_died_is_in_the_conversation(
    opened: OpenSession, model_server: ModelServer, home: Path, workspace_repo: Path
) -> None:
    model_server.otherwise = answer("Well.")
    async with await AgentProcess.start(
        *OPENAI,
        home=home,
        environ=model_server.environ(),
        command=(sys.executable, "-c", WITHOUT_HURRY),
    ) as running:
        await running.initialize()
        session = await running.new_session(workspace_repo)
        running.cut_off = True
        running.may_read.clear()
        running.pipe(1).close()
        running.post("session/list", {})  # by whose answer the agent finds out
        running.post_prompt(session, "My last words: " + "x" * 1_000_000)
        await running.close_stdin()
        await ended_in_order(running)
    restarted, _ = await opened()
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await restarted.request("session/load", load)
    (prompt,) = restarted.updates(session, "user_message_chunk")
    assert prompt["content"]["text"].startswith("My last words: ")


@pytest.mark.covers("T3")
async def test_a_host_whose_pipes_do_not_block_is_served(home: Path, workspace_repo: Path) -> None:
    unblock = "import os, sys; os.set_blocking(0, False); os.set_blocking(1, False); "
    run = "os.execv(sys.executable, [sys.executable, '-m', 'acp_agent', *sys.argv[1:]])"
    async with await AgentProcess.start(
        *DEMO, home=home, command=(sys.executable, "-c", unblock + run)
    ) as running:
        await running.send(b" ")  # the first line has only begun
        descriptor = running.pipe(0).get_extra_info("pipe").fileno()
        await until(lambda: not fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)).strip(b"\0"))
        await running.initialize()
        session = await running.new_session(workspace_repo)
        assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"
