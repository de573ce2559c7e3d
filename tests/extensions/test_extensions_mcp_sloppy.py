"""Servers that are not as the specification says: what can be used is used, at once."""

from __future__ import annotations

import pytest

from tests.extensions.mcp_session import OpenWithServers, call, notices, offered, program, results
from tests.support.model_server import ModelServer, answer

ANSWERS = {
    "a text": "a text",
    "parts": "the good part",
    "structured": '"a":',
    "batch": "as usual",
    "surrogate": "half a",
    "log": "as usual",
    "null": "the answer has the wrong shape",
    "deep": "the answer has the wrong shape",
}


@pytest.mark.parametrize("shape", ANSWERS)
async def test_an_answer_of_another_shape_is_read_or_fails_at_once(
    with_servers: OpenWithServers, model_server: ModelServer, shape: str
) -> None:
    model_server.add(answer(call("answer", text=shape)), answer("Done."))
    running, session = await with_servers(program("sloppy"))
    await running.prompt(session, "go")
    (result,) = results(model_server)
    assert ANSWERS[shape] in result
    assert "did not answer within" not in result


async def test_unusable_parts_of_a_result_are_named(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("answer", text="parts")), answer("Done."))
    running, session = await with_servers(program("sloppy"))
    await running.prompt(session, "go")
    assert "[a part of the type 'video', which cannot be read]" in results(model_server)[0]


async def test_schemas_without_a_type_or_of_an_old_draft_are_usable(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer("Hello."))
    running, session = await with_servers(program("sloppy"))
    await running.prompt(session, "go")
    names = {"no_type", "any", "alternatives", "nullable", "old_draft", "answer"}
    assert {one.removeprefix("mcp__memo__") for one in offered(model_server)} == names
    tools = {one["function"]["name"]: one for one in model_server.requests[-1].json["tools"]}
    schema = tools["mcp__memo__alternatives"]["function"]["parameters"]
    assert set(schema["properties"]) == {"one", "two"}
    assert schema["type"] == "object"
    count = tools["mcp__memo__old_draft"]["function"]["parameters"]["properties"]["count"]
    assert count == {"exclusiveMinimum": 0}
    assert notices(running, session) == []


async def test_the_tools_of_a_server_that_cannot_list_its_resources_are_used(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("echo", der_Text="hello")), answer("Done."))
    running, session = await with_servers(program("fails-to-list"))
    await running.prompt(session, "go")
    assert results(model_server) == ['{"der Text": "hello"}']
    (notice,) = notices(running, session)
    assert "cannot list its resources: the database is not running" in notice
