"""`acp-agent hooks test` asks the model of a hook with a prompt, and shows what it answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_process import acp_agent
from tests.support.model_server import answer, model_server_in_thread


@pytest.mark.parametrize(
    ("hook_answer", "permission", "reason"),
    [('{"ok": true}', None, ""), ('{"ok": false, "reason": "no"}', "deny", "no")],
)
def test_a_hook_with_a_prompt_asks_its_model(
    tmp_path: Path, hook_answer: str, permission: str | None, reason: str
) -> None:
    handler = {"type": "prompt", "prompt": "May it run?", "model": "nobody/has-this"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
    with model_server_in_thread() as server:
        server.add(answer(hook_answer))
        ran = acp_agent(
            tmp_path, "hooks", "test", "PreToolUse", "--json", "--cwd", str(tmp_path),
            environ=server.environ(),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        (result,) = json.loads(ran.stdout)
        assert (result["permission"], result["reason"]) == (permission, reason)
        (request,) = server.requests
        assert "May it run?" in str(request.json["messages"])


def test_a_hook_whose_model_cannot_be_asked_fails(tmp_path: Path) -> None:
    settings = {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "Is it done?"}]}]}}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
    ran = acp_agent(tmp_path, "hooks", "test", "Stop", "--cwd", str(tmp_path))
    assert ran.returncode == 1
    assert "failure: Is it done?: " in ran.stdout
