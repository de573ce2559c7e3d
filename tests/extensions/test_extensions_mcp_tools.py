"""The tools of a client's MCP servers in a turn: offered, asked about, called, shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.extensions.mcp_session import (
    Json,
    OpenWithServers,
    call,
    echo,
    notices,
    offered,
    program,
    results,
)
from tests.server.server_session import calls_by_id
from tests.support.agent_process import AgentProcess
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import Call, ModelServer, answer
from tests.support.wire_client import content_text


def last_shown(running: AgentProcess, session: str) -> Json:
    """How the only call of a session ended."""
    (updates,) = calls_by_id(running.updates(session)).values()
    return updates[-1]


@pytest.mark.covers("S1", "P6")
async def test_a_tool_of_a_server_is_offered_confirmed_called_and_shown(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(echo("good morning")), answer("Done."))
    running, session = await with_servers(program("echo"))
    ended = await running.prompt(session, "greet")
    assert ended["stopReason"] == "end_turn"
    assert "mcp__memo__echo" in offered(model_server, 0)
    assert results(model_server) == ["echo: good morning"]
    (asked,) = running.editor.asked
    assert asked["toolCall"]["title"] == "memo: Say it again (echo)"
    assert '"text": "good morning"' in content_text(asked["toolCall"])
    names = [option["name"] for option in asked["options"]]
    assert names[1] == "Always allow `echo` of `memo` in this project, as it is described now"
    assert names[3] == "Never allow `echo` of `memo` in this project"
    assert last_shown(running, session)["status"] == "completed"
    assert "echo: good morning" in content_text(last_shown(running, session))
    assert notices(running, session) == []


async def test_a_call_with_an_error_result_is_shown_as_failed(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("fail", text="x")), answer("I see."))
    running, session = await with_servers(program("echo"))
    await running.prompt(session, "try")
    assert results(model_server) == ["Error: it did not work"]
    assert last_shown(running, session)["status"] == "failed"


async def test_a_picture_is_sent_to_the_model_and_shown(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("picture")), answer("A pixel."))
    running, session = await with_servers(program("echo"))
    await running.prompt(session, "look")
    sent = json.dumps(model_server.requests[1].json["messages"])
    assert "data:image/png;base64,iVBOR" in sent
    (image,) = last_shown(running, session)["content"]
    assert image["content"]["type"] == "image"


async def test_structured_content_and_resources_are_text_for_the_model(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("structured"), call("rich")), answer("Done."))
    running, session = await with_servers(program("echo"))
    await running.prompt(session, "look")
    structured, rich = results(model_server)
    assert structured == '{"answer":42}'
    *texts, sound = rich.splitlines()
    assert texts == ["[memo://one]", "inside", "[resource Two: memo://two]"]
    match = re.fullmatch(r"\[a sound of type audio/wav is saved in (.+)\]", sound)
    assert match is not None
    assert Path(match[1]).is_file()
    first, _ = calls_by_id(running.updates(session)).values()
    assert first[-1]["rawOutput"] == {"structuredContent": {"answer": 42}}


async def test_a_long_result_is_shortened_and_stored_completely_in_a_file(
    with_servers: OpenWithServers, model_server: ModelServer, home: Path
) -> None:
    model_server.add(answer(call("long")), answer("Done."))
    running, session = await with_servers(program("echo"))
    await running.prompt(session, "go")
    (result,) = results(model_server)
    assert len(result.encode()) <= 50_000
    assert "are left out here" in result
    (kept,) = (home / "acp-agent").rglob("outputs/**/*.txt")
    assert kept.read_text().startswith("line 0 ")
    assert "line 4999 " in kept.read_text()


async def test_wrong_arguments_are_reported_to_the_model_and_reach_no_server(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    model_server.add(answer(call("echo", words=3, text=["7"])), answer("Oh."))
    running, session = await with_servers(program("echo", env={"MCP_RECORD": str(record)}))
    await running.prompt(session, "go")
    assert "is not of type 'string'" in results(model_server)[0]
    assert running.editor.asked == []
    assert record.read_text() == "started\n"


async def test_the_program_gets_its_configured_variables_and_no_key_of_ours(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("environment")), answer("Done."))
    running, session = await with_servers(
        program("echo", env={"GIVEN": "to-it-alone"}), environ={"UNRELATED": "not-its-business"}
    )
    await running.prompt(session, "go")
    names = {line.partition("=")[0] for line in results(model_server)[0].splitlines()}
    assert {"GIVEN", "PATH", "HOME"} <= names
    assert not {"OPENAI_API_KEY", "OPENAI_BASE_URL", "UNRELATED", "ACP_AGENT_HOME"} & names


async def test_credentials_of_a_server_are_removed_from_its_results(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    token = "zebra-crossing-4711"
    model_server.add(answer(call("environment"), echo(token)), answer("Done."))
    running, session = await with_servers(program("echo", env={"SERVER_TOKEN": token}))
    await running.prompt(session, "go")
    environment, echoed = results(model_server)
    assert "SERVER_TOKEN=[secret]" in environment
    assert echoed == "echo: [secret]"
    shown = json.dumps([update.get("content") for update in running.updates(session)])
    assert token not in shown


@pytest.mark.covers("P6")
async def test_a_tool_that_claims_to_only_read_needs_permission_like_any_other(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("look")), answer("Done."))
    editor = Editor(offers=EVERYTHING, permission="reject_once")
    running, session = await with_servers(program("echo"), editor=editor)
    await running.prompt(session, "look")
    (asked,) = editor.asked
    assert asked["toolCall"]["kind"] == "read"
    assert results(model_server) != ["looked"]


@pytest.mark.parametrize(
    ("mode", "questions", "runs"),
    [("ask", 1, True), ("accept-edits", 1, True), ("plan", 0, False), ("full", 0, True)],
)
async def test_each_mode_has_its_way_with_the_tools_of_servers(
    with_servers: OpenWithServers,
    model_server: ModelServer,
    mode: str,
    questions: int,
    runs: bool,
) -> None:
    model_server.add(answer(call("look")), answer("Done."))
    running, session = await with_servers(program("echo"))
    await running.request("session/set_mode", {"sessionId": session, "modeId": mode})
    await running.prompt(session, "look")
    assert len(running.editor.asked) == questions
    assert (results(model_server) == ["looked"]) is runs


@pytest.mark.covers("P6")
async def test_always_applies_to_the_unchanged_tool_and_lets_a_reading_tool_run_in_plan_mode(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(call("look"), echo("one")), answer("Done."))
    editor = Editor(offers=EVERYTHING, permission="allow_always")
    running, session = await with_servers(program("echo"), editor=editor)
    await running.prompt(session, "look")
    assert len(editor.asked) == 2
    other = await running.new_session(workspace_repo, mcpServers=[program("echo", name="alias")])
    model_server.add(answer(call("look", server="alias")), answer("Done."))
    await running.prompt(other, "look")
    assert len(editor.asked) == 2  # the same program, whatever it is called
    await running.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
    model_server.add(answer(call("look"), echo("two")), answer("Done."))
    await running.prompt(session, "again")
    looked, echoed = results(model_server)[-2:]
    assert looked == "looked"
    assert "plan mode" in echoed  # it does not even say that it only reads


async def test_never_applies_to_a_tool_with_any_claim(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(echo("one")), answer("Oh."), answer(echo("two")), answer("Oh."))
    editor = Editor(offers=EVERYTHING, permission="reject_always")
    running, session = await with_servers(program("echo"), editor=editor)
    await running.prompt(session, "go")
    await running.prompt(session, "again")
    assert len(editor.asked) == 1
    assert "the user never allows echo of memo" in results(model_server)[-1]


@pytest.mark.covers("S1")
async def test_a_tool_that_changed_after_it_was_allowed_needs_permission_again(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    note = Call("mcp__memo__note", {"text": "x"})
    model_server.add(answer(note), answer(Call("read", {"path": "README.md"})), answer("Done."))
    editor = Editor(offers=EVERYTHING, permission="allow_always")
    running, session = await with_servers(program("changes"), editor=editor)
    await running.prompt(session, "note it")
    assert len(editor.asked) == 1
    model_server.otherwise = answer("Not yet.")
    while "mcp__memo__more" not in offered(model_server):  # until the new list has come
        await running.prompt(session, "is there more?")
    model_server.add(answer(note), answer("Done."))
    await running.prompt(session, "note it again")
    assert len(editor.asked) == 2
    assert "has changed since you allowed it" in content_text(editor.asked[1]["toolCall"])
    model_server.add(answer(note), answer("Done."))
    await running.prompt(session, "and again")
    assert len(editor.asked) == 2


async def test_sent_tools_stay_when_their_number_exceeds_the_limit(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    search = ["search_mcp_tools", "call_mcp_tool"]
    running, session = await with_servers(program("grows"))

    async def change(text: str, offer: list[str]) -> None:
        model_server.add(answer(echo(text)))
        model_server.otherwise = answer("Not yet.")
        await running.prompt(session, "go")
        while offered(model_server) != offer:
            await running.prompt(session, "is it there?")

    await change("grow", ["mcp__memo__echo", *search])
    found = Call("call_mcp_tool", {"name": "mcp__memo__more_7", "arguments": {"text": "deep"}})
    model_server.add(answer(echo("direct"), found), answer("Done."))
    await running.prompt(session, "go")
    assert results(model_server)[-2:] == ["echo: direct", "echo: deep"]

    running_tools = len(model_server.requests[-1].json["tools"])
    await change("shrink", ["mcp__memo__echo", *search])
    assert len(model_server.requests[-1].json["tools"]) == running_tools
    by_search = Call("call_mcp_tool", {"name": "mcp__memo__echo", "arguments": {"text": "again"}})
    model_server.add(answer(by_search), answer("Done."))
    await running.prompt(session, "go")
    assert results(model_server)[-1] == "echo: again"


async def test_a_hook_for_a_tool_runs_when_the_tool_is_called_after_a_search(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    hook = (
        "[[hooks.PreToolUse]]\nmatcher = 'mcp__echo__.*'\n"
        "command = 'grep -q secret && echo \"not that\" >&2 && exit 2 || exit 0'\n"
    )
    calls = [
        Call("call_mcp_tool", {"name": "mcp__echo__echo", "arguments": {"text": text}})
        for text in ("secret", "open")
    ]
    model_server.add(answer(*calls), answer("Done."))
    servers = program("echo", name="echo"), program("many-tools")
    running, session = await with_servers(*servers, config=hook)
    await running.prompt(session, "hi")
    refused, said = results(model_server)
    assert "not that" in refused
    assert said == "echo: open"


@pytest.mark.covers("P3")
async def test_progress_is_shown_in_the_title_of_the_call(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("steps")), answer("Done."))
    running, session = await with_servers(program("echo"))
    await running.prompt(session, "go")
    (updates,) = calls_by_id(running.updates(session)).values()
    titles = [update["title"] for update in updates if "title" in update]
    assert "memo: steps (50%, half of it)" in titles


async def test_colliding_and_invalid_tool_names_become_unique_valid_ones(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    running, session = await with_servers(
        program("odd-names"), program("odd-names", name="memo"), program("echo", name="日 本")
    )
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    names = offered(model_server)
    assert len(names) == len(set(names)) == 6 + 6 + 11
    assert all(len(name) <= 64 and name.isascii() for name in names)
    assert {"mcp__memo__read", "mcp__memo-2__read", "mcp__server__echo"} <= set(names)
    spaced = [name for name in names if name.startswith("mcp__memo__get_item_")]
    assert len(spaced) == 2
    model_server.add(answer(*(Call(name, {"text": ""}) for name in spaced)), answer("Done."))
    await running.prompt(session, "call both")
    assert sorted(results(model_server)) == ["this is get item", "this is get/item"]
