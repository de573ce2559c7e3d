"""Sessions forked, archived, named and asked after, over the wire of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.either_version import EitherClient
from tests.server.server_session import EDIT, READ, messages
from tests.support.agent_process import StartAgent
from tests.support.model_server import ModelServer, Stall, answer

pytestmark = pytest.mark.parametrize("version", [1, 2])

GONE = "sess_00000000-0000-7000-8000-000000000000"


# -- session/fork --------------------------------------------------------------------------------


@pytest.mark.covers("S2", "S3")
async def test_a_fork_goes_on_from_the_conversation_and_the_source_does_not_know(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.add(answer("Let me see.", READ), answer("It greets."))
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    await client.say(source, "What does it do?")
    shown = len(client.wire.updates(source))
    opened = await client.request("session/fork", sessionId=source, cwd=str(workspace_repo))
    fork = opened.pop("sessionId")
    again = await client.request("session/new", cwd=str(workspace_repo), mcpServers=[])
    assert opened.keys() == again.keys() - {"sessionId"}
    assert opened["configOptions"] == again["configOptions"]
    assert await client.say(fork, "In the fork") == "end_turn"
    assert await client.say(source, "In the source") == "end_turn"
    first, forked, own = (messages(model_server, request) for request in (1, 2, 3))
    assert forked[: len(first)] == own[: len(first)] == first
    assert "In the fork" not in str(own)
    assert "In the fork" not in str(client.wire.updates(source)[shown:])


@pytest.mark.covers("S2")
async def test_a_fork_replays_nothing_and_tells_its_commands_after_the_response(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    await client.say(source, "Hello")
    asked = client.wire.post("session/fork", {"sessionId": source, "cwd": str(workspace_repo)})
    opened = (await client.wire.answer(asked))["result"]
    fork = opened["sessionId"]
    await client.listed()
    if version == 1:
        assert client.kinds(fork) == ["available_commands_update"]
        response = next(i for i, m in enumerate(client.wire.messages) if m.get("id") == asked)
        later = client.wire.messages[response + 1 :]
        assert fork not in str(client.wire.messages[:response])
        assert any(m.get("params", {}).get("sessionId") == fork for m in later)
    else:
        assert client.kinds(fork) == []
        assert {command["name"] for command in opened["availableCommands"]} >= {"help", "status"}
    loaded = await client.listed()
    assert loaded[fork]["title"] == "Hello (fork)"
    assert loaded[source]["title"] == "Hello"


@pytest.mark.covers("S4")
async def test_a_fork_can_be_replayed_whole_also_by_another_process(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    await client.say(source, "Hello")
    fork = await client.fork(source, workspace_repo)
    await client.say(fork, "Only here")
    await client.wire.kill()
    client = await EitherClient.before(agent, version, model_server)
    cwd = str(workspace_repo)
    if version == 1:
        await client.request("session/load", sessionId=fork, cwd=cwd, mcpServers=[])
    else:
        await client.reopen(fork, workspace_repo, replayFrom={"type": "start"})
    replay = str(client.wire.updates(fork))
    assert replay.index("Hello") < replay.index("Only here")
    assert await client.say(fork, "And now?") == "end_turn"


async def test_a_session_can_be_forked_in_the_middle_of_a_turn(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    stall = Stall()
    model_server.add(answer("Half a sen", stall, "tence."))
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    prompt = client.post_prompt(source, "Tell me")
    await client.wire.expect_update(source, "agent_message_chunk")
    fork = await client.fork(source, workspace_repo)
    assert await client.say(fork, "In the fork") == "end_turn"
    assert "Half a sen" not in str(messages(model_server))
    stall.release()
    if version == 1:
        assert (await client.wire.result(prompt))["stopReason"] == "end_turn"
    await client.wire.expect_update(source, "session_info_update")
    assert client.wire.text(source).replace("Yes.", "") == "Half a sentence."


@pytest.mark.covers("S6", "T4", "S1")
async def test_what_cannot_be_forked_says_why(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    client = await EitherClient.before(agent, version, model_server)
    source, cwd = await client.new(workspace_repo), str(workspace_repo)
    for params, code, word in (
        ({"sessionId": GONE, "cwd": cwd}, -32002, "not found"),
        ({"sessionId": "../../etc", "cwd": cwd}, -32002, "not found"),
        ({"sessionId": 7, "cwd": cwd}, -32602, "sessionId"),
        ({"sessionId": source}, -32602, "cwd"),
        ({"sessionId": source, "cwd": "relative"}, -32602, "cwd"),
        ({"sessionId": source, "cwd": cwd, "additionalDirectories": ["x"]}, -32602, "additional"),
    ):
        error = await client.refused("session/fork", **params)
        assert (error["code"], word in error["message"]) == (code, True), error
    everything = await client.wire.request("session/list", {})
    assert everything["sessions"] == []


# -- session/archive -----------------------------------------------------------------------------


@pytest.mark.covers("S5")
async def test_an_archived_session_leaves_the_list_and_comes_back_as_it_was(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    sessions = [await client.new(workspace_repo) for _ in range(3)]
    for session in sessions:
        await client.say(session, f"Hello {session}")
    before = await client.listed()
    assert {entry["archived"] for entry in before.values()} == {False}
    for _ in range(2):
        assert await client.request("session/archive", sessionId=sessions[1]) == {}
    for wanted, found in (
        ({}, {sessions[0], sessions[2]}),
        ({"archived": "exclude"}, {sessions[0], sessions[2]}),
        ({"archived": "only"}, {sessions[1]}),
        ({"archived": "include"}, set(sessions)),
        ({"archived": "only", "cwd": str(workspace_repo.parent)}, set()),
    ):
        entries = await client.listed(**wanted)
        assert set(entries) == found
        assert all(entry["archived"] == (name == sessions[1]) for name, entry in entries.items())
    assert set(await client.listed(archived=None)) == {sessions[0], sessions[2]}
    for _ in range(2):
        assert await client.request("session/unarchive", sessionId=sessions[1]) == {}
    assert await client.listed() == before
    await client.reopen(sessions[1], workspace_repo)
    assert await client.say(sessions[1], "Still here?") == "end_turn"


@pytest.mark.covers("S5", "P7")
async def test_archiving_an_open_session_stops_its_work_and_closes_it(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.add(answer("Half", Stall()))
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    prompt = client.post_prompt(session, "Go on for ever")
    await client.wire.expect_update(session, "agent_message_chunk")
    assert await client.request("session/archive", sessionId=session) == {}
    if version == 1:
        assert (await client.wire.result(prompt))["stopReason"] == "cancelled"
    else:
        idle = await client.wire.expect_update(
            session, "state_update", lambda update: update["state"] == "idle"
        )
        assert idle["stopReason"] == "cancelled"
    assert (await client.request("session/status", sessionId=session))["status"] == "saved"
    text = [{"type": "text", "text": "Hello?"}]
    error = await client.refused("session/prompt", sessionId=session, prompt=text)
    assert error["code"] == -32002


@pytest.mark.covers("S6", "T4")
async def test_what_does_not_exist_is_neither_archived_nor_named_nor_known(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    client = await EitherClient.before(agent, version, model_server)
    for method, more in (
        ("session/archive", {}),
        ("session/unarchive", {}),
        ("session/status", {}),
        ("session/set_title", {"title": "A title"}),
    ):
        for unknown in (GONE, "", "../x", "é"):
            error = await client.refused(method, sessionId=unknown, **more)
            assert error["code"] == -32002
            assert "not found" in error["message"]
            assert error["data"] == {"sessionId": unknown}
        for wrong in ({"sessionId": 7}, {}):
            error = await client.refused(method, **wrong, **more)
            assert error["code"] == -32602
            assert "sessionId" in error["message"]
    for archived in ("all", "", "ONLY", "_mine"):
        error = await client.refused("session/list", archived=archived)
        assert error["code"] == -32602
        assert error["message"].startswith("archived")
    assert (await client.refused("session/list", archived=True))["code"] == -32602


# -- session/set_title ---------------------------------------------------------------------------


@pytest.mark.covers("S5")
async def test_a_title_of_the_users_is_shown_and_no_turn_replaces_it(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    answered = await client.request("session/set_title", sessionId=session, title="  My \n title ")
    assert answered == {"title": "My title"}
    update = await client.wire.expect_update(session, "session_info_update")
    assert update["title"] == "My title"
    await client.say(session, "Words that would have been the title")
    assert (await client.listed())[session]["title"] == "My title"
    assert client.kinds(session).count("session_info_update") == 1
    for title in ("", "  \n ", None, 7):
        error = await client.refused("session/set_title", sessionId=session, title=title)
        assert error["code"] == -32602
        assert "title" in error["message"]
    assert (await client.refused("session/set_title", sessionId=session))["code"] == -32602
    assert (await client.listed())[session]["title"] == "My title"


async def test_a_session_that_is_not_open_can_be_named(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    await client.say(session, "Hello")
    other = await EitherClient.before(agent, 3 - version, model_server)
    error = await other.refused("session/set_title", sessionId=session, title="Mine")
    assert error["code"] == -32600
    assert "another process" in error["message"]
    await client.close(session)
    shown = len(client.wire.updates(session))
    long = await other.request("session/set_title", sessionId=session, title="x" * 500)
    assert len(long["title"]) == 200
    assert (await client.listed())[session]["title"] == long["title"]
    assert len(client.wire.updates(session)) == shown
    assert (await client.request("session/status", sessionId=session))["status"] == "saved"


# -- session/status ------------------------------------------------------------------------------


async def test_the_status_says_whether_a_session_is_in_memory_and_changes_nothing(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, "."))
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    status = await client.request("session/status", sessionId=session)
    assert status == {"status": "open"} | ({"state": {"state": "idle"}} if version == 2 else {})
    client.post_prompt(session, "Go")
    await client.wire.expect_update(session, "agent_message_chunk")
    status = await client.request("session/status", sessionId=session)
    assert status == {"status": "open"} | ({"state": {"state": "running"}} if version == 2 else {})
    other = await EitherClient.before(agent, version, model_server)
    before = await other.listed()
    assert await other.request("session/status", sessionId=session) == {"status": "saved"}
    assert await other.listed() == before
    stall.release()
    await client.wire.expect_update(session, "session_info_update")
    await client.close(session)
    assert await client.request("session/status", sessionId=session) == {"status": "saved"}


async def test_the_status_of_a_session_that_waits_for_the_user_says_so(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    if version == 1:
        pytest.skip("version 1 reports no state")
    model_server.add(answer(READ), answer(EDIT))
    client = await EitherClient.before(agent, version, model_server)
    client.wire.editor.permission = "never"
    session = await client.new(workspace_repo)
    client.post_prompt(session, "Edit")
    await client.wire.expect_update(
        session, "state_update", lambda update: update["state"] == "requires_action"
    )
    status = await client.request("session/status", sessionId=session)
    assert status == {"status": "open", "state": {"state": "requires_action"}}
    client.wire.cancel(session)
    await client.wire.expect_update(
        session, "state_update", lambda update: update["state"] == "idle"
    )


# -- systemPrompt --------------------------------------------------------------------------------


def given(mode: str, *texts: str) -> dict[str, object]:
    """A system prompt as clients send it."""
    return {"mode": mode, "content": [{"type": "text", "text": text} for text in texts]}


async def test_a_system_prompt_reaches_the_model_from_every_way_to_open_a_session(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    assert client.session_capabilities["systemPrompt"] == {"mode": {"override": {}}}

    async def prompt_of(session: str) -> str:
        await client.say(session, "Hello")
        return str(model_server.requests[-1].json["messages"][0]["content"])

    session = await client.new(workspace_repo, systemPrompt=given("append", "Rhyme.", "Be brief."))
    first = await prompt_of(session)
    assert first.startswith("You are acp-agent")
    assert first.endswith("Rhyme.\n\nBe brief.")
    await client.close(session)
    await client.reopen(session, workspace_repo, systemPrompt=None)
    assert await prompt_of(session) == first
    fork = await client.fork(session, workspace_repo, systemPrompt=given("override", "A poet."))
    assert (await prompt_of(fork)).startswith("A poet.\n")
    assert await prompt_of(session) == first
    await client.close(session)
    await client.reopen(session, workspace_repo, systemPrompt=given("override", "A painter."))
    assert (await prompt_of(session)).startswith("A painter.\n")
    if version == 1:
        await client.close(session)
        params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
        await client.request("session/load", **params, systemPrompt=given("append", "Loaded."))
        assert (await prompt_of(session)).endswith("Loaded.")


@pytest.mark.covers("T4")
async def test_a_system_prompt_that_cannot_be_applied_opens_nothing(
    agent: StartAgent, model_server: ModelServer, home: Path, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    known, cwd = await client.new(workspace_repo), str(workspace_repo)
    await client.say(known, "Hello")
    await client.close(known)
    assert list((home / "acp-agent" / "locks").iterdir()) == []
    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    link = {"type": "resource_link", "name": "x", "uri": "file:///x"}
    prompts: tuple[object, ...] = (
        given("prepend", "x"),
        given("_own", "x"),
        given("append"),
        given("override", "  "),
        {"mode": "append", "content": [image]},
        {"mode": "append", "content": [{"type": "text", "text": "x"}, link]},
        {"mode": "append", "content": [{"type": "_poem", "text": "x"}]},
        {"mode": "append"},
        {"content": []},
        "Rhyme.",
    )
    for prompt in prompts:
        for method, more in (
            ("session/new", {}),
            ("session/resume", {"sessionId": known}),
            ("session/fork", {"sessionId": known}),
            *([("session/load", {"sessionId": known})] if version == 1 else []),
        ):
            error = await client.refused(
                method, cwd=cwd, mcpServers=[], systemPrompt=prompt, **more
            )
            assert error["code"] == -32602, (method, prompt, error)
            assert "systemPrompt" in error["message"] or "content" in error["message"]
    assert set(await client.listed(archived="include")) == {known}
    assert (await client.request("session/status", sessionId=known))["status"] == "saved"
    assert list((home / "acp-agent" / "locks").iterdir()) == []
