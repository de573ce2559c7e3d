"""Rules of the policy hold for what the tools show, not only for what they are asked for."""

from __future__ import annotations

from pathlib import Path

from acp_agent.events import ToolEnded
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import open_desk

RULES = '[permissions]\ndeny = ["Read(.env)"]\nask = ["Read(private/**)"]\n'


async def test_a_search_shows_nothing_of_files_that_rules_keep_from_the_model(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=RULES) as desk:
        for name in ("a.py", ".env", "private/b.py"):
            (desk.folder / name).parent.mkdir(exist_ok=True)
            (desk.folder / name).write_text("token = 12345\n")
        searches = [Call("grep", {"pattern": "token"}) for _ in range(2)]
        searches[1] = Call("grep", {"pattern": "token", "mode": "files"})
        model_server.add(answer(*searches), answer("Done."))
        await desk.say("Search")
        results = [event.result for event in desk.editor.of(ToolEnded)]
    assert len(results) == 2
    for result in results:
        assert "a.py" in result
        assert "left out: .env; the rule `Read(.env)`" in result
        assert "left out: private/b.py; the rule `Read(private/**)`" in result
        assert "12345" not in result.replace("token = 12345", "", 1)
