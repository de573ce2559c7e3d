"""The VS Code extension in code-server in Chinese."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent

pytestmark = pytest.mark.timeout(2700)

CHINESE = re.compile("[\u4e00-\u9fff]")


def test_an_editor_in_chinese_has_the_extension_in_chinese(
    vscode: CodeServer, folder: Path, home: Path
) -> None:
    started = agent(home, "--model", "demo/demo")
    with vscode.speaking("zh-cn"):
        seen = vscode.run("chinese.everywhere", folder, started)
    assert seen["page"] == "zh-cn"
    assert seen["empty"] == "我们做什么？"
    assert {"聊天", "会话"} <= set(seen["views"])
    assert len(seen["commands"]) > 5
    for words in (seen["input"], *seen["buttons"], *seen["commands"]):
        assert CHINESE.search(words), words
