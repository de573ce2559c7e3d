"""The hooks of a session are listed in the editor."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.events import AgentText
from tests.session.test_session_hooks import Hooked, hooked, settings, write
from tests.support.model_server import ModelServer
from tests.support.open_session import home_paths

__all__ = ["hooked"]  # a fixture


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_user_lists_the_hooks_with_their_files(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path, *, trusted: bool
) -> None:
    write(tmp_path / "project", settings({"Stop": "echo theirs"}))
    async with hooked({"PreToolUse Bash|Edit": "make check"}, trusted=trusted) as desk:
        await desk.say("/hooks")
        listed = "".join(one.text for one in desk.editor.of(AgentText))
        assert listed.startswith("- PreToolUse Bash|Edit: `make check` (")
        assert f"{home_paths(tmp_path).data_dir}/.claude/settings.json)" in listed
        assert ("- Stop *: `echo theirs` (" in listed) is trusted
        assert ("is not used until you trust it: /trust" in listed) is not trusted
        assert model_server.requests == []


async def test_without_hooks_the_list_says_so(hooked: Hooked) -> None:
    async with hooked() as desk:
        await desk.say("/hooks")
        assert [one.text for one in desk.editor.of(AgentText)] == ["There are no hooks."]
