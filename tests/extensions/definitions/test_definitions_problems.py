"""What is said of a file that is broken, and that nothing in a file can do harm."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.fields import AgentFields, SkillFields, parse_fields
from acp_agent.extensions.definitions.front_matter import (
    MAX_FRONT_MATTER,
    CoreLoader,
    parse_yaml,
    read_front_matter,
)
from acp_agent.extensions.definitions.reading import MAX_FILES, group_problems
from tests.extensions.definitions.definition_files import Files, write

NAME = "a name of lowercase letters, digits and hyphens, at most 64"
NAMES = "a list of names, or names with commas between"
DESCRIPTION = "text of at most 1,024 characters"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("name: Fix", f'name: expected {NAME}, found "Fix"'),
        ("name: fix-", f'name: expected {NAME}, found "fix-"'),
        ("name: fix--it", f'name: expected {NAME}, found "fix--it"'),
        ('name: "fix\\n"', f'name: expected {NAME}, found "fix"'),
        (f"name: {'x' * 65}", f'name: expected {NAME}, found "{"x" * 37}..."'),
        ("name: 7", f"name: expected {NAME}, found 7"),
        ("name:", "name: it is missing; add it to the front matter"),
        ("description:", "description: it is missing; add it to the front matter"),
        ("description: ' '", "description: it is missing; add it to the front matter"),
        (
            "description: [a]",
            "description: expected text of at most 1,024 characters, found a list",
        ),
        ("temperature: 2.5", "temperature: expected a number from 0 to 2, found 2.5"),
        (
            "max-output-tokens: 0",
            "max-output-tokens: expected a whole number from 1 to 100,000,000, found 0",
        ),
        ("max-requests: '5'", 'max-requests: expected a whole number from 1 to 10,000, found "5"'),
        (
            "effort: huge",
            'effort: expected one of off, minimal, low, medium, high, xhigh, max, found "huge"',
        ),
        ("user-invocable: no", 'user-invocable: expected true or false, found "no"'),
        ("context: frok", 'context: expected fork, or nothing, found "frok"'),
        (
            "tools: {read: true}",
            f"tools: expected {NAMES}, found names with values",
        ),
        ("tools:", "tools: there is nothing behind it; write [] for none, or take it out"),
        ("model: true", "model: expected text, found true"),
    ],
)
def test_a_wrong_value_is_reported_with_its_field_and_the_expected_type(
    files: Files, line: str, why: str
) -> None:
    path = files.skill("fix", line)
    assert files.why(path) == [why]
    assert files.find().skills == ()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("metadata: none", 'metadata: expected names with values, found "none"'),
        ("license: 2024", "license: expected text, found 2024"),
        (
            "allowed_tools: {read: true}",
            f"allowed_tools: expected {NAMES}, found names with values",
        ),
    ],
)
def test_a_wrong_value_that_changes_nothing_is_reported_and_the_file_is_used(
    files: Files, line: str, why: str
) -> None:
    path = files.skill("fix", line)
    assert files.why(path) == [why]
    assert [one.name for one in files.find().skills] == ["fix"]


def test_fields_that_only_describe_a_file_are_ignored(files: Files) -> None:
    files.skill("fix", "author: me", "tags: [a, b]", "source: community", "date_added: 2026-01-01")
    assert files.the_skill().name == "fix"


def test_the_same_problem_of_many_files_is_grouped_unless_they_are_skipped(files: Files) -> None:
    for name in ("one", "two", "three"):
        files.skill(name, "model: sonnet")
        files.skill(f"{name}-broken", "context: frok")
    shown = group_problems(files.find().problems)
    assert sorted((one.skipped, one.further_files) for one in shown) == [
        (False, 2), (True, 0), (True, 0), (True, 0),
    ]  # fmt: skip


QUOTE = "; texts with : # [ or { in them go in quotes"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ["license: see there: LICENSE"],
            "line 4 is not YAML (mapping values are not allowed here)" + QUOTE,
        ),
        (
            ["license: MIT", "metadata: [file] [line]"],
            "line 5 is not YAML (expected <block end>, but found '[')" + QUOTE,
        ),
        (
            ["description: &a x", "license: *a"],
            "line 4 has aliases, which are not read; write what is meant",
        ),
        (
            ["description: !!python/object/apply:os.system [id]"],
            "line 3 has tags, which are not read; write what is meant",
        ),
        (["license: MIT", "license: GPL"], "line 5 has license once more; take one out"),
        (
            [r'description: "half \ud83d"'],
            "line 3 has halves of characters, which are not read; write what is meant",
        ),
        (["x: \x07"], "the front matter is not YAML; take out what is no text"),
        ([f"x: {'7' * 5000}"], "the front matter is not YAML; take out what is no text"),
        (
            [f"x: {'- ' * 5000}"],
            "line 4 is not YAML (sequence entries are not allowed here)" + QUOTE,
        ),
        ([f"x:\n{'- ' * 5000}"], "the front matter is nested too deeply; make it flat"),
        ([f"x: {'[' * 5000}"], "the front matter is nested too deeply; make it flat"),
        (
            [f"x: {'y' * MAX_FRONT_MATTER}"],
            "the front matter is longer than 16,384 characters; shorten it",
        ),
    ],
)
def test_front_matter_that_is_no_plain_yaml_is_reported_with_its_line(
    files: Files, lines: list[str], why: str
) -> None:
    assert files.why(files.skill("fix", *lines)) == [why]


EXAMPLES = """description: Use it when asked to "review". Examples:

