"""Providers whose endpoints a client configures, over the wire of both versions."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.server.either_version import EitherClient
from tests.support.agent_process import StartAgent, config_file
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, Stall, Status, answer
from tests.support.wire_client import AnswerError

pytestmark = pytest.mark.parametrize("version", [1, 2])

TOKEN = "gateway-token-0123456789"
NOWHERE = '[providers.local]\nbase_url = "http://127.0.0.1:9/v1"\n'


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "X-Team": "seven"}


async def listed(client: EitherClient) -> dict[str, Json]:
    """`providers/list`, by id."""
    providers = (await client.request("providers/list"))["providers"]
    return {entry["providerId"]: entry for entry in providers}


async def keyless(
    agent: StartAgent, home: Path, version: int, *arguments: str, **environ: str
) -> EitherClient:
    """An agent without any key and without a local server."""
    config_file(home, NOWHERE)
    return await EitherClient.start(agent, version, *arguments, environ=environ)


@pytest.mark.covers("I3")
async def test_every_provider_is_listed_with_where_it_is_and_none_is_required(
    agent: StartAgent, home: Path, version: int
) -> None:
    client = await keyless(agent, home, version, OPENAI_BASE_URL=f"https://u:{TOKEN}@h/v1?k=1")
    assert client.advertised["providers"] == {}
    providers = await listed(client)
    assert {"openai", "anthropic", "local"} <= providers.keys()
    assert "demo" not in providers
    assert {entry["required"] for entry in providers.values()} == {False}
    assert all({"anthropic", "openai"} <= set(entry["supported"]) for entry in providers.values())
    assert providers["anthropic"]["current"] == {
        "apiType": "anthropic",
        "baseUrl": "https://api.anthropic.com",
    }
    assert providers["openai"]["current"]["baseUrl"] == "https://h/v1"
    assert TOKEN.encode() not in b"".join(client.wire.lines)


async def test_an_endpoint_makes_sessions_possible_and_its_headers_go_with_every_request(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Through the gateway.")
    client = await keyless(agent, home, version)
    cwd = str(workspace_repo)
    assert (await client.refused("session/new", cwd=cwd, mcpServers=[]))["code"] == -32000
    endpoint = {"apiType": "anthropic", "baseUrl": f"{model_server.url}/", "headers": bearer()}
    assert await client.request("providers/set", providerId="deepseek", **endpoint) == {}
    session = await client.new(workspace_repo)
    assert await client.say(session, "Hello") == "end_turn"
    first_request = model_server.requests[0]
    assert (first_request.api, first_request.headers["x-team"]) == ("anthropic", "seven")
    assert first_request.headers["authorization"] == f"Bearer {TOKEN}"
    assert (await listed(client))["deepseek"]["current"] == {
        "apiType": "anthropic",
        "baseUrl": model_server.url,
    }


async def test_sessions_get_the_available_models_when_an_endpoint_changes_them(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)

    def told() -> list[set[str]]:
        """The providers of the models, of each time that the options were told."""
        updates = client.wire.updates(session, "config_option_update")
        name = "id" if version == 1 else "configId"
        options = [
            {option[name]: option for option in update["configOptions"]} for update in updates
        ]
        return [
            {value["value"].partition("/")[0] for value in option["model"]["options"]}
            for option in options
        ]

    assert told() == []
    endpoint = {"apiType": "anthropic", "baseUrl": model_server.url, "headers": bearer()}
    await client.request("providers/set", providerId="anthropic", **endpoint)
    await client.request("providers/set", providerId="anthropic", **endpoint)  # nothing new
    await client.request("providers/disable", providerId="anthropic")
    assert ["anthropic" in providers for providers in told()] == [True, False]


async def test_a_change_reaches_the_next_request_of_a_session_that_is_open(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    stall = Stall()
    async with ModelServer() as second:
        model_server.add(answer("Look. ", stall, Call("read", {"path": "greeting.py"})))
        second.otherwise = answer("From elsewhere.")
        client = await EitherClient.before(agent, version, model_server)
        session = await client.new(workspace_repo)
        client.post_prompt(session, "Look")
        await client.wire.expect_update(session, "agent_message_chunk")
        endpoint = {"apiType": "openai", "baseUrl": second.openai_url, "headers": bearer()}
        await client.request("providers/set", providerId="openai", **endpoint)
        stall.release()
        await client.wire.expect_update(session, "session_info_update")
        assert (len(model_server.requests), len(second.requests)) == (1, 1)
        assert second.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
        replaced = {"apiType": "openai", "baseUrl": second.openai_url}
        await client.request("providers/set", providerId="openai", **replaced)
        await client.say(session, "Again")
        assert {"authorization", "x-team"} & second.requests[1].headers.keys() == set()


@pytest.mark.covers("I5")
async def test_a_disabled_provider_ends_in_a_clear_error_and_can_be_set_again(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    await client.say(session, "Hello")
    for _ in range(2):
        assert await client.request("providers/disable", providerId="openai") == {}
    assert (await listed(client))["openai"].get("current") is None
    with pytest.raises(AnswerError) as caught:
        await client.say(session, "Hello?")
    assert caught.value.code == -32000
    assert "OpenAI was disabled by the editor" in caught.value.message
    assert (await client.refused("session/new", cwd=str(workspace_repo), mcpServers=[]))[
        "code"
    ] == -32000
    assert len(model_server.requests) == 1
    endpoint = {"apiType": "openai", "baseUrl": model_server.openai_url}
    await client.request("providers/set", providerId="openai", **endpoint)
    assert await client.say(session, "Hello again") == "end_turn"
    assert "Hello?" not in str(model_server.requests[-1].json)


async def test_disabling_an_unknown_provider_succeeds(
    agent: StartAgent, home: Path, version: int
) -> None:
    client = await keyless(agent, home, version)
    before = await listed(client)
    for name in ("nobody", "demo", ""):
        assert await client.request("providers/disable", providerId=name) == {}
    assert await listed(client) == before


@pytest.mark.covers("T4")
async def test_an_invalid_endpoint_is_refused_by_field_and_changes_nothing(
    agent: StartAgent, home: Path, version: int
) -> None:
    client = await keyless(agent, home, version)
    before = await listed(client)
    good = {"providerId": "openai", "apiType": "openai", "baseUrl": "https://gate.example/v1"}
    for change, field in (
        ({"providerId": "nobody"}, "providerId"),
        ({"providerId": "demo"}, "providerId"),
        ({"providerId": 7}, "providerId"),
        ({"apiType": "bedrock"}, "apiType"),
        ({"apiType": "_own"}, "apiType"),
        ({"apiType": None}, "apiType"),
        ({"baseUrl": "file:///etc/passwd"}, "baseUrl"),
        ({"baseUrl": "gate.example"}, "baseUrl"),
        ({"baseUrl": f"https://u:{TOKEN}@gate.example/v1"}, "baseUrl"),
        ({"headers": {"X-Team": f"{TOKEN}\r\nX: y"}}, "headers"),
        ({"headers": {"Content-Length": TOKEN}}, "headers"),
        ({"headers": {"X-Team": 7}}, "headers"),
        ({"headers": [["X-Team", TOKEN]]}, "headers"),
    ):
        error = await client.refused("providers/set", **(good | change))
        assert error["code"] == -32602, change
        assert field in error["message"]
        assert len(error["message"].splitlines()) == 1
    assert await listed(client) == before
    assert TOKEN.encode() not in b"".join(client.wire.lines)


@pytest.mark.covers("T4")
async def test_header_values_are_neither_shown_nor_saved(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    (workspace_repo / "leak.txt").write_text(f"found: {TOKEN}\n")
    model_server.add(
        answer(Call("read", {"path": "leak.txt"})),
        answer("I read it."),
        Status(code=400, message=f"what is {TOKEN}?"),
    )
    trace = home / "trace.jsonl"
    client = await keyless(agent, home, version, "--trace", str(trace), "--log-level", "debug")
    endpoint = {"apiType": "openai", "baseUrl": model_server.openai_url, "headers": bearer()}
    await client.request("providers/set", providerId="openai", **endpoint)
    session = await client.new(workspace_repo)
    await client.say(session, "Read it")
    assert "found: [secret]" in str(model_server.requests[1].json)
    with pytest.raises(AnswerError) as caught:
        await client.say(session, "Again")
    assert TOKEN not in caught.value.message
    await listed(client)
    await client.request("auth/status")
    await client.wire.stop()
    assert TOKEN.encode() not in b"".join(client.wire.lines) + client.wire.stderr
    with sqlite3.connect(home / "acp-agent" / "sessions.db") as database:
        bodies = str(database.execute("SELECT body FROM events").fetchall())
    assert "found: [secret]" in bodies
    for path in home.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path
    assert trace.read_text()


async def test_an_endpoint_ends_with_the_process(
    agent: StartAgent, home: Path, model_server: ModelServer, version: int
) -> None:
    client = await keyless(agent, home, version)
    before = await listed(client)
    endpoint = {"apiType": "openai", "baseUrl": model_server.openai_url, "headers": bearer()}
    await client.request("providers/set", providerId="openai", **endpoint)
    await client.request("providers/disable", providerId="anthropic")
    await client.wire.stop()
    restarted = await EitherClient.start(agent, version)
    assert await listed(restarted) == before
