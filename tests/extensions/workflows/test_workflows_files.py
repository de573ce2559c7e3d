"""Workflows' files: what is read, and what is said of mistakes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from acp_agent.config.localization import translator_for
from acp_agent.errors import ConfigError
from acp_agent.extensions.workflows.cron import parse_cron
from acp_agent.extensions.workflows.expressions import Reference, is_true, parse_expression
from acp_agent.extensions.workflows.fields import parse_duration
from acp_agent.extensions.workflows.find import find_workflows, read_workflow
from acp_agent.extensions.workflows.parse import parse_workflow
from acp_agent.extensions.workflows.patterns import FilePatterns
from acp_agent.extensions.workflows.placeholders import fill_placeholders

WHOLE = """\
name: release
on:
  files: ["src/**/*.py", "!src/gen/**"]
  every: 1h30m
  cron: ["0 9 * * 1-5"]
inputs:
  version: 1.0
  target: {required: true, description: where it goes}
mode: plan
steps:
  - id: look
    prompt: Look at ${{ inputs.version }}.
  - id: both
    if: steps.look.output contains 'x'
    parallel:
      - {id: a, prompt: "${steps.look.output}"}
      - {id: b, skill: review, with: {file: "${inputs.target}"}, agent: plan}
  - id: end
    prompt: ${steps.b.status}
    retry: 2
    timeout: 90s
    continue_on_error: true
