"""Prompts of MCP servers as slash commands, and their resources as two tools."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.extensions.mcp_session import OpenWithServers, call, offered, program, results
from tests.server.server_session import messages
from tests.support.agent_process import AgentProcess
from tests.support.model_server import Call, ModelServer, answer
from tests.support.waiting import until

LIST = Call("list_mcp_resources", {})


async def commands_with(
    running: AgentProcess, session: str, name: str
) -> dict[str, dict[str, str]]:
    """The commands as they are when one of this name is among them: hint and description."""
    update = await running.expect_update(
        session,
        "available_commands_update",
        lambda update: any(one["name"] == name for one in update["availableCommands"]),
    )
    return {
        one["name"]: {
            "description": one["description"],
            "hint": (one.get("input") or {}).get("hint", ""),
        }
        for one in update["availableCommands"]
    }


def said_to_model(server: ModelServer) -> str:
    """All that the last message of the user's side says."""
    content = messages(server)[-1]["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


@pytest.mark.covers("P11", "S2")
async def test_prompts_are_offered_as_commands_with_those_of_the_agent(
    with_servers: OpenWithServers,
) -> None:
    running, session = await with_servers(program("prompts"))
    commands = await commands_with(running, session, "memo:review")
    assert commands["memo:review"] == {"description": "Reviews a file", "hint": "path [focus]"}
    assert commands["memo:hello"] == {"description": "Greets", "hint": ""}
    assert "help" in commands


async def test_a_prompt_is_sent_with_its_arguments_or_reports_missing_ones(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    running, session = await with_servers(program("prompts"))
    await commands_with(running, session, "memo:review")
    model_server.otherwise = answer("Done.")
    await running.prompt(session, "/loop 3 /memo:review")
    assert "needs path" in running.text(session)
    assert model_server.requests == []
    await running.prompt(session, "/loop 2 /memo:review a.py the tests")
    assert len(model_server.requests) == 2
    said = [str(one["content"]) for one in messages(model_server) if one["role"] == "user"]
    assert ["Review a.py, focus on the tests." in one for one in said][-2:] == [True, True]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/memo:review a.py", "Review a.py, focus on all."),
        (
            "/memo:review a.py error handling, mostly",
            "Review a.py, focus on error handling, mostly.",
        ),
        ("/memo:review 'a b.py' \"the tests\"", "Review a b.py, focus on the tests."),
        ("/memo:review a.py don't bother", "Review a.py, focus on don't bother."),
        ("/memo:hello", "User:\nHello?\n\nAssistant:\nHello!"),
    ],
)
async def test_the_text_after_a_prompt_fills_its_arguments_in_order(
    with_servers: OpenWithServers, model_server: ModelServer, typed: str, told: str
) -> None:
    running, session = await with_servers(program("prompts"))
    await commands_with(running, session, "memo:review")
    model_server.add(answer("Done."))
    await running.prompt(session, typed)
    assert told in said_to_model(model_server)


