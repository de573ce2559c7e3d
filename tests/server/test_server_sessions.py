"""Starting, naming, closing and deleting sessions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import DEMO, OpenSession, messages
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.wire_client import AnswerError

STARTS = [
    ("session/new", {}),
    ("session/load", {"sessionId": "known"}),
    ("session/resume", {"sessionId": "known"}),
]


async def refused(running: AgentProcess, method: str, params: dict[str, Any]) -> AnswerError:
    """The error of a request."""
    with pytest.raises(AnswerError) as caught:
        await running.request(method, params)
    return caught.value


@pytest.mark.covers("S1", "T4")
async def test_a_folder_that_cannot_be_used_is_refused_and_named(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    existing = await running.new_session(workspace_repo)
    file = workspace_repo / "README.md"
    for method, more in STARTS:
        params: dict[str, Any] = dict.fromkeys(more, existing) | {"mcpServers": []}
        for cwd in ("relative/path", "", str(workspace_repo / "missing"), str(file), "/\0"):
            error = await refused(running, method, params | {"cwd": cwd})
            assert error.code == -32602
            assert error.message.startswith("cwd")
            assert error.data == {"field": "cwd"}
        wrong_type = await refused(running, method, params | {"cwd": 7})
        missing = await refused(running, method, params)
        for error in (wrong_type, missing):
            assert error.code == -32602
            assert "cwd" in error.message
        for path in ("relative", str(file)):
            directories = {"additionalDirectories": [str(workspace_repo), path]}
            error = await refused(
                running, method, params | {"cwd": str(workspace_repo)} | directories
            )
            assert error.code == -32602
            assert "additionalDirectories[1]" in error.message
    assert (await running.prompt(existing, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("S1")
async def test_additional_folders_are_named_to_the_model_and_may_be_read(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    second_folder = tmp_path / "other"
    second_folder.mkdir()
    (second_folder / "note.txt").write_text("from the other folder")
    model_server.add(
        answer(Call("read", {"path": str(second_folder / "note.txt")})), answer("Read.")
    )
    running, plain = await opened()
    wide = await running.new_session(workspace_repo, additionalDirectories=[str(second_folder)])
    await running.prompt(wide, "read the note")
    assert str(second_folder) in str(model_server.requests[0].json["messages"][0])
    assert "from the other folder" in str(messages(model_server)[-1])

    model_server.add(
        answer(Call("read", {"path": str(second_folder / "note.txt")})), answer("Refused.")
    )
    await running.prompt(plain, "read the note")
    assert "from the other folder" not in str(messages(model_server)[-1])


@pytest.mark.covers("S1", "S2", "I6")
async def test_mcp_servers_that_fail_are_reported_and_hold_nothing_up(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    servers = [
        {"name": "weather", "command": "/no/such/program", "args": [], "env": []},
        {"type": "http", "name": "tickets", "url": "http://127.0.0.1:9/mcp", "headers": []},
    ]
    running, _ = await opened(editor=Editor(offers=frozenset({"notices"})))
    session = await running.new_session(workspace_repo, mcpServers=servers)
    await running.expect_update(session, "notice", lambda update: "weather" in update["title"])
    await running.expect_update(session, "notice", lambda update: "tickets" in update["title"])
    messages_by_case = {
        update["title"]: update["description"] for update in running.updates(session, "notice")
    }
    assert messages_by_case == {
        "The MCP server 'weather' could not be connected.": "there is no program /no/such/program.",
        "The MCP server 'tickets' could not be connected.": "All connection attempts failed.",
    }

    model_server.otherwise = answer("Hello.")
    running, _ = await opened()  # without notices it is told as the first thing of a turn
    session = await running.new_session(workspace_repo, mcpServers=servers)
    await running.request("session/list", {})
    kinds = [update["sessionUpdate"] for update in running.updates(session)]
    assert kinds == ["available_commands_update"]
    for _ in range(2):
        await running.prompt(session, "hi")
    texts = [
        update["content"]["text"] for update in running.updates(session) if "content" in update
    ]
    assert all("could not be connected" in text for text in texts[:2])
    assert texts[2:] == ["Hello.", "Hello."]


@pytest.mark.covers("S1")
async def test_a_session_without_a_turn_is_stored_at_once(
    agent: StartAgent, workspace_repo: Path
) -> None:
    first = await agent(*DEMO)
    await first.initialize()
    session = await first.new_session(workspace_repo)
    await first.kill()
    second = await agent(*DEMO)
    await second.initialize()
    await second.request("session/resume", {"sessionId": session, "cwd": str(workspace_repo)})
    assert (await second.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("S2", "T6")
async def test_commands_follow_the_response_that_makes_the_session_known(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "hello")
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    request_ids = [
        running.post("session/load", params),
        running.post("session/resume", params),
    ]
    for request in request_ids:
        await running.answer(request)
    await running.request("session/list", {})  # what follows the last response is there by now
    responses = [
        index
        for index, message in enumerate(running.messages)
        if message.get("id") in request_ids or "sessionId" in (message.get("result") or {})
    ]
    assert len(responses) == 3
    for index in responses:
        following = running.messages[index + 1]["params"]
        assert following["sessionId"] == session
        assert following["update"]["sessionUpdate"] == "available_commands_update"
    commands = running.updates(session, "available_commands_update")[0]["availableCommands"]
    assert {command["name"] for command in commands} >= {"help", "status", "mode", "model"}


@pytest.mark.covers("S6")
async def test_an_unknown_session_is_reported_and_an_id_of_a_wrong_type_is_invalid(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    extras: dict[str, dict[str, Any]] = {
        "session/prompt": {"prompt": [{"type": "text", "text": "hi"}]},
        "session/load": {"cwd": str(workspace_repo), "mcpServers": []},
        "session/resume": {"cwd": str(workspace_repo)},
        "session/set_mode": {"modeId": "ask"},
        "session/set_config_option": {"configId": "mode", "value": "ask"},
        "session/close": {},
    }
    for method, extra in extras.items():
        error = await refused(running, method, extra | {"sessionId": "no-such-one"})
        assert error.code == -32002, method
        assert "not found" in error.message
        assert "no-such-one" in error.message
        for wrong in (7, None, ["a"], {"id": "a"}):
            error = await refused(running, method, extra | {"sessionId": wrong})
            assert error.code == -32602, method
            assert "sessionId" in error.message
        error = await refused(running, method, extra)
        assert error.code == -32602
        assert "sessionId" in error.message


@pytest.mark.covers("S5", "S6")
async def test_a_closed_session_is_not_found_until_it_is_opened_again(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "hello")
    assert await running.request("session/close", {"sessionId": session}) == {}
    with pytest.raises(AnswerError) as caught:
        await running.prompt(session, "hello")
    assert caught.value.code == -32002
    await running.request("session/resume", {"sessionId": session, "cwd": str(workspace_repo)})
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("S5", "P7")
async def test_closing_a_session_cancels_its_turn_first(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("begun", Stall()))
    running, session = await opened()
    prompt = running.post_prompt(session, "go")
    await running.expect_update(session, "agent_message_chunk")
    close = running.post("session/close", {"sessionId": session})
    assert await running.result(close) == {}
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    answered = [
        message["id"] for message in running.messages if message.get("id") in {prompt, close}
    ]
    assert answered == [prompt, close]
    await model_server.requests[0].closed_early.wait()


@pytest.mark.covers("S5")
async def test_deleting_is_final_and_may_be_repeated(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    stall = Stall()
    model_server.add(answer("begun", stall))
    running, session = await opened()
    prompt = running.post_prompt(session, "go")
    await running.expect_update(session, "agent_message_chunk")
    for _ in range(2):
        assert await running.request("session/delete", {"sessionId": session}) == {}
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    for never_there in ("never-there", "", "a/b", "x" * 5_000):
        assert await running.request("session/delete", {"sessionId": never_there}) == {}
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    assert (await refused(running, "session/load", params)).code == -32002
    assert await running.request("session/list", {}) == {"sessions": []}


@pytest.mark.covers("S5")
async def test_the_first_turn_gives_the_session_a_title(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Done.")
    running, session = await opened()
    await running.prompt(session, "\n  Mend the parser, please.\nIt fails on tabs.")
    assert running.updates(session, "session_info_update") == [
        {"sessionUpdate": "session_info_update", "title": "Mend the parser, please."}
    ]
    await running.prompt(session, "And now the printer.")
    assert len(running.updates(session, "session_info_update")) == 1
    listed = (await running.request("session/list", {}))["sessions"]
    assert listed[0]["title"] == "Mend the parser, please."


@pytest.mark.covers("S1")
async def test_a_folder_reached_by_a_link_is_a_folder(agent: StartAgent, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(tmp_path / "link")
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("S1", "T4")
async def test_a_folder_deleted_during_a_session_fails_only_calls_that_need_it(
    agent: StartAgent, tmp_path: Path
) -> None:
    folder = tmp_path / "short-lived"
    folder.mkdir()
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(folder)
    folder.rmdir()
    result = await running.prompt(session, "list")
    assert result["stopReason"] == "end_turn"
    folder.mkdir()
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"
