"""A skill's file: what each of its fields means, and which of several files is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.config.types import AgentConfig, Config, DefinitionConfig
from acp_agent.extensions.definitions.discovery import FoundDefinitions
from acp_agent.extensions.definitions.types import RunSettings, Skill
from tests.extensions.definitions.definition_files import Files

EVERYTHING = """\
license: Apache-2.0
compatibility: Requires git
metadata:
  author: somebody
  version: "1.0"
allowed-tools: Bash(git:*) Read
argument-hint: "[file]"
model: small
thought-level: off
temperature: 0.5
max-output-tokens: 4096
tools: read, grep, mcp__git__*
disallowed-tools:
  - shell
max-requests: 20
disable-model-invocation: true
user-invocable: false
context: fork
agent: reviewer
""".splitlines()


def test_a_skill_with_a_name_and_a_description_asks_for_nothing(files: Files) -> None:
    path = files.skill("release-notes", text="Read the log.\n\n---\n\nWrite.")
    assert files.the_skill() == Skill(
        name="release-notes",
        description="What release-notes does.",
        text="Read the log.\n\n---\n\nWrite.",
        path=path,
        source="project",
    )


def test_every_field_of_a_skill_is_read(files: Files) -> None:
    path = files.skill("review", *EVERYTHING)
    assert files.the_skill() == Skill(
        name="review",
        description="What review does.",
        text="Do it.",
        path=path,
        source="project",
        hint="[file]",
        uses=RunSettings(
            model="small",
            thought_level="off",
            temperature=0.5,
            max_output=4096,
            tools=("read", "grep", "mcp__git__*"),
            without=("shell",),
            max_requests=20,
        ),
        by_model=False,
        by_user=False,
        runs_in_subagent=True,
        agent="reviewer",
    )


def test_permissions_that_a_skill_has_in_another_program_have_no_effect(files: Files) -> None:
    files.skill("deploy", "allowed-tools: [Bash, 'Bash(rm *)']", "permissionMode: yolo")
    found = files.find()
    assert [skill.uses for skill in found.skills] == [RunSettings()]
    assert [problem.why for problem in found.problems] == [
        "the field permissionMode is not used here; take it out, or leave it"
    ]


def test_fields_without_effect_are_reported(files: Files) -> None:
    path = files.skill("deploy", "permissions: {a: []}", "settings: [1]", "maxturns: 3")
    assert files.why(path) == [
        "the fields maxturns, permissions, settings are not used here; take them out, or leave them"
    ]
    assert [skill.name for skill in files.find().skills] == ["deploy"]


def test_inputs_and_outputs_of_a_skill_are_in_its_hint_and_in_its_prompt(files: Files) -> None:
    files.skill(
        "report",
        "max_turns: 4",
        "input:",
        "  description: What to report on",
        "  args:",
        "    - {name: topic, type: string, required: true, description: in a word}",
        "    - {name: depth, type: integer}",
        "output: {description: A page in Markdown, directory: zhi-output}",
    )
    skill = files.the_skill()
    assert skill.hint == "topic [depth]"
    assert skill.uses.max_requests == 4
    assert skill.text == (
        "Do it.\n\nInput: What to report on\n- topic (string, required): in a word\n"
        "- depth (integer, optional)\n\n"
        "Output: A page in Markdown. Write it into the folder zhi-output."
    )


def test_the_hint_that_a_skill_names_itself_goes_before_that_of_its_input(files: Files) -> None:
    files.skill("report", "argument-hint: what", "input: {description: Something else}")
    assert files.the_skill().hint == "what"


def test_other_programs_fields_and_tools_are_understood_where_they_mean_ours(files: Files) -> None:
    files.skill(
        "review", "effort: high", "tools: Read, Bash", "disallowedTools: [Write]", "maxTurns: 3"
    )
    assert files.the_skill().uses == RunSettings(
        thought_level="high", tools=("read", "shell"), without=("write",), max_requests=3
    )


@pytest.mark.parametrize("names", [("effort", "thought-level"), ("thought-level", "effort")])
def test_our_name_of_a_field_goes_before_another_programs(
    files: Files, names: tuple[str, str]
) -> None:
    files.skill("fix", *(f"{name}: {'low' if name == 'effort' else 'max'}" for name in names))
    assert files.the_skill().uses.thought_level == "max"


def test_a_hint_is_short_enough_for_an_editor(files: Files) -> None:
    files.skill("fix", f"argument-hint: {'issue ' * 500}")
    assert len(files.the_skill().hint or "") <= 200


def test_a_hint_in_brackets_is_shown_as_it_was_written(files: Files) -> None:
    files.skill("fix", "argument-hint: [issue number]")
    assert files.the_skill().hint == "[issue number]"


def test_a_description_becomes_one_line_without_control_characters(files: Files) -> None:
    files.skill("fix", "description: >", "  Mends what", "  is broken.", "argument-hint: '[file]'")
    assert files.the_skill().description == "Mends what is broken."
    files.skill("fix", r'description: "One\n## System\e[31m two"')
    assert files.the_skill().description == "One ## System [31m two"


@pytest.mark.parametrize("line", ["model: inherit", "model:", "model: ~"])
def test_inherit_and_nothing_both_stand_for_the_sessions_model(files: Files, line: str) -> None:
    files.skill("fix", line)
    assert files.the_skill().uses.model is None


@pytest.mark.parametrize("model", ["small", "openai/gpt-5.2", "local/qwen3:30b", "a/b/c"])
def test_a_model_has_the_same_name_as_everywhere(files: Files, model: str) -> None:
    files.skill("fix", f"model: {model}")
    assert files.the_skill().uses.model == model


@pytest.mark.parametrize("model", ["sonnet", "claude-opus-4-7", "gpt-5", "/x", "small model"])
def test_a_model_of_another_program_is_reported_and_the_sessions_is_used(
    files: Files, model: str
) -> None:
    path = files.skill("fix", f"model: {model}", "temperature: 1")
    (why,) = files.why(path)
    assert why.startswith(f"model: {model} is not known here, so the session's model is used; ")
    assert [skill.uses for skill in files.find().skills] == [RunSettings(temperature=1)]
    assert not files.find().problems[0].skipped


def test_a_part_of_a_tool_gives_nothing_and_takes_all_of_it(files: Files) -> None:
    path = files.skill("fix", "tools: Read, Bash(git add, git commit)", "disallowed-tools: Edit(*)")
    given, taken = files.why(path)
    assert given.startswith("tools: Bash(git add, git commit) is a part of a tool, so it is left")
    assert taken.startswith("disallowed-tools: Edit(*) is a part of a tool, so all of the tool")
    (skill,) = files.find().skills
    assert (skill.uses.tools, skill.uses.without) == (("read",), ("edit",))


@pytest.mark.parametrize(
    ("uses", "allowed"),
    [
        (RunSettings(), {"read", "shell", "mcp__git__log"}),
        (RunSettings(tools=()), set()),
        (RunSettings(tools=("read", "mcp__git__*")), {"read", "mcp__git__log"}),
        (RunSettings(without=("mcp__*", "shell")), {"read"}),
        (RunSettings(tools=("*",), without=("shell",)), {"read", "mcp__git__log"}),
    ],
)
def test_a_tool_is_allowed_that_is_named_and_not_refused(
    uses: RunSettings, allowed: set[str]
) -> None:
    assert {tool for tool in ("read", "shell", "mcp__git__log") if uses.allows(tool)} == allowed


def test_no_tools_is_something_else_than_all(files: Files) -> None:
    files.skill("fix", "tools: []")
    assert files.the_skill().uses.tools == ()


def test_of_several_skills_of_a_name_the_most_specific_is_used(files: Files) -> None:
    files.cwd = files.project / "part"
    folders = (files.project, files.cwd)
    names = ".claude", ".agents", ".acp-agent"
    for source, places in (
        ("user", [files.home / ".claude", files.home / ".agents", files.user]),
        ("project", [folder / name for folder in folders for name in names]),
    ):
        for place in places:
            path = files.skill("same", place=place)
            (skill,) = files.find().skills
            assert (skill.path, skill.source) == (path, source)


def test_a_broken_file_hides_nothing_and_is_reported(files: Files) -> None:
    whole = files.skill("same", place=files.user)
    broken = files.skill("same", "temperature: hot")
    found = files.find()
    assert [skill.path for skill in found.skills] == [whole]
    assert [(problem.path, problem.skipped) for problem in found.problems] == [(broken, True)]


def test_skills_of_all_folders_are_listed_by_name(files: Files) -> None:
    for name, place in (("c", files.user), ("a", None), ("b", files.home / ".agents")):
        files.skill(name, place=place)
    assert [skill.name for skill in files.find().skills] == ["a", "b", "c"]


def test_files_that_are_no_skills_are_ignored(files: Files) -> None:
    place = files.project / ".agents" / "skills"
    (place / "empty").mkdir(parents=True)
    (place / "README.md").write_text("About these skills.")
    files.skill(".hidden")
    assert files.find() == FoundDefinitions()


def test_the_users_configuration_goes_before_a_file(files: Files) -> None:
    files.skill(
        "review", "model: opus", "thought-level: low", "max-output-tokens: 5", "max-requests: 7"
    )
    own = DefinitionConfig(
        model="openai/o9", thought_level="high", temperature=0.0, max_output_tokens=9
    )
    assert files.the_skill(Config(skills={"review": own})).uses == RunSettings(
        model="openai/o9", thought_level="high", temperature=0.0, max_output=9, max_requests=7
    )


def test_the_configuration_changes_only_the_named_fields(files: Files) -> None:
    files.skill("review", "model: small", "temperature: 1")
    config = Config(
        skills={
            "review": DefinitionConfig(max_output_tokens=9),
            "none": DefinitionConfig(model="small"),
        },
        agents={"review": AgentConfig(model="openai/o9")},
    )
    assert files.the_skill(config).uses == RunSettings(model="small", temperature=1, max_output=9)


def test_a_disabled_skill_is_absent_without_a_message(files: Files) -> None:
    files.skill("deploy", "model: opus")
    config = Config(skills={"deploy": DefinitionConfig(enabled=False)})
    assert files.find(config) == FoundDefinitions()


def test_a_skill_written_on_windows_is_read_like_any_other(files: Files) -> None:
    path = files.skill("fix", "model: small", text="Do it.\nThen stop.")
    path.write_bytes("\ufeff".encode() + path.read_bytes().replace(b"\n", b"\r\n"))
    skill = files.the_skill()
    assert (skill.text, skill.uses) == ("Do it.\nThen stop.", RunSettings(model="small"))


def test_a_user_may_keep_skills_elsewhere_and_link_to_them(files: Files, tmp_path: Path) -> None:
    files.skill("mine", place=tmp_path / "elsewhere")
    (files.user / "skills").mkdir(parents=True)
    (files.user / "skills" / "mine").symlink_to(tmp_path / "elsewhere" / "skills" / "mine")
    assert files.the_skill().source == "user"
