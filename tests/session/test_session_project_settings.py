"""A session uses what a team set for other programs, once the user trusts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_agent.events import DirectoriesChanged, NoticeShown
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import open_desk, presses

SETTINGS = {
    "env": {"TEAM_MODE": "fast"},
    "permissions": {"additionalDirectories": ["../shared", "../gone"]},
    "outputStyle": "Short",
    "hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo hook:$TEAM_MODE"}]}]
    },
}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A project with settings of Claude and Gemini, an output style, and a folder next to it."""
    project = tmp_path / "project"
    styles = project / ".claude" / "output-styles"
    styles.mkdir(parents=True)
    (styles / "brief.md").write_text("---\nname: Short\n---\nAnswer in one line.")
    (project / ".claude/settings.json").write_text(json.dumps(SETTINGS))
    (project / ".gemini").mkdir()
    context = {"context": {"fileName": ["TEAM.md", ".env"]}}
    (project / ".gemini/settings.json").write_text(json.dumps(context))
    (project / "TEAM.md").write_text("Use tabs. @more.md")
    (project / "more.md").write_text("Never spaces.")
    (project / ".env").write_text("PIN=4711")
    (project / "web").mkdir()
    (project / "web/TEAM.md").write_text("Use React.")
    (project / "web/app.ts").write_text("1")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/notes.md").write_text("shared notes")
    return project


@pytest.mark.parametrize("trusted", [True, False])
async def test_variables_folders_instructions_and_style_are_used_after_trust(
    tmp_path: Path, model_server: ModelServer, team: Path, *, trusted: bool
) -> None:
    calls = [
        Call("shell", {"command": "echo mode:$TEAM_MODE"}),
        Call("read", {"path": "web/app.ts"}),
        Call("write", {"path": str(tmp_path / "shared/new.md"), "content": "new"}),
    ]
    model_server.add(answer(*calls), answer("Done."))
    async with open_desk(tmp_path, model_server, trusted=False) as desk:
        desk.editor.decide = presses("allow_always" if trusted else "reject_always")
        await desk.say("/trust")
        desk.editor.decide = presses("allow_once")
        await desk.say("Hello")
        results = json.dumps(model_server.requests[-1].json)
        for text in ("Use tabs.", "Never spaces.", "Answer in one line.", "Use React."):
            assert (text in results) is trusted, text
        assert ("mode:fast" in results) is trusted
        assert ("hook:fast" in results) is trusted
        assert "4711" not in results
        assert (tmp_path / "shared/new.md").exists() is trusted
        moves = [event.directories for event in desk.editor.of(DirectoriesChanged)]
        assert moves == ([(str(tmp_path / "shared"),)] if trusted else [])
        notices = [notice.description for notice in desk.editor.of(NoticeShown)]
        assert any("../gone is not a folder" in str(notice) for notice in notices) is trusted
