"""Whether a login is needed: asked for, and told when it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.config.secrets import Secrets
from tests.server.either_version import EitherClient
from tests.server.server_session import DEMO
from tests.support.agent_process import StartAgent, config_file
from tests.support.framing import Json
from tests.support.model_server import ModelServer, Status, answer
from tests.support.wire_client import AnswerError

pytestmark = pytest.mark.parametrize("version", [1, 2])

KEY = "sk-of-a-login-0123456789"
NOWHERE = '[providers.local]\nbase_url = "http://127.0.0.1:9/v1"\n'
LOGIN = {1: "authenticate", 2: "auth/login"}
LOGOUT = {1: "logout", 2: "auth/logout"}


def status_updates(client: EitherClient) -> list[str]:
    """The states that updates brought so far."""
    messages = client.wire.messages
    updates = [m for m in messages if m.get("method") == "auth/status_update"]
    return [update["params"]["state"] for update in updates]


async def status(client: EitherClient) -> tuple[str, list[Json]]:
    """`auth/status`: the state and the accounts."""
    result = await client.request("auth/status")
    return result["state"], result.get("accounts", [])


@pytest.mark.covers("I4", "I5")
@pytest.mark.parametrize(
    ("arguments", "environ", "state", "active"),
    [
        ((), {}, "unauthenticated", []),
        (DEMO, {}, "not_required", []),
        ((), {"OPENAI_API_KEY": KEY}, "authenticated", ["OpenAI API key from OPENAI_API_KEY"]),
        (("--model", "anthropic/x"), {"OPENAI_API_KEY": KEY}, "unauthenticated", []),
        (DEMO, {"OPENAI_API_KEY": KEY}, "not_required", []),
        (("--model", "nobody/x"), {"OPENAI_API_KEY": KEY}, "unknown", []),
        (("--model", "local/x"), {}, "not_required", []),
    ],
)
async def test_the_state_says_whether_a_session_can_begin_without_a_login(
    agent: StartAgent,
    home: Path,
    workspace_repo: Path,
    version: int,
    arguments: tuple[str, ...],
    environ: dict[str, str],
    state: str,
    active: list[str],
) -> None:
    config_file(home, NOWHERE)
    client = await EitherClient.start(agent, version, *arguments, environ=environ)
    assert client.advertised["auth"]["status"] == {}
    found, accounts = await status(client)
    assert found == state
    assert [account["label"] for account in accounts if account["active"]] == active
    if state != "unknown":
        assert len(accounts) == len(environ)
    request_id = client.wire.post("session/new", {"cwd": str(workspace_repo), "mcpServers": []})
    opened = await client.wire.answer(request_id)
    if state == "unauthenticated":
        assert opened["error"]["code"] == -32000
    elif state != "unknown":
        assert "result" in opened
    assert KEY.encode() not in b"".join(client.wire.lines)


@pytest.mark.covers("I4", "I5")
async def test_a_configuration_that_cannot_be_used_leaves_the_state_unknown(
    agent: StartAgent, home: Path, version: int
) -> None:
    config_file(home, "model = 7\n")
    client = await EitherClient.start(agent, version)
    assert await status(client) == ("unknown", [])
    config_file(home, NOWHERE)
    assert (await status(client))[0] == "unauthenticated"


async def test_accounts_say_where_their_keys_come_from(
    agent: StartAgent, home: Path, model_server: ModelServer, version: int
) -> None:
    config_file(home, NOWHERE)
    Secrets(home / "acp-agent" / "secrets.json", {}).set("anthropic", KEY)
    client = await EitherClient.start(agent, version, environ={"OPENAI_API_KEY": KEY})
    endpoint = {"apiType": "openai", "baseUrl": model_server.openai_url}
    headers = {"Authorization": f"Bearer {KEY}"}
    await client.request("providers/set", providerId="kimi", **endpoint, headers=headers)
    _, accounts = await status(client)
    assert {account["label"]: account["active"] for account in accounts} == {
        "OpenAI API key from OPENAI_API_KEY": False,
        "Anthropic API key from a login": False,
        "Kimi over the editor's endpoint": True,
    }


@pytest.mark.covers("I4")
async def test_a_login_or_logout_is_reported_once_and_only_when_it_changes_something(
    agent: StartAgent, home: Path, version: int
) -> None:
    config_file(home, NOWHERE)
    client = await EitherClient.start(agent, version)
    await client.request(LOGIN[version], methodId="demo")
    await client.request(LOGIN[version], methodId="demo")
    assert (await status(client))[0] == "not_required"
    assert status_updates(client) == ["not_required"]
    await client.request(LOGOUT[version])
    await client.request(LOGOUT[version])
    assert (await status(client))[0] == "unauthenticated"
    assert status_updates(client) == ["not_required", "unauthenticated"]
    error = await client.refused(LOGIN[version], methodId="configured")
    assert error["code"] == -32000
    assert status_updates(client) == ["not_required", "unauthenticated"]


async def test_endpoints_of_the_client_change_the_state(
    agent: StartAgent, home: Path, model_server: ModelServer, version: int
) -> None:
    config_file(home, NOWHERE)
    client = await EitherClient.start(agent, version)
    assert (await status(client))[0] == "unauthenticated"
    endpoint = {"apiType": "openai", "baseUrl": model_server.openai_url}
    headers = {"X-Api-Key": KEY}
    await client.request("providers/set", providerId="openai", **endpoint, headers=headers)
    await client.request("providers/set", providerId="openai", **endpoint, headers=headers)
    await client.request("providers/set", providerId="openai", **endpoint)
    await client.request("providers/disable", providerId="openai")
    await client.request("providers/disable", providerId="openai")
    assert status_updates(client) == ["authenticated", "not_required", "unauthenticated"]


@pytest.mark.covers("I5")
async def test_a_key_that_the_provider_refuses_counts_as_missing_until_it_is_accepted(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.add(Status(code=401, message="bad key"), answer("Welcome."))
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    with pytest.raises(AnswerError):
        await client.say(session, "Hello")
    await client.wire.expect(lambda message: message.get("method") == "auth/status_update")
    assert status_updates(client) == ["unauthenticated"]
    assert (await status(client))[0] == "unauthenticated"
    assert await client.say(session, "Hello again") == "end_turn"
    await client.wire.expect(
        lambda message: (
            message.get("method") == "auth/status_update"
            and message["params"]["state"] == "authenticated"
        )
    )
    assert status_updates(client) == ["unauthenticated", "authenticated"]


@pytest.mark.covers("I5")
async def test_after_a_logout_sessions_that_are_open_have_no_model_any_more(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    await client.say(session, "Hello")
    await client.request(LOGOUT[version])
    with pytest.raises(AnswerError) as caught:
        await client.say(session, "Still there?")
    assert caught.value.code == -32000
    assert caught.value.data["authMethods"]
    assert len(model_server.requests) == 1
    await client.request(LOGIN[version], methodId="configured")
    assert await client.say(session, "And now?") == "end_turn"
    assert "Still there?" not in str(model_server.requests[-1].json)
