"""An agent whose user speaks Chinese."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.server.server_session import OpenSession, messages, system
from tests.support.model_server import ModelServer, answer

CHINESE = {"LC_ALL": "zh_CN.UTF-8"}


@pytest.mark.parametrize("environ", [CHINESE, {"ACP_AGENT_LANGUAGE": "zh"}])
async def test_the_commands_and_their_answers_are_in_the_users_language(
    opened: OpenSession, environ: Mapping[str, str]
) -> None:
    running, session = await opened(environ=environ)
    await running.prompt(session, "/help")
    offered = running.updates(session, "available_commands_update")[-1]["availableCommands"]
    described = {command["name"]: command["description"] for command in offered}
    assert described["help"] == "列出可用命令"
    assert "- `/status`: 显示模型、模式和会话的费用" in running.text(session)
    await running.prompt(session, "/status")
    assert f"- 会话 `{session}`，位于 " in running.text(session)
    await running.prompt(session, "/mode plan")
    assert "- `plan` （当前）" in running.text(session)


async def test_the_options_are_in_the_users_language(opened: OpenSession) -> None:
    running, session = await opened(environ=CHINESE)
    await running.prompt(session, "/mode plan")
    options = running.updates(session, "config_option_update")[-1]["configOptions"]
    mode = next(option for option in options if option["id"] == "mode")
    assert mode["name"] == "模式"
    assert [value["name"] for value in mode["options"]] == ["询问", "接受编辑", "计划", "完全访问"]


async def test_the_setting_counts_more_than_the_locale(opened: OpenSession) -> None:
    running, session = await opened(environ=CHINESE | {"ACP_AGENT_LANGUAGE": "en"})
    await running.prompt(session, "/help")
    assert "List the commands" in running.text(session)


async def test_the_model_is_asked_to_answer_in_the_language_of_the_user(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("你好。"))
    running, session = await opened(environ=CHINESE)
    await running.prompt(session, "你好")
    assert "in the user's language" in system(model_server)
    assert "in the document's language" in system(model_server)
    # What the model is told is the same whatever the user speaks: no note of ours is translated.
    assert "Today is" in json.dumps(messages(model_server)[-1])
