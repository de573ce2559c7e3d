"""What the journal has of our own texts is shown in the language of who reads it."""

from __future__ import annotations

import pytest

from acp_agent.config.localization import ENGLISH, translator_for
from acp_agent.content import text_part
from acp_agent.events import (
    AnyEvent,
    NoticeShown,
    PermissionDecided,
    ToolCalled,
    ToolEnded,
    ToolShown,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.server.v2.projection import Projector
from acp_agent.session.localize import localize

CALL, MESSAGE, TURN = CallId("c"), MessageId("m"), TurnId("t")
CHINESE = translator_for("zh")


def called(name: str, title: str) -> ToolCalled:
    return ToolCalled(call=CALL, message=MESSAGE, name=name, arguments="{}", title=title)


def test_a_title_of_ours_is_translated_and_a_command_or_a_question_of_the_models_is_not() -> None:
    assert localize(called("read", "Read a.py"), CHINESE) == called("read", "读取 a.py")
    question = called("ask_user", "Read a.py or b.py?")
    assert localize(question, CHINESE) == question
    command = ToolShown(call=CALL, title="`Read a.py`")
    assert localize(command, CHINESE) == command
    assert localize(called("read", "Read a.py"), ENGLISH) == called("read", "Read a.py")


def test_why_a_call_did_not_run_is_translated_for_the_user_and_not_for_the_model() -> None:
    why = "The editor could not ask the user for permission, so the call did not run."
    ended = localize(
        ToolEnded(call=CALL, failed=True, result=why, content=(text_part(why),)), CHINESE
    )
    assert isinstance(ended, ToolEnded)
    assert ended.content == (text_part("编辑器无法向您请求许可，因此该调用没有运行。"),)
    assert ended.result == why
    # What a call gave is no text of ours, even where it reads like one.
    gave = ToolEnded(call=CALL, result="answers", content=(text_part("answers"),))
    assert localize(gave, CHINESE) == gave


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("edits are accepted", "接受编辑"),
        ("requests to example.test are always allowed", "始终允许向 example.test 发送请求"),
        (
            "this command is never run: `x` switches the machine off",
            "此命令从不运行：`x` 会关机",
        ),
        ("Allow once", "允许一次"),
        ("允许一次", "允许一次"),  # the button as it was pressed, in Chinese already
    ],
)
def test_the_decision_about_a_call_is_shown_with_its_reason_in_the_users_language(
    why: str, said: str
) -> None:
    decided = localize(PermissionDecided(call=CALL, allowed=True, by="mode", why=why), CHINESE)
    assert decided == PermissionDecided(call=CALL, allowed=True, by="mode", why=said)


def test_version_2_shows_titles_notices_and_the_error_of_a_turn_in_the_users_language() -> None:
    events: list[AnyEvent] = [
        TurnStarted(turn=TURN),
        called("read", "Read a.py"),
        NoticeShown(
            severity="warning",
            title="The MCP server 'files' could not be connected.",
            description="there is no program files-mcp.",
        ),
        TurnEnded(turn=TURN, error="OpenAI failed (HTTP 500): oh. Try again later."),
        TurnInterrupted(turn=TURN, message=MESSAGE),
    ]
    projector = Projector(CHINESE)
    shown = repr([update for event in events for update in projector.project(event)])
    assert "读取 a.py" in shown
    assert "无法连接 MCP 服务器 'files'。" in shown
    assert "没有程序 files-mcp。" in shown
    assert "OpenAI 出错（HTTP 500）：oh。请稍后重试。" in shown
    assert "智能体在此处未完成就被停止。" in shown
