"""Options and slash commands of a session of version 2.

Source: Agent Client Protocol v2, Session Config Options, Slash Commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.server_session import MODELS
from tests.server.v2_session import OpenV2
from tests.support.agent_process import config_file
from tests.support.framing import Json
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.v2_client import V2Client
from tests.support.wire_client import AnswerError


def option(options: list[Json], name: str) -> Json:
    return next(option for option in options if option["configId"] == name)


async def choose(client: V2Client, session: str, name: str, value: str) -> list[Json]:
    params = {"sessionId": session, "configId": name, "type": "id", "value": value}
    result = await client.wire.request("session/set_config_option", params, checked=True)
    options: list[Json] = result["configOptions"]
    return options


@pytest.mark.covers("S3", "S2", "P11")
async def test_options_and_commands_come_with_the_session(opened_v2: OpenV2) -> None:
    client, session = await opened_v2()
    view = client.view(session)
    assert {option["configId"] for option in view.options} >= {"mode", "model"}
    for option in view.options:
        values = [value["value"] for value in option["options"]]
        assert option["currentValue"] in values
        assert len(set(values)) == len(values)
        assert option["category"].removeprefix("_") == option["configId"]
    names = [command["name"] for command in view.commands]
    assert "help" in names
    assert len(set(names)) == len(names)
    assert not any(" " in name or name.startswith("/") for name in names)


@pytest.mark.covers("S3")
async def test_an_option_is_set_by_the_id_of_a_value_and_all_options_are_answered(
    opened_v2: OpenV2,
) -> None:
    client, session = await opened_v2()
    before = client.view(session).options
    options = await choose(client, session, "mode", "plan")
    assert option(options, "mode")["currentValue"] == "plan"
    assert [message["configId"] for message in options] == [
        message["configId"] for message in before
    ]
    assert option(options, "model") == option(before, "model")


@pytest.mark.covers("S3")
async def test_an_option_that_a_command_changes_is_sent_to_the_client(opened_v2: OpenV2) -> None:
    client, session = await opened_v2()
    assert (await client.prompt(session, "/mode plan"))["stopReason"] == "end_turn"
    option_updates = client.wire.updates(session, "config_option_update")
    assert option(option_updates[-1]["configOptions"], "mode")["currentValue"] == "plan"


@pytest.mark.covers("S3")
async def test_an_option_is_set_while_work_runs(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "Go"))
    await client.expect_view(session, lambda view: view.text() == "Half")
    options = await choose(client, session, "mode", "accept-edits")
    assert option(options, "mode")["currentValue"] == "accept-edits"
    stall.release()
    assert (await client.idle(session, message))["stopReason"] == "end_turn"


@pytest.mark.covers("S3")
async def test_a_model_brings_its_own_further_options(opened_v2: OpenV2, home: Path) -> None:
    config_file(home, MODELS)
    client, session = await opened_v2()
    thoughts = option(client.view(session).options, "thought_level")
    level = thoughts["options"][-1]["value"]
    options = await choose(client, session, "thought_level", level)
    assert option(options, "thought_level")["currentValue"] == level


INVALID: list[tuple[Json, str]] = [
    ({"configId": "colour", "type": "id", "value": "blue"}, "colour"),
    ({"configId": "mode", "type": "id", "value": "reckless"}, "reckless"),
    ({"configId": "mode", "type": "boolean", "value": True}, "type"),
    ({"configId": "mode", "type": "_ours", "value": {"a": 1}}, "type"),
    ({"configId": "mode", "type": "number", "value": 3}, "type"),
    ({"configId": "mode", "type": "id", "value": True}, "value"),
    ({"configId": "mode", "type": "id"}, "value"),
    ({"configId": "mode", "value": "plan"}, "type"),
    ({"type": "id", "value": "plan"}, "configId"),
    ({"configId": None, "type": "id", "value": "plan"}, "configId"),
]


@pytest.mark.covers("S3", "T4")
async def test_an_invalid_setting_is_refused_and_changes_nothing(opened_v2: OpenV2) -> None:
    client, session = await opened_v2()
    before = client.view(session).options
    for params, words in INVALID:
        with pytest.raises(AnswerError) as caught:
            await client.wire.request("session/set_config_option", {"sessionId": session} | params)
        assert caught.value.code == -32602
        assert words in caught.value.message
    current = option(before, "mode")["currentValue"]
    assert await choose(client, session, "mode", current) == before


@pytest.mark.covers("S6")
async def test_an_option_of_an_unknown_session_is_refused(opened_v2: OpenV2) -> None:
    client, _ = await opened_v2()
    with pytest.raises(AnswerError) as caught:
        await choose(client, "sess_nobody_made", "mode", "plan")
    assert caught.value.code == -32002
