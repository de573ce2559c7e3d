"""docs/skills.md: its examples work, and it tells every field."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from acp_agent.config.load import load_config
from acp_agent.extensions.definitions.fields import (
    FIELD_ALIASES,
    AgentFields,
    RunFields,
    SkillFields,
)
from acp_agent.extensions.definitions.tool_names import tool_names
from tests.extensions.definitions.definition_files import Files

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "skills.md").read_text("utf-8")
FIELDS = "".join(re.findall(r"^\| Field \|.*\n(?:\|.*\n)+", PAGE, re.MULTILINE))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_are_found_and_nothing_is_wrong_with_them(
    files: Files, tmp_path: Path
) -> None:
    skill, *agents = blocks("markdown")
    path = files.project / ".agents" / "skills" / "release-notes" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(skill, "utf-8")
    for number, agent in enumerate(agents):
        path = files.project / ".agents" / "agents" / f"{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(agent, "utf-8")
    (configuration,) = blocks("toml")
    (tmp_path / "config.toml").write_text(configuration, "utf-8")
    found = files.find(load_config(tmp_path / "config.toml", {}))
    assert found.problems == ()
    (release_notes,) = found.skills
    assert release_notes.uses.model == "openai/gpt-5-mini"
    assert release_notes.uses.allows("shell")
    reviewer, security = found.agents
    assert (reviewer.name, security.name) == ("reviewer", "security-reviewer")
    assert (reviewer.uses.model, reviewer.uses.thought_level) == ("openai/gpt-5.2", "max")
    assert security.prompt == reviewer.prompt
    assert security.uses == msgspec.structs.replace(reviewer.uses, model=None, thought_level="high")


@pytest.mark.parametrize("kind", [SkillFields, AgentFields])
def test_every_field_is_documented(kind: type[RunFields]) -> None:
    told = re.findall(
        r"`([a-z-]+)`", "\n".join(re.findall(r"^\| (`[^|]*`) \|", FIELDS, re.MULTILINE))
    )
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert names <= set(told)
    assert set(told) <= {
        field.encode_name
        for one in (SkillFields, AgentFields)
        for field in msgspec.structs.fields(one)
    }


def test_fields_of_other_programs_are_documented() -> None:
    for theirs, ours in FIELD_ALIASES.items():
        assert f"`{theirs}` " in PAGE
        assert f"`{ours}`" in PAGE
    assert all(f"`{tool}`" in PAGE for tool in tool_names().aliases)


def test_the_documented_error_is_the_shown_one(files: Files) -> None:
    path = files.skill("deploy", "license: ours: see LICENSE")
    (why,) = files.why(path)
    assert f"/deploy/SKILL.md: {why}\n" in PAGE
