"""Rules of the configuration decide about calls of a real session."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.server.server_session import OpenSession, messages
from tests.support.agent_process import config_file
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer
from tests.support.wire_client import AnswerError

RULES = """
[permissions]
allow = ["Bash(touch made*)"]
ask = [{ rule = "Bash(touch asked)", justification = "to be sure" }]
deny = [
  { rule = "Bash(touch denied)", match = ["touch denied"], justification = "it is in the way" },
]
"""


async def test_rules_of_the_configuration_allow_ask_and_refuse_and_are_in_the_journal(
    opened: OpenSession, model_server: ModelServer, home: Path, workspace_repo: Path
) -> None:
    config = config_file(home, RULES)
    names = ("made.txt", "asked", "denied")
    touches = [Call("shell", {"command": f"touch {name}"}) for name in names]
    model_server.add(*map(answer, touches), answer("Done."))
    editor = Editor(permission="allow_once")
    running, session = await opened(editor=editor, environ={"ACP_AGENT_MODE": "full"})
    await running.prompt(session, "touch them")
    assert [(workspace_repo / name).exists() for name in names] == [True, True, False]
    (question,) = editor.asked
    updates_text = json.dumps(question["toolCall"]["content"])
    assert f"{config}:4" in updates_text
    assert "to be sure" in updates_text
    refusal = str(messages(model_server)[-1]["content"])
    assert f"the rule `Bash(touch denied)` in {config}:6 refuses this: it is in the way" in refusal
    exported = await running.request("_acp-agent/session/export", {"sessionId": session})
    events = [json.loads(line).get("event", {}) for line in exported["content"].splitlines()]
    decided = [event for event in events if event.get("event") == "permission_decided"]
    assert [event.get("rule", "") for event in decided] == [
        "",
        f"ask Bash(touch asked) ({config}:4)",
        f"deny Bash(touch denied) ({config}:6)",
    ]


async def test_a_rule_that_does_not_fit_its_example_is_an_error_with_its_line(
    opened: OpenSession, home: Path
) -> None:
    config = config_file(home, RULES.replace('["touch denied"]', '["touch other"]'))
    with pytest.raises(AnswerError, match=re.escape(f"{config}:6: the rule Bash(touch denied)")):
        await opened()
