"""An agent whose user speaks Chinese."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.server.server_session import OPENAI, READ, OpenSession, calls_by_id, messages, system
from tests.support.agent_process import StartAgent, config_file
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, Status, answer
from tests.support.wire_client import AnswerError, content_text

CHINESE = {"LC_ALL": "zh_CN.UTF-8"}
RUN = Call("shell", {"command": "rm greeting.py"})


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
    assert [value["name"] for value in mode["options"]] == [
        "询问",
        "接受编辑",
        "计划",
        "草稿",
        "完全访问",
    ]


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


async def test_titles_and_reasons_are_in_the_users_language_live_and_in_a_replay(
    opened: OpenSession, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(READ), answer(RUN), answer("Done."))
    running, session = await opened(environ=CHINESE)
    await running.prompt(session, "/mode plan")
    await running.prompt(session, "look and remove")
    read, run = calls_by_id(running.updates(session)).values()
    assert read[0]["title"] == "读取 greeting.py"
    assert run[0]["title"] == "`rm greeting.py`"
    assert content_text(run[-1]) == "会话处于计划模式，不作任何更改"
    assert "the session is in plan mode" in json.dumps(messages(model_server))
    await running.stop()
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    for environ, title in ((CHINESE, "读取 greeting.py"), ({}, "Read greeting.py")):
        restarted = await agent(*OPENAI, environ=environ)
        await restarted.initialize()
        await restarted.request("session/load", load)
        await restarted.stop()
        assert next(iter(calls_by_id(restarted.updates(session)).values()))[0]["title"] == title


async def test_a_providers_failure_is_in_the_users_language_and_its_data_is_not(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(Status(code=500, headers={"retry-after-ms": "1"}), Status(code=401))
    running, session = await opened(environ=CHINESE)
    with pytest.raises(AnswerError) as caught:
        await running.prompt(session, "go")
    assert caught.value.message.startswith("OpenAI 拒绝了 API 密钥（HTTP 401）。请运行 `acp-agent")
    assert caught.value.data == {"provider": "openai", "status": 401}
    updates_text = json.dumps(running.updates(session), ensure_ascii=False)
    assert "OpenAI 出错（HTTP 500）" in updates_text
    assert "后重试（第 2 次，共 5 次）" in updates_text


async def test_a_configuration_error_is_reported_in_the_language_of_the_locale(
    agent: StartAgent, home: Path, tmp_path: Path
) -> None:
    config_file(home, 'mode = "everything"\n')
    running = await agent(environ=CHINESE)
    await running.initialize()
    with pytest.raises(AnswerError, match=':1：mode：不允许 "everything"；可用的值：'):
        await running.request("session/new", {"cwd": str(tmp_path), "mcpServers": []})


async def test_the_ways_to_log_in_are_in_the_language_of_the_locale(agent: StartAgent) -> None:
    running = await agent(environ=CHINESE)
    methods = (await running.initialize())["authMethods"]
    assert "试用演示" in [method["name"] for method in methods]


async def test_keys_are_named_in_the_users_language(agent: StartAgent) -> None:
    running = await agent(environ=CHINESE | {"OPENAI_API_KEY": "sk-test"})
    await running.initialize()
    accounts = (await running.request("auth/status", {}))["accounts"]
    assert [account["label"] for account in accounts] == ["OpenAI 的 API 密钥，来自 OPENAI_API_KEY"]


async def test_a_session_that_is_not_open_is_reported_in_the_users_language(
    opened: OpenSession,
) -> None:
    running, _ = await opened(environ=CHINESE)
    with pytest.raises(AnswerError, match="未在此处打开；请先恢复它"):
        await running.prompt("sess_nobody", "x")


async def test_a_problem_of_a_skill_is_reported_in_the_users_language(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened(editor=Editor(offers=frozenset({"notices"})), environ=CHINESE)
    for number in range(4):  # of which three are told one by one
        folder = workspace_repo / ".agents" / "skills" / f"skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\nname: [\n---\n")
    model_server.add(answer("好。"))
    await running.prompt(session, "你好")
    notice = await running.expect_update(session, "notice")
    *lines, last_line = notice["description"].splitlines()
    assert len(lines) == 3
    assert all("SKILL.md: 第 2 行不是 YAML" in line for line in lines)
    assert last_line == "`acp-agent doctor` 会说明其余的问题。"


async def test_texts_about_rewinds_are_in_the_users_language(opened: OpenSession) -> None:
    running, session = await opened(environ=CHINESE)
    await running.prompt(session, "/rewind")
    await running.prompt(session, "/rewind 9 files")
    await running.prompt(session, "/budget day $2")
    text = running.text(session)
    assert "还没有可以返回的位置。" in text
    assert "没有可返回的位置 '9'。" in text
    assert "- 今天，所有会话：" in text
    assert "/ $2.00" in text
