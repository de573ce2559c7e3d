"""Commands that go on behind their calls, as a client of version 1 and the model see them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.server.server_session import OPENAI, OpenSession, calls_by_id, messages
from tests.server.v2_session import OpenV2, connect
from tests.support.agent_process import StartAgent
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer
from tests.support.waiting import until
from tests.support.wire_client import content_text

looks_for_the_agent = pytest.mark.cold  # its own process has the mark that is looked for, too

WAITS = "echo begun; while [ ! -e done ]; do sleep 0.05; done; echo ended"


def in_background(command: str) -> Call:
    return Call("shell", {"command": command, "background": True})


def background_call(action: str, **more: object) -> Call:
    return Call("background", {"action": action, **more})


def result(server: ModelServer) -> str:
    """The result of the last call that the model was told of."""
    return str(
        [message for message in messages(server) if message["role"] == "tool"][-1]["content"]
    )


async def test_a_command_continues_behind_its_call_into_later_turns(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened()
    model_server.add(
        answer(in_background(WAITS)),
        answer(background_call("wait", id="1", until="beg*n", seconds=20)),
        answer("It runs."),
    )
    await running.prompt(session, "start it")
    assert result(model_server).startswith("begun\n[running for ")
    (workspace_repo / "done").touch()
    model_server.add(answer(background_call("wait", id="1", seconds=20)), answer("It ended."))
    await running.prompt(session, "and now?")
    assert "ended\n[ended after " in result(model_server)
    assert "exit code 0" in result(model_server)
    # The call that started it ended when it returned, and nothing was added to it after that.
    first, *_ = calls_by_id(running.updates(session)).values()
    assert [update.get("status") for update in first][-1] == "completed"


async def test_the_next_request_names_the_commands_that_ended_meanwhile(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened(editor=Editor(offers=frozenset({"notices"})))
    model_server.add(answer(in_background(WAITS + "; exit 3")), answer("It runs."))
    await running.prompt(session, "start it")
    (workspace_repo / "done").touch()
    notice = await running.expect_update(session, "notice")
    assert "ended with exit code 3" in notice["title"]
    model_server.add(answer("I see."))
    await running.prompt(session, "go on")
    request_text = json.dumps(messages(model_server)[-1])
    assert "The background command 1, `" in request_text
    assert "ended with exit code 3" in request_text
    # It is said once, and what was sent before stays as it was.
    model_server.add(answer("Yes."))
    await running.prompt(session, "well?")
    before, after = messages(model_server, -2), messages(model_server)
    assert after[: len(before)] == before
    assert "background" not in json.dumps(after[-1])


async def test_commands_that_ended_during_a_turn_are_reported_with_its_results(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened()
    await running.prompt(session, "/mode full")
    ends = in_background("true")
    waits = Call("shell", {"command": "sleep 0.5"})
    model_server.add(answer(ends), answer(waits), answer("I see."))
    await running.prompt(session, "go")
    assert "ended with exit code 0" in json.dumps(messages(model_server)[-1])


async def test_the_user_is_asked_about_a_background_command_as_about_any_other(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened(editor=Editor(permission="reject_once"))
    model_server.add(answer(in_background("touch ran")), answer("Well."))
    await running.prompt(session, "start it")
    assert "refused" in result(model_server)
    assert not (workspace_repo / "ran").exists()


@looks_for_the_agent
async def test_closing_the_session_ends_its_background_commands(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(answer(in_background("trap '' TERM; sleep 1000")), answer("It runs."))
    await running.prompt(session, "start it")
    await running.request("session/close", {"sessionId": session})
    assert running.left_behind().keys() == {running.process.pid}


async def test_jobs_lists_running_commands_without_asking_the_model(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    await running.prompt(session, "/jobs")
    assert "no background commands" in running.text(session)
    model_server.add(answer(in_background("sleep 1000")), answer("It runs."))
    await running.prompt(session, "start it")
    request_count = len(model_server.requests)
    await running.prompt(session, "/jobs")
    assert "1: `sleep 1000`, running" in running.text(session)
    assert len(model_server.requests) == request_count


async def test_jobs_shows_a_long_command_in_one_line_that_no_character_of_it_breaks(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    long = "echo `date`\n" + "# padding\n" * 100 + "sleep 1000"
    model_server.add(answer(in_background(long)), answer("It runs."))
    await running.prompt(session, "start it")
    await running.prompt(session, "/jobs")
    text = running.text(session).split("It runs.")[1]
    assert text.startswith("- 1: ``echo `date`")
    assert "``, running for" in text
    assert len(text) < 200


@pytest.mark.covers("P5", "P8")
async def test_version_2_has_a_live_terminal_and_lists_it_with_every_state(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    client, session = await opened_v2()
    model_server.add(answer(in_background(WAITS)), answer("It runs."))
    assert (await client.prompt(session, "start it"))["stopReason"] == "end_turn"
    view = client.view(session)
    ((name, terminal),) = view.terminals.items()
    listed = [{"type": "terminal", "terminalId": name}]
    assert view.states[0]["background"] == []
    assert view.states[-1]["background"] == listed
    assert terminal.exit_status is None
    assert view.calls[name]["status"] == "completed"
    (workspace_repo / "done").touch()
    view = await client.expect_view(session, lambda view: view.states[-1]["background"] == [])
    assert view.terminals[name].output == b"begun\r\nended\r\n"
    assert view.terminals[name].exit_status == {"exitCode": 0}
    assert view.states[-1]["state"] == "idle"
    assert "stopReason" not in view.states[-1]


@pytest.mark.covers("P7")
async def test_a_background_command_is_stopped_by_its_terminal_while_nothing_else_runs(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    model_server.add(answer(in_background("sleep 1000")), answer("It runs."))
    await client.prompt(session, "start it")
    (name,) = client.view(session).terminals
    await client.cancel_terminal(session, name)
    view = await client.expect_view(session, lambda view: view.states[-1]["background"] == [])
    assert view.terminals[name].exit_status == {"signal": "SIGTERM"}
    model_server.add(answer("I see."))
    await client.prompt(session, "go on")
    assert "ended by SIGTERM (the user stopped it)" in json.dumps(messages(model_server)[-1])


@pytest.mark.covers("P7")
async def test_cancelling_the_session_leaves_background_commands_running(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    client, session = await opened_v2()
    model_server.add(
        answer(in_background(WAITS)), answer(background_call("wait", id="1", seconds=100))
    )
    message = await client.said(client.post_prompt(session, "start it"))
    await client.expect_view(
        session, lambda view: sum(c["status"] == "in_progress" for c in view.calls.values()) == 1
        and len(view.calls) == 2,
    )  # fmt: skip
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    (terminal,) = client.view(session).terminals.values()
    assert terminal.exit_status is None
    (workspace_repo / "done").touch()
    view = await client.expect_view(session, lambda view: view.states[-1]["background"] == [])
    assert next(iter(view.terminals.values())).exit_status == {"exitCode": 0}


@looks_for_the_agent
@pytest.mark.covers("S4")
async def test_after_a_crash_the_command_is_reported_as_lost_and_nothing_of_it_runs(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    first = await agent(
        *OPENAI, editor=Editor(permission="allow_once"), environ=model_server.environ("openai")
    )
    await first.initialize()
    session = await first.new_session(workspace_repo)
    stubborn = "trap '' TERM; (setsid sleep 1000 &) ; sleep 1000 & echo begun; wait"
    model_server.add(
        answer(in_background(stubborn)),
        answer(background_call("wait", id="1", until="begun", seconds=20)),
        answer("It runs."),
    )
    await first.prompt(session, "start it")
    await until(lambda: len(first.left_behind()) >= 3)
    await first.kill()
    await until(lambda: not first.left_behind())
    client = await connect(agent, model_server)
    view = await client.resume(session, workspace_repo, replay=True)
    (terminal,) = view.terminals.values()
    assert terminal.exit_status == {}
    assert view.states[-1]["background"] == []
    model_server.add(answer("I see."))
    await client.prompt(session, "go on")
    assert "ended with the agent" in json.dumps(messages(model_server)[-1])


@looks_for_the_agent
@pytest.mark.covers("T8")
async def test_background_commands_end_with_the_agent(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(answer(in_background("trap '' TERM; sleep 1000 & wait")), answer("It runs."))
    await running.prompt(session, "start it")
    running.process.send_signal(signal.SIGTERM)
    assert await running.wait() == 0
    assert not running.left_behind()


@looks_for_the_agent
async def test_a_command_of_a_turn_ends_with_an_agent_that_is_killed(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    stubborn = "trap '' TERM HUP; sleep 1000 & echo begun; wait"
    model_server.add(answer(Call("shell", {"command": stubborn})))
    running.post_prompt(session, "run it")
    await running.expect(
        lambda _: any(
            "console\nbegun" in content_text(update)
            for update in running.updates(session, "tool_call_update")
        )
    )
    await until(lambda: len(running.left_behind()) >= 3)
    await running.kill()
    await until(lambda: not running.left_behind())


@pytest.mark.covers("S4", "P5")
async def test_a_client_that_resumes_without_a_replay_gets_the_terminal_first(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    client, session = await opened_v2()
    model_server.add(answer(in_background("exec sleep 1000")), answer("It runs."))
    await client.prompt(session, "start it")
    (name,) = client.view(session).terminals
    view = await client.resume(session, workspace_repo)
    assert view.terminals[name].command == "exec sleep 1000"
    assert view.states[-1]["background"] == [{"type": "terminal", "terminalId": name}]