"""


class Values:
    def __init__(self, values: Mapping[str, str], *, failed: bool = False) -> None:
        self._values = values
        self.failed = failed

    def value(self, reference: Reference) -> str:
        return self._values.get(str(reference), "")


def test_all_fields_of_a_file_are_read() -> None:
    workflow, mistakes = parse_workflow(WHOLE, "file")
    assert mistakes == []
    assert workflow is not None
    assert [step.id for step in workflow.every_step()] == ["look", "both", "a", "b", "end"]
    assert {one.name: one.default for one in workflow.inputs} == {"version": "1.0", "target": None}
    assert workflow.triggers.every == 5_400
    look, both, end = workflow.steps
    assert [step.separate_session for step in (look, *both.parallel, end)] == [
        False,
        True,
        True,
        False,
    ]
    assert (end.retry, end.timeout, end.continue_on_error) == (2, 90.0, True)


STEP = "steps:\n  - id: a\n    prompt: x\n"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "the file is empty"),
        ("- a", 1, "expected names with values"),
        ("steps: []", 1, "there are none"),
        ("steps: hello", 1, "expected a list"),
        ("a: [", 1, "not YAML"),
        ("x: &a [*a]", 1, "aliases"),
        ("x: !!python/object:os.system y", 1, "tags"),
        ("steps:\n- " + "[" * 60, 2, "too deeply"),
        ("name: a\nname: b\n" + STEP, 2, "name once more"),
        ("name: \x00", 1, "may not be in YAML"),
        ("steps:\n  - prompt: x", 2, "id: it is missing"),
        (STEP + "  - id: a\n    prompt: y", 4, "the step on line 2 is a, too"),
        (STEP + "    timout: 3s", 4, "did you mean timeout?"),
        (STEP + "    skill: review", 2, "one of prompt, skill and parallel"),
        (STEP + "    timeout: 3 weeks", 4, "no duration"),
        (STEP + "    retry: 99", 4, "from 0 to 10"),
        (STEP + "    mode: root", 4, "expected one of plan"),
        (STEP + "    model: gpt", 4, "provider/name"),
        (STEP + "    with: {a: b}", 4, "only a skill has it"),
        (STEP + "    if: foo == 'x'", 4, "write inputs.foo"),
        (STEP + "    if: system('ls')", 4, "no function system"),
        (STEP + "    if: inputs.x ==", 4, "ends too early"),
        (STEP + "    if: " + "(" * 100 + "'a'", 4, "too deeply"),
        (STEP + "    if: steps.a.output", 4, "no step before this one"),
        ("steps:\n  - id: a\n    prompt: ${inputs.y}", 3, "no input y"),
        ("steps:\n  - id: a\n    prompt: ${steps.b.outputs}", 3, "is not known"),
        ("steps:\n  - id: a\n    parallel:\n    - id: b\n      parallel: []", 5, "inside another"),
        ("steps:\n  - id: a\n    prompt: ${item}", 3, "only a step with for-each"),
        ("steps:\n  - id: a\n    prompt: x\n    for-each: ${item}", 4, "only a step with"),
        ("steps:\n  - id: a\n    parallel:\n    - {id: b, for-each: [x], prompt: y}", 4, "outside"),
        ("on: {cron: '0 0 30 2 *'}\n" + STEP, 1, "never comes"),
        ("on: {cron: 61 * * * *}\n" + STEP, 1, "no minute"),
        ("on: {files: [/etc/passwd]}\n" + STEP, 1, "not inside the folder"),
        ("on: {files: ['a/../../b']}\n" + STEP, 1, "not inside the folder"),
        ("on: {files: ['[z-a]']}\n" + STEP, 1, "is no pattern"),
        ("on: {every: 0s}\n" + STEP, 1, "too short"),
        ("inputs: {a b: c}\n" + STEP, 1, "no name"),
    ],
)
def test_an_error_is_reported_with_its_line_and_a_remedy(text: str, line: int, why: str) -> None:
    workflow, mistakes = parse_workflow(text, "file")
    assert workflow is None
    found = [one for one in mistakes if why in one.why]
    assert [one.line for one in found] == [line], mistakes
    assert "; " in found[0].why or "expected" in found[0].why
    assert translator_for("zh").rendered(found[0].why) != found[0].why


@given(st.text(alphabet="abc:-[]{}&*!|>'\"# \n\t${.}inputs", max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    workflow, mistakes = parse_workflow(f"steps:\n{text}", "file")
    assert (workflow is None) == bool(mistakes)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("inputs.a == 'yes'", True),
        ("${{ inputs.a != 'yes' }}", False),
        ("inputs.a == 'yes' and not inputs.none", True),
        ('inputs.none or (inputs.a == "no" or inputs.n == 3)', True),
        ("steps.s.output contains 'fail'", True),
        ("contains(steps.s.output, 'it''s')", True),
        ("not steps.s.output contains 'fail'", False),
        ("success() && !failure()", True),
        ("always()", True),
        ("false", False),
        ("inputs.n == 0 || inputs.n", True),
        ("'inputs.a' == inputs.a", False),
    ],
)
def test_conditions_compare_texts(condition: str, holds: bool) -> None:
    values = {"inputs.a": "yes", "inputs.n": "3", "steps.s.output": "it's: 2 failed\n"}
    assert is_true(parse_expression(condition), Values(values)) is holds


def test_a_value_is_inserted_once_and_other_text_stays() -> None:
    values = {"inputs.a": "${inputs.b}", "inputs.b": "secret"}
    text = "${inputs.a} ${{inputs.b}} ${HOME} ${user.name} $x"
    filled = fill_placeholders(text, Values(values).value)
    assert filled == "${inputs.b} secret ${HOME} ${user.name} $x"


@pytest.mark.parametrize(
    ("line", "after", "then"),
    [
        ("0 9 * * 1-5", "2026-11-27 09:00", "2026-11-30 09:00"),  # from Friday to Monday
        ("*/15 * * * *", "2026-01-01 10:14", "2026-01-01 10:15"),
        ("0 0 13 * fri", "2026-11-24 00:00", "2026-11-27 00:00"),  # either of the days
        ("30 2 29 feb *", "2026-01-01 00:00", "2028-02-29 02:30"),
        ("0 0 * * 7", "2026-11-24 00:00", "2026-11-29 00:00"),
        ("59 23 31 dec *", "2026-12-31 23:59", "2027-12-31 23:59"),
        ("5,10-12/2 8 * * *", "2026-01-01 08:10", "2026-01-01 08:12"),
    ],
)
def test_a_schedule_comes_next_as_crontab_says(line: str, after: str, then: str) -> None:
    found = parse_cron(line).next_after(datetime.fromisoformat(after))
    assert found == datetime.fromisoformat(then)


@pytest.mark.parametrize(
    ("patterns", "meant", "others"),
    [
        (["src/**/*.py"], ["src/a.py", "src/b/c.py"], ["a.py", "src/a.pyc", "lib/src/a.py"]),
        (["**/*.py", "!**/test_*"], ["a.py", "x/y.py"], ["test_a.py", "x/test_y.py"]),
        (["docs/", "*.md", "a[0-9]?.x"], ["docs/a/b", "x.md", "a12.x"], ["d/x.md", "ab1.x"]),
        (["!a.py", "a.py"], ["a.py"], []),
    ],
)
def test_patterns_mean_files(patterns: list[str], meant: list[str], others: list[str]) -> None:
    found = FilePatterns(patterns)
    assert [name for name in (*meant, *others) if found.matches(name)] == meant


def test_only_folders_that_may_contain_such_files_are_searched() -> None:
    assert FilePatterns(["src/**/*.py", "src/lib/x.c", "docs/*.md"]).folders == ["docs", "src"]
    assert FilePatterns(["*.md", "src/**"]).folders == [""]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h 30m", 5_400), (5, 5), ("2d", 172_800)]
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text, shortest=1) == seconds


@pytest.mark.parametrize("text", ["", "10", "-3s", "m", "1w", True, None, "9999999d"])
def test_an_invalid_duration_is_refused(text: object) -> None:
    with pytest.raises(ConfigError):
        parse_duration(text, shortest=1)


def test_files_that_cannot_be_read_are_reported_and_hide_nothing(tmp_path: Path) -> None:
    place = tmp_path / "project" / ".acp-agent" / "flows"
    place.mkdir(parents=True)
    (place / "good.yaml").write_text(STEP)
    (place / "huge.yaml").write_text("#" * 100_001)
    (place / "latin.yaml").write_bytes(b"name: a\n# \xe9\n")
    (place / "folder.yml").mkdir()
    os.mkfifo(place / "pipe.yaml")
    (place / "out.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    (tmp_path / "elsewhere.yaml").write_text(STEP)
    (place / "circle.yaml").symlink_to(place / "circle.yaml")
    found = {one.name: one for one in find_workflows(tmp_path / "project", user=tmp_path)}
    assert found["good"].workflow is not None
    assert found["good"].item is not None
    bad = {name: one.mistakes[0].why for name, one in found.items() if name != "good"}
    assert bad.keys() == {"huge", "latin", "folder", "pipe", "out", "circle"}
    assert "larger than 100 kB" in bad["huge"]
    assert found["latin"].mistakes[0].line == 2
    assert "no ordinary file" in bad["folder"]
    assert "no ordinary file" in bad["pipe"]
    assert "leads out of the project" in bad["out"]
    assert read_workflow(tmp_path / "none.yaml").mistakes[0].why.startswith("there is no such file")
