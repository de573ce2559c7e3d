"""The skills that come with the program: each works, is offered, and costs nothing unused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from acp_agent.config.types import Config, DefinitionConfig
from acp_agent.extensions.definitions.bundled import all_bundled
from acp_agent.extensions.definitions.locations import BUNDLED, bundled_skills
from tests.session.agent_and_skill import write_skill
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import Desk, open_desk


@pytest.mark.parametrize("pattern", ["skills/*/SKILL.md", "agents/*.md"])
def test_their_fields_are_yaml_that_other_agents_can_read(pattern: str) -> None:
    for path in BUNDLED.glob(pattern):
        fields = yaml.safe_load(path.read_text("utf-8").split("---\n")[1])
        assert isinstance(fields["description"], str), path


async def test_each_bundled_skill_is_small_and_names_existing_tools_and_skills(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Hello."))
    await desk.say("Hi")
    (request,) = model_server.requests
    skills = all_bundled()
    tools = {tool["function"]["name"] for tool in request.json["tools"]} | {"code"}
    tools |= {f"skill_{skill.name}" for skill in skills}
    for skill in skills:
        assert skill.name == skill.path.parent.name
        assert len(skill.text) < 2_500, skill.name
        assert set(skill.uses.tools or ()) <= tools, skill.name
        called = {word.strip("`.,;") for word in skill.text.split() if "`skill_" in word}
        assert called <= set(skill.uses.tools or ()), skill.name
    assert "summarize" not in str(request.json)


async def test_bundled_skills_are_commands_and_are_read_when_used(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "a.md").write_text("Text.")
    model_server.add(answer("Hello."), answer("Short."))
    await desk.say("Hi")
    await desk.say("/skill:translate a.md French")
    assert "Translate the meaning, not word by word" in desk.words()[-1]
    assert "- to: French" in desk.words()[-1]
    assert str(BUNDLED) not in desk.words()[-1]
    tools = [tool["function"]["name"] for tool in model_server.requests[1].json["tools"]]
    assert "read" in tools
    assert "shell" not in tools
    assert "skill:translate" in [command.name for command in desk.session.extensions.commands]


async def test_a_projects_skill_replaces_the_bundled_one_of_its_name(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder)
    model_server.add(answer("Fine."))
    await desk.say("/skill:review the parser")
    assert "Look at the diff first." in desk.words()[-1]
    names = [command.name for command in desk.session.extensions.commands]
    assert names.count("skill:review") == 1


async def test_they_can_be_turned_off(tmp_path: Path, model_server: ModelServer) -> None:
    async with open_desk(tmp_path, model_server, config="bundled_skills = false\n") as desk:
        await desk.say("/skill:translate")
        assert model_server.requests == []
        assert not [one for one in desk.session.extensions.commands if "skill:" in one.name]


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (Config(bundled_skills=["test", "none", "review"]), ["review", "test"]),
        (
            Config(
                bundled_skills=["test", "review"], skills={"test": DefinitionConfig(enabled=False)}
            ),
            ["review"],
        ),
        (Config(bundled_skills=[]), []),
    ],
)
def test_some_of_them_can_be_turned_off(config: Config, names: list[str]) -> None:
    assert [one.name for one in bundled_skills(config)] == names
