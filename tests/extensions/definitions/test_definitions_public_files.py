"""Files as public repositories have them are used, and what is wrong in them is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.definitions.definition_files import Files


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["context: same"], []),
        (["context: |", "  !git log --oneline"], []),
        (["type: orchestrator"], []),
        (["license: 5"], ["license: expected text"]),
        (["arguments:", "  - name: file", "    description: What to read.", "  - more"], []),
        (['argument-hint: "[--images "<glob>"] [--yes]"'], []),
        ([f"description: {'Long. ' * 300}"], []),
    ],
)
def test_a_command_of_another_program_is_used_although_a_field_is_unusual(
    files: Files, lines: list[str], why: list[str]
) -> None:
    path = files.project / ".claude" / "commands" / "fix.md"
    path.parent.mkdir(parents=True)
    described = [] if lines[0].startswith("description") else ["description: Fixes it."]
    path.write_text("\n".join(["---", *described, *lines, "---", "Do it."]))
    found = files.find()
    (skill,) = found.skills
    assert len(found.problems) == len(why)
    for problem, text in zip(found.problems, why, strict=True):
        assert problem.why.startswith(text)
    assert not any(problem.skipped for problem in found.problems)
    assert len(skill.description) <= 1_024
    if lines[0] == "arguments:":
        assert [argument.name for argument in skill.inputs] == ["file", "more"]
    if lines[0].startswith("argument-hint"):
        assert skill.hint == '[--images "<glob>"] [--yes]'


def test_a_skill_of_the_standard_with_a_long_description_is_used_with_its_beginning(
    files: Files,
) -> None:
    path = files.skill("fix", f"description: {'x ' * 600}")
    (skill,) = files.find().skills
    assert skill.description == ("x " * 512).strip()
    (why,) = files.why(path)
    assert "1,024" in why


@pytest.mark.parametrize(
    "place", [".roo/commands", ".windsurf/workflows", ".clinerules/workflows", ".claude/commands"]
)
def test_commands_of_further_programs_are_those_of_the_user(files: Files, place: str) -> None:
    folder = files.project / Path(place)
    folder.mkdir(parents=True)
    (folder / "Tidy up.md").write_text("---\ndescription: Tidies.\nmode: code\n---\nTidy up.")
    (skill,) = files.find().skills
    assert (skill.name, skill.by_model, skill.text) == ("tidy-up", False, "Tidy up.")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (".opencode/agent/look.md", "look"),
        (".opencode/agent/deep/look.md", "deep-look"),
        (".github/agents/look.agent.md", "look"),
        (".cursor/agents/look.md", "look"),
        (".claude/agents/look.md", None),
    ],
)
def test_an_agent_without_front_matter_is_used_where_its_own_program_uses_it(
    files: Files, file: str, name: str | None
) -> None:
    path = files.project / file
    path.parent.mkdir(parents=True)
    path.write_text("# Look closely\n\nYou look.")
    found = files.find()
    assert [(agent.name, agent.description) for agent in found.agents] == (
        [(name, "Look closely")] if name else []
    )
    assert [problem.is_note for problem in found.problems] == ([] if name else [True])


def test_examples_whose_lines_look_like_fields_belong_to_the_description(files: Files) -> None:
    path = files.project / ".claude" / "agents" / "look.md"
    path.parent.mkdir(parents=True)
    said = ['user: "Look?"\\nassistant: "I look."', 'user: "Again: look?" and more']
    lines = ["name: look", "description: Looks. Examples:\\n Context: a start", *said]
    path.write_text("\n".join(["---", *lines, "color: red", "tools: Read", "---", "You look."]))
    (agent,) = files.find().agents
    assert agent.uses.tools == ("read",)
    assert agent.description.startswith("Looks. Examples:")
    assert "and more" in agent.description
    path.write_text(path.read_text().replace("tools: Read", "tools: Read: more"))
    assert not files.find().agents