<example>
Context: A change was made.
user: "Review it"
assistant: "I use: the reviewer"
</example>"""


def test_a_description_continues_after_examples_as_in_other_programs(files: Files) -> None:
    place = files.project / ".claude"
    files.agent("reviewer", EXAMPLES, "tools: *", "disallowedTools: Bash", place=place)
    agent = files.the_agent("reviewer")
    assert agent.description.startswith('Use it when asked to "review". Examples: <example>')
    assert agent.description.endswith('assistant: "I use: the reviewer" </example>')
    assert agent.uses.allows("read")
    assert not agent.uses.allows("shell")


@pytest.mark.parametrize("limit", ["tools: [read", "disallowedTools: a: b", "max-requests: 1: 2"])
def test_a_description_never_exceeds_its_limit(files: Files, limit: str) -> None:
    path = files.agent("reviewer", EXAMPLES, limit, place=files.project / ".claude")
    (why,) = files.why(path)
    assert "is not YAML" in why
    assert files.find().agents == ()


def test_prose_with_a_colon_or_brackets_is_read_as_text(files: Files) -> None:
    files.skill(
        "fix",
        'description: Mends it. Use when: it breaks, or says "no"',
        "argument-hint: [file] [line]",
    )
    skill = files.the_skill()
    assert skill.description == 'Mends it. Use when: it breaks, or says "no"'
    assert skill.hint == "[file] [line]"


def test_a_skill_in_a_folder_of_another_name_is_reported_and_used(files: Files) -> None:
    path = files.skill("fix", "name: mend")
    assert files.why(path) == ["name: it is mend, that of its folder fix; give both the same"]
    assert [skill.name for skill in files.find().skills] == ["mend"]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "there is no front matter; begin the file with a line of ---"),
        (b"# Fix\n---\nname: fix\n", "there is no front matter; begin the file with a line of ---"),
        (b"---\nname: fix\n# Fix", "the front matter does not end; put a line of --- below it"),
        (b"---\n---\n", "the front matter has no fields; write name: and description: there"),
        (b"---\n- a\n---", "the front matter has no fields; write name: and description: there"),
        (b"---\nname: fix\n\xff\n", "line 3 is not UTF-8 text; save the file as UTF-8"),
        (b"-" * 100_001, "it is larger than 100 kB; put parts of it into files beside it"),
    ],
)
def test_a_file_that_is_no_definition_is_reported(files: Files, raw: bytes, why: str) -> None:
    path = files.skill("fix")
    path.write_bytes(raw)
    assert files.why(path) == [why]


def test_every_broken_file_is_reported_and_the_others_are_found(files: Files) -> None:
    broken = {files.skill("a", "name: A"), files.agent("b", "extends: B")}
    files.skill("c")
    files.agent("d")
    found = files.find()
    assert [skill.name for skill in found.skills] == ["c"]
    assert [agent.name for agent in found.agents] == ["d"]
    assert {problem.path for problem in found.problems} == broken


def test_a_projects_link_may_not_lead_out_of_the_project(files: Files, tmp_path: Path) -> None:
    outside = write(tmp_path / "out" / "fix" / "SKILL.md", "name: fix", "description: Theirs.")
    place = files.project / ".agents" / "skills"
    (place / "fix").mkdir(parents=True)
    link = place / "fix" / "SKILL.md"
    link.symlink_to(outside)
    why = ["it is a link that leads out of the project; put a file there"]
    assert files.why(link) == why
    link.unlink()
    link.parent.rmdir()
    link.parent.symlink_to(outside.parent)
    assert files.why(link) == why
    link.parent.unlink()
    place.rmdir()
    place.symlink_to(tmp_path / "out")
    assert files.why(link) == why


def test_a_projects_link_may_lead_to_another_folder_of_the_project(files: Files) -> None:
    files.skill("fix", place=files.project / "tools")
    (files.project / ".agents").mkdir()
    (files.project / ".agents" / "skills").symlink_to("../tools/skills")
    assert files.the_skill().path == files.project / ".agents" / "skills" / "fix" / "SKILL.md"


def test_a_project_that_is_reached_by_a_link_has_its_skills(files: Files, tmp_path: Path) -> None:
    files.skill("fix")
    files.cwd = tmp_path / "link"
    files.cwd.symlink_to(files.project)
    assert files.the_skill().path.is_relative_to(files.cwd)


def test_a_pipe_a_folder_and_a_loop_of_links_are_reported_at_once(files: Files) -> None:
    place = files.project / ".agents" / "skills"
    for name in ("circle", "folder", "nothing", "pipe"):
        (place / name).mkdir(parents=True)
    os.mkfifo(place / "pipe" / "SKILL.md")
    (place / "folder" / "SKILL.md").mkdir()
    (place / "circle" / "SKILL.md").symlink_to("SKILL.md")
    (place / "nothing" / "SKILL.md").symlink_to("nowhere")
    found = files.find()
    assert [problem.why for problem in found.problems] == [
        "cannot be read (Too many levels of symbolic links); check who may read it",
        "it is no ordinary file; put a Markdown file there",
        "cannot be read (No such file or directory); check who may read it",
        "it is no ordinary file; put a Markdown file there",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_a_projects_file_of_another_user_is_reported_and_skipped(files: Files) -> None:
    skill, agent = files.skill("fix"), files.agent("reviewer")
    for path in (skill, agent):
        os.chown(path, 4321, 4321)
    found = files.find()
    assert not found.skills
    assert not found.agents
    why = "it belongs to another user; copy it, or make it yours with chown"
    assert {problem.path: problem.why for problem in found.problems} == {skill: why, agent: why}
    os.chown(files.project, 4321, 4321)  # root works in that user's project
    os.chown(skill.parent, 4321, 4321)
    assert [one.name for one in files.find().skills] == ["fix"]


def test_of_a_folder_with_too_many_files_the_first_are_used(files: Files) -> None:
    for number in range(MAX_FILES + 1):
        files.agent(f"a{number}", place=files.project / ".claude")
    found = files.find()
    assert len(found.agents) == MAX_FILES
    (problem,) = found.problems
    assert problem.why == "only the first 1000 of 1001 files are used; take some out"
    assert not problem.is_note


def test_files_whose_names_are_no_text_are_reported_in_text(files: Files) -> None:
    place = files.project / ".agents" / "agents"
    place.mkdir(parents=True)
    for name in (b"\xff.md", b"a\nb.md"):
        Path(os.fsdecode(bytes(place) + b"/" + name)).write_text("no front matter")
    end = "has characters that cannot be seen; rename it"
    assert [(problem.path, problem.why) for problem in files.find().problems] == [
        (place, f"the name 'a\\nb.md' {end}"),
        (place, f"the name '\\udcff.md' {end}"),
    ]


def test_the_next_search_finds_changes(files: Files) -> None:
    path = files.skill("fix")
    assert files.the_skill().uses.model is None
    files.skill("fix", "model: small")
    assert files.the_skill().uses.model == "small"
    path.unlink()
    assert files.find().skills == ()


WORDS = [
    "name: ", "description: ", "tools: ", "model: ", "a", "- ", "[", "]", "{", "}", "\n", "\n  ",
    ": ", "!!int ", "!!timestamp ", "!!binary ", "&a ", "*a", "|\n", ">\n", "'", '"', "\\ud800",
    "0x1f", "1e5", "off", "2024-01-01", "? ", "<<: ", "%YAML 1.1\n", "...\n", "---\n", "#", "\t",
    "\x00", "\x85", "\u2028", "\ufeff", "~", "@", "`", ", ", "9" * 5000,
]  # fmt: skip


PLAIN_WORDS = [
    *(
        "name: ",
        "description: ",
        "a",
        "é",
        "\u201c",
        "\n",
        "\n  ",
        "- ",
        ": ",
        "|",
        "|\n  ",
        ">-\n  ",
    ),
    *(
        "'",
        '"',
        "#",
        " # ",
        "true",
        "no",
        "12",
        "1.5",
        "~",
        "null",
        "<<",
        ", ",
        "---",
        "...",
        "*.py",
    ),
]


@given(words=st.lists(st.sampled_from(PLAIN_WORDS), max_size=15))
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_parser_in_c_reads_what_the_other_one_reads(words: list[str]) -> None:
    text = "".join(words)
    with suppress(yaml.YAMLError, ConfigError):
        fields = yaml.load(text, CoreLoader)
        if isinstance(fields, dict):
            texts = {name: value for name, value in fields.items() if isinstance(name, str)}
            assert repr(dict(parse_yaml(text, first=2))) == repr(texts)


@given(words=st.lists(st.sampled_from(WORDS), max_size=15), text=st.text(max_size=20))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_is_front_matter_or_gets_an_error(words: list[str], text: str) -> None:
    for body in ("".join(words), text):
        with suppress(ConfigError):
            fields, below = read_front_matter(f"---\n{body}\n---\n")
            assert isinstance(below, str)
            assert parse_fields(fields, AgentFields).name == parse_fields(fields, SkillFields).name