async def test_a_missing_argument_is_requested_from_the_user_and_no_model_runs(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    running, session = await with_servers(program("prompts"))
    await commands_with(running, session, "memo:review")
    assert (await running.prompt(session, "/memo:review"))["stopReason"] == "end_turn"
    (chunk,) = running.updates(session, "agent_message_chunk")
    assert "needs path: write /memo:review path [focus]" in chunk["content"]["text"]
    assert model_server.requests == []


@pytest.mark.covers("P7")
async def test_a_prompt_that_does_not_come_is_cancelled_with_the_turn(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    running, session = await with_servers(program("prompts", env={"MCP_RECORD": str(record)}))
    await commands_with(running, session, "memo:hang")
    asked = running.post_prompt(session, "/memo:hang")
    await until(lambda: "hangs" in record.read_text())
    running.cancel(session)
    assert (await running.result(asked))["stopReason"] == "cancelled"
    await until(lambda: "cancelled" in record.read_text())
    assert model_server.requests == []


async def test_resources_are_listed_and_read_once_the_user_allows_it(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    read = Call("read_mcp_resource", {"server": "memo", "uri": "memo://one"})
    missing = Call("read_mcp_resource", {"server": "memo", "uri": "memo://secret"})
    nobody = Call("read_mcp_resource", {"server": "nobody", "uri": "memo://one"})
    model_server.add(answer(LIST, read, missing, nobody), answer("Done."))
    running, session = await with_servers(program("prompts"))
    await running.prompt(session, "what is there?")
    listed, text, not_found, no_server = results(model_server)
    assert listed.splitlines() == [
        "# memo",
        "memo://one (One): The first memo",
        "template memo://{name} (Any memo)",
        "template team://{team}/notes/{day}.md (Notes)",
    ]
    assert text == "[memo://one]\nthe text of memo://one"
    assert "there is no such memo" in not_found
    assert "there is no connected MCP server 'nobody'; the servers are memo" in no_server
    assert len(running.editor.asked) == 2  # listing asks no server, and so nobody


async def test_resources_that_the_user_names_are_attached_without_a_question(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer("Seen."))
    running, session = await with_servers(program("prompts"))
    await commands_with(running, session, "memo:review")
    prompt = "compare @memo:memo://one, (not@memo:memo://x) @memo:memo://secret @nobody:memo://two"
    await running.prompt(session, prompt)
    said = said_to_model(model_server)
    assert '<resource server="memo" uri="memo://one">\n[memo://one]\nthe text of memo://one' in said
    assert "The resource memo://secret of memo was not attached: " in said
    assert said.count("<resource ") == 1
    assert running.editor.asked == []


async def test_a_client_asks_which_resources_a_prompt_can_name(
    with_servers: OpenWithServers,
) -> None:
    running, session = await with_servers(program("prompts"), program("hides-things", name="odd"))
    await commands_with(running, session, "memo:review")
    found = await running.request("_acp-agent/resources/list", {"sessionId": session})
    assert {"mention": "@memo:memo://one", "name": "One"} in found["resources"]
    assert all(one["mention"].isprintable() for one in found["resources"])


@pytest.mark.parametrize(
    ("typed", "mention", "incomplete"),
    [
        ("@memo:tea", "@memo:team://", True),
        ("@memo:team://r", "@memo:team://red/notes/", True),
        ("@memo:team://red/no", "@memo:team://red/notes/", True),
        ("@memo:team://red/notes/", "@memo:team://red/notes/red-monday.md", False),
        ("@memo:memo://ot", "@memo:memo://other", False),
    ],
)
async def test_a_client_completes_the_variables_of_templates(
    with_servers: OpenWithServers, typed: str, mention: str, incomplete: bool
) -> None:
    running, session = await with_servers(program("prompts"))
    await commands_with(running, session, "memo:review")
    params = {"sessionId": session, "typed": typed}
    found = (await running.request("_acp-agent/resources/list", params))["resources"]
    completed = [one for one in found if one["mention"].startswith(typed)]
    assert [(one["mention"], one.get("incomplete", False)) for one in completed] == [
        (mention, incomplete)
    ]


async def test_the_tools_for_resources_exist_only_where_a_server_has_some(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer("Hello."), answer("Hello."))
    running, session = await with_servers(program("echo"))
    await running.prompt(session, "hi")
    assert not {"list_mcp_resources", "read_mcp_resource"} & set(offered(model_server))
    running, session = await with_servers(program("prompts"))
    await running.prompt(session, "hi")
    assert {"list_mcp_resources", "read_mcp_resource"} <= set(offered(model_server))


async def test_changed_lists_are_used_and_the_commands_are_sent_again(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("more")), answer("Done."))
    running, session = await with_servers(program("prompts"))
    await running.prompt(session, "make more")
    commands = await commands_with(running, session, "memo:later")
    assert "memo:review" in commands
    model_server.otherwise = answer("Wait.")
    async with asyncio.timeout(60):
        while True:
            model_server.add(answer(LIST), answer("Done."))
            await running.prompt(session, "list")
            if "memo://two (Two)" in results(model_server)[-1]:
                break
