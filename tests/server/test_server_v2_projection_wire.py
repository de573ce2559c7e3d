"""A session over version 2 on the wire: what a client knows after the work, and after a replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.server_session import EDIT, OPENAI, READ
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, Thought, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import ALL_OF_V2, EditorV2
from tests.support.wire_client import AnswerError

SLEEP = Call("shell", {"command": "echo begun; sleep 300"})


async def start(agent: StartAgent, server: ModelServer, **options: object) -> V2Client:
    editor = EditorV2(**options)  # type: ignore[arg-type]  # the options of an editor
    running = await agent(*OPENAI, editor=editor, environ=server.environ("openai"))
    client = V2Client(running)
    await client.initialize()
    return client


@pytest.mark.covers("S4", "P2", "P3")
async def test_another_process_replays_what_was_shown_live(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    steps = [{"content": "Look", "status": "in_progress"}]
    model_server.add(
        answer(Thought("Hm."), "Rea", "ding.", READ, Call("todo", {"todos": steps})),
        answer(EDIT, Call("write", {"path": "new.py", "content": "x = 1"})),
        answer(
            Call("shell", {"command": "printf '好\\n'; exit 3"}),
            Call("shell", {"commando": "typo"}),
        ),
        answer("Done."),
    )
    client = await start(agent, model_server)
    session = await client.new_session(workspace_repo)
    ended = await client.prompt(session, "work on it")
    assert ended["stopReason"] == "end_turn"
    assert ended["usage"]["totalTokens"] > 0
    live = client.view(session).conversation()
    await client.wire.stop()

    second_client = await start(agent, model_server)
    view = await second_client.resume(session, workspace_repo, replay=True)
    assert view.conversation() == live
    assert view.state == "idle"
    diffs = [
        part for call in view.calls.values() for part in call["content"] if part["type"] == "diff"
    ]
    assert [diff["changes"][0]["operation"] for diff in diffs] == ["modify", "add"]
    assert all(diff["patch"]["text"].startswith("diff --git /") for diff in diffs)


@pytest.mark.covers("P7", "P3")
async def test_one_call_is_cancelled_and_the_turn_continues(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(SLEEP), answer("Something else, then."))
    client = await start(agent, model_server)
    session = await client.new_session(workspace_repo)
    message = await client.said(client.post_prompt(session, "Go"))
    view = await client.expect_view(session, lambda view: any(view.terminals.values()))
    await client.expect_update(session, "terminal_output_chunk")
    (call,) = view.calls
    assert view.calls[call]["capabilities"] == {"cancel": {}}
    await client.cancel_call(session, call)
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    view = client.view(session)
    assert (view.calls[call]["status"], view.calls[call]["capabilities"]) == ("cancelled", None)
    assert view.terminals[call].exit_status == {}
    assert view.text() == "Something else, then."
    for call_id in (call, "call_nobody_made"):
        with pytest.raises(AnswerError) as refused:
            await client.cancel_call(session, call_id)
        assert refused.value.code == -32602


@pytest.mark.covers("P7", "P6")
async def test_a_call_is_cancelled_while_the_user_is_asked_and_the_question_is_withdrawn(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(READ), answer(EDIT), answer("Well."))
    client = await start(agent, model_server, permission="never")
    session = await client.new_session(workspace_repo)
    message = await client.said(client.post_prompt(session, "Go"))
    question = await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
    view = await client.expect_view(session, lambda view: view.state == "requires_action")
    call = list(view.calls)[-1]
    await client.cancel_call(session, call)
    withdrawn = await client.wire.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == question["id"]
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    assert client.view(session).calls[call]["status"] == "cancelled"
    assert "Hello" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P5")
async def test_a_terminal_is_cancelled_and_its_call_ends_by_itself(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(SLEEP), answer("I see."))
    client = await start(agent, model_server)
    session = await client.new_session(workspace_repo)
    message = await client.said(client.post_prompt(session, "Go"))
    terminal = (await client.expect_update(session, "terminal_output_chunk"))["terminalId"]
    assert client.view(session).terminals[terminal].capabilities == {"cancel": {}}
    await client.cancel_terminal(session, terminal)
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    view = client.view(session)
    assert view.terminals[terminal].exit_status == {"signal": "SIGTERM"}
    assert view.terminals[terminal].output == b"begun\r\n"
    assert view.calls[terminal]["status"] == "failed"
    with pytest.raises(AnswerError) as refused:
        await client.cancel_terminal(session, terminal)
    assert refused.value.code == -32602


@pytest.mark.covers("P6", "P12")
async def test_a_question_to_the_user_says_what_it_is_about(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    question = Call("ask_user", {"question": "Which colour?"})
    model_server.add(
        answer(READ, Call("shell", {"command": "touch made"})),
        answer(EDIT),
        answer(question),
        answer("So."),
    )
    client = await start(agent, model_server, offers=ALL_OF_V2)
    session = await client.new_session(workspace_repo)
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    request_ids = [
        message["params"]
        for message in client.wire.messages
        if message.get("method") == "session/request_permission"
    ]
    command, edit = [params["subject"] for params in request_ids]
    _, first, second, _ = client.view(session).calls
    assert command == {
        "type": "command",
        "command": "touch made",
        "cwd": str(workspace_repo),
        "toolCallId": first,
    }
    assert edit == {"type": "tool_call", "toolCall": {"toolCallId": second}}
    updates = [state["state"] for state in client.view(session).states]
    assert updates == ["running", *["requires_action", "running"] * 3, "idle"]
