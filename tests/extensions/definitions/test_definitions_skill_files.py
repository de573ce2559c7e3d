"""Skills in the forms of other programs, and what follows their commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.definitions.inputs import fill_inputs, read_inputs
from acp_agent.extensions.definitions.types import Argument, RunSettings
from tests.extensions.definitions.definition_files import Files

ZHI = """\
name: Extract_Table
description: Extracts tables
system_prompt: |
  Find the tables.
tools: [file_read, file_write, skill_reformat]
input:
  description: A report
  args:
    - {name: file, type: file, required: true}
    - {name: form, type: string, default: csv}
"""


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_skill_of_claude_has_the_name_of_its_folder_and_its_first_line(files: Files) -> None:
    place = files.project / ".claude" / "skills"
    path = put(place / "My_Review" / "SKILL.md", "---\nname: My Review!\nversion: 2\n---\n# Look\n")
    skill = files.the_skill()
    assert (skill.name, skill.description, skill.path) == ("my-review", "Look", path)
    assert skill.by_model
    put(path, "---\ndescription: Looks.\nwhen_to_use: Before a merge.\n---\nLook.")
    assert files.the_skill().description == "Looks. Before a merge."


def test_a_skill_that_codex_chooses_only_by_name_is_only_for_the_user(files: Files) -> None:
    folder = files.project / ".agents" / "skills" / "release"
    put(folder / "SKILL.md", "---\nname: release\ndescription: Releases.\n---\nTag it.")
    policy = put(folder / "agents/openai.yaml", "policy:\n  allow_implicit_invocation: false\n")
    assert not files.the_skill().by_model
    policy.write_text("interface:\n  display_name: Release\npolicy: {}\n")
    assert files.the_skill().by_model
    policy.write_text("policy: {\n")
    found = files.find()
    assert found.skills[0].by_model
    assert [problem.path for problem in found.problems] == [policy]


def test_a_command_of_claude_is_a_skill_that_only_the_user_chooses(files: Files) -> None:
    place = files.home / ".claude" / "commands"
    put(place / "plain.md", "Fix issue $ARGUMENTS.\nThen test.")
    put(
        place / "web" / "part.md",
        "---\nargument-hint: [name]\nallowed-tools: Bash(git:*)\n---\nMake it.",
    )
    (place / "web" / "loop").symlink_to(place)
    found = files.find()
    assert [(one.name, one.description, one.hint, one.by_model) for one in found.skills] == [
        ("plain", "Fix issue $ARGUMENTS.", None, False),
        ("web-part", "Make it.", "[name]", False),
    ]
    assert found.problems == ()


def test_commands_of_other_programs_are_skills_that_only_the_user_chooses(files: Files) -> None:
    put(files.project / ".cursor" / "commands" / "check.md", "Check it.")
    put(files.project / ".opencode" / "command" / "one.md", "---\ndescription: A\n---\nFix $1, $2.")
    put(files.home / ".codex" / "prompts" / "two.md", "Fix $1 with $ARGUMENTS.")
    prompt = "Fix {{args}}, @{src/a.py}:\n!{git log {{args}} | awk {print}}"
    toml = f'description = "Does it."\nprompt = """\n{prompt}\n"""'
    put(files.project / ".gemini" / "commands" / "git" / "three.toml", toml)
    broken = put(files.project / ".gemini" / "commands" / "broken.toml", "prompt = ")
    empty = put(files.project / ".gemini" / "commands" / "empty.toml", "description = 'x'")
    found = files.find()
    assert {one.name: one.text for one in found.skills} == {
        "check": "Check it.",
        "one": "Fix $0, $1.",
        "two": "Fix $0 with $ARGUMENTS.",
        "git-three": "Fix $ARGUMENTS, @src/a.py:\n!`git log $ARGUMENTS | awk {print}`",
    }
    assert not any(one.by_model for one in found.skills)
    assert {one.path for one in found.problems} == {broken, empty}


def test_the_same_skill_in_several_places_is_offered_once(files: Files) -> None:
    put(files.project / ".claude" / "commands" / "deploy.md", "As a command.")
    put(files.project / ".claude" / "skills" / "deploy" / "SKILL.md", "---\n---\nAs theirs.")
    files.skill("deploy", text="As ours.")
    (skill,) = files.find().skills
    assert skill.text == "As ours."


def test_a_yaml_file_of_zhi_is_a_skill_with_its_defaults(files: Files) -> None:
    path = put(files.user / "skills" / "table.yaml", ZHI)
    skill = files.the_skill()
    assert (skill.name, skill.hint, skill.path) == ("extract-table", "file [form]", path)
    assert skill.uses == RunSettings(
        model="small",
        tools=("read", "write", "skill_reformat"),
        max_requests=15,
        output_folder="zhi-output",
    )
    assert skill.text.startswith("Find the tables.\n\nInput: A report\n- file (file, required)\n")
    assert skill.text.endswith("Output: Write it into the folder zhi-output.")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: a\ndescription: b", "system_prompt: it is missing; add what the model is to do"),
        ("name: a\n\tdescription: b", "line 2 is not YAML"),
        ("a: &x [1]\nb: *x", "line 2 has aliases, which are not read; write what is meant"),
        ("name: a\n  b: [", "line 2 is not YAML"),
        ("- name", "the front matter has no fields"),
    ],
)
def test_an_error_in_a_yaml_file_is_reported_with_its_line(
    files: Files, text: str, why: str
) -> None:
    path = put(files.project / ".agents" / "skills" / "bad.yml", text)
    assert files.why(path)[0].startswith(why)


INPUTS = (
    Argument(name="file", type="file", required=True),
    Argument(name="copies", type="integer", default=2),
    Argument(name="loud", type="bool"),
)


@pytest.mark.parametrize(
    ("request_", "values", "missing", "rest"),
    [
        ("", {"copies": "2"}, ["file"], ""),
        ("a.md 3", {"file": "a.md", "copies": "3"}, [], ""),
        ("copies=4 'a b.md'", {"copies": "4", "file": "a b.md"}, [], ""),
        ("a.md loud=true 1 so far", {"file": "a.md", "loud": "true", "copies": "1"}, [], "so far"),
        ("@a.md 1 true other=x", {"file": "@a.md", "copies": "1", "loud": "true"}, [], "other=x"),
    ],
)  # fmt: skip
def test_inputs_are_assigned_by_position_and_by_name(
    tmp_path: Path, request_: str, values: dict[str, str], missing: list[str], rest: str
) -> None:
    for name in ("a.md", "a b.md"):
        (tmp_path / name).touch()
    given = read_inputs(INPUTS, request_, tmp_path)
    assert (given.values, [one.name for one in given.missing], given.remainder) == (
        values,
        missing,
        rest,
    )


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ("b.md", "file: there is no file b.md"),
        ("copies=many", "copies: expected a whole number, found 'many'"),
        ("loud=yes", "loud: expected true or false, found 'yes'"),
    ],
)
def test_an_input_of_another_type_is_refused(tmp_path: Path, request_: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        read_inputs(INPUTS, request_, tmp_path)


@pytest.mark.parametrize(
    ("text", "request_", "filled", "found"),
    [
        ("Fix $ARGUMENTS.", "12 now", "Fix 12 now.", True),
        ("$0 to $ARGUMENTS[1], $2.", "'a b' c", "a b to c, .", True),
        ("awk '{print $1}'", "", "awk '{print $1}'", False),
        ("$issue at $HOME, ${CLAUDE_SKILL_DIR}/x", "7", "7 at $HOME, /s/x", True),
        ("It's $ARGUMENTSX $1a", "don't", "It's $ARGUMENTSX $1a", False),
    ],
)
def test_the_request_replaces_its_placeholder_in_the_text(
    text: str, request_: str, filled: str, found: bool
) -> None:
    variables = {"CLAUDE_SKILL_DIR": "/s"}
    assert fill_inputs(text, request_, {"issue": request_}, variables) == (filled, found)
