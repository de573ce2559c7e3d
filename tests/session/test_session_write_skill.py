"""The model writes a skill: shown as a diff, checked, and never in the place of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_agent.content import DiffPart
from acp_agent.events import ToolEnded
from tests.session.agent_and_skill import write_skill
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, open_desk, presses


def call(**more: Any) -> Call:
    made = {"name": "release", "description": "Makes a release: with tags.", "text": "Tag $0."}
    return Call("write_skill", {**made, **more})


def tools(server: ModelServer, request: int) -> list[str]:
    return [tool["function"]["name"] for tool in server.requests[request].json["tools"]]


@pytest.mark.parametrize("place", ["project", "user"])
async def test_a_skill_is_written_to_its_folder_after_the_users_approval(
    tmp_path: Path, model_server: ModelServer, place: str
) -> None:
    environ = {"HOME": str(tmp_path / "user")}
    async with open_desk(tmp_path, model_server, environ=environ) as desk:
        await desk.session.core.settings.change("mode", "accept-edits")
        model_server.add(
            answer("Hi."), answer(call(place=place, tools=["read", "gr*"])), answer("Written.")
        )
        await desk.say("Hi")
        await desk.say("/skill-new how we release")
        assert "write_skill" not in tools(model_server, 0)
        assert "write_skill" in tools(model_server, 1)
        assert "The user adds: how we release" in desk.words()[1]
        home = desk.folder if place == "project" else desk.session.core.services.home
        path = home / ".agents" / "skills" / "release" / "SKILL.md"
        (asked,) = desk.editor.asked
        (diff,) = [part for part in asked.content if isinstance(part, DiffPart)]
        assert (diff.path, diff.old_text, diff.new_text) == (str(path), None, path.read_text())
        assert path.read_text() == (
            "---\nname: release\ndescription: 'Makes a release: with tags.'\n"
            "tools:\n- read\n- gr*\n---\n\nTag $0.\n"
        )
        await desk.session.extensions.definitions.load()
        skill = desk.session.extensions.definitions.skill("release")
        assert skill is not None
        assert skill.source == place


async def test_a_skill_that_the_user_refuses_is_not_written(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = presses("reject_once")
    model_server.add(answer(call(place="user")), answer("Pity."))
    await desk.say("/skill-new x")
    assert not (desk.session.core.services.home / ".agents").exists()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"name": "Release"}, "name: expected a name of lowercase letters"),
        ({"name": "../release"}, "name: expected a name of lowercase letters"),
        ({"description": " "}, "description: it is missing"),
        ({"tools": ["read", "raed"]}, "there is no tool raed"),
        ({"name": "review"}, "there is a skill review already"),
    ],
)
async def test_an_invalid_or_existing_skill_is_refused(
    desk: Desk, model_server: ModelServer, more: dict[str, Any], why: str
) -> None:
    folder = write_skill(desk.folder)
    before = (folder / "SKILL.md").read_text()
    model_server.add(answer(call(**more)), answer("Pity."))
    await desk.say("/skill-new x")
    assert why in desk.editor.of(ToolEnded)[0].result
    assert desk.editor.asked == []
    assert (folder / "SKILL.md").read_text() == before
    assert [one.name for one in Path(folder.parent).iterdir()] == ["review"]
