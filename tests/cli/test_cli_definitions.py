"""`acp-agent skills`, `acp-agent agents`, and what `acp-agent doctor` says of both."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_process import acp_agent
from tests.extensions.definitions.definition_files import write


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home, where the commands run, with files of the user's and a trusted project in `work`."""
    user_folder = tmp_path / "agent"
    user_folder.mkdir()
    (user_folder / "config.toml").write_text(f'trusted_folders = ["{tmp_path}"]\n')
    write(
        user_folder / "skills" / "notes" / "SKILL.md",
        "name: notes",
        "description: D.",
        "model: small",
    )
    write(
        user_folder / "agents" / "reviewer.md", "name: reviewer", "description: D.", "tools: [read]"
    )
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return tmp_path


def project_skill(home: Path, name: str, *lines: str) -> Path:
    path = home / "work" / ".agents" / "skills" / name / "SKILL.md"
    return write(path, f"name: {name}", "description: D.", *lines)


def listed(home: Path, *arguments: str) -> dict[str, Any]:
    ran = acp_agent(home, *arguments, "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    listing: dict[str, Any] = json.loads(ran.stdout)
    return listing


def test_skills_are_listed_with_their_origin_model_and_file(home: Path) -> None:
    path = project_skill(home, "deploy")
    ran = acp_agent(home, "skills", "--cwd", "work")
    assert (ran.returncode, ran.stderr) == (0, "")
    *lines, _, bundled = ran.stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "SOURCE", "MODEL", "PATH"],
        ["deploy", "project", "the", "session's", str(path)],
        ["notes", "user", "small", str(home / "agent" / "skills" / "notes" / "SKILL.md")],
    ]
    assert bundled.startswith("Bundled: analyze, commit-message, compare,")


def test_agents_are_listed_apart_from_skills(home: Path) -> None:
    listing = listed(home, "agents")
    skill = write(home / "agent" / "skills" / "a" / "SKILL.md", "name: A")
    agent = write(home / "agent" / "agents" / "a.md", "name: A")
    for kind, path in (("skills", skill), ("agents", agent)):
        assert [problem["path"] for problem in listed(home, kind)["problems"]] == [str(path)]
    assert listing["problems"] == []
    assert [
        (problem["name"], problem["source"], problem["tools"]) for problem in listing["agents"]
    ] == [("reviewer", "user", ["read"])]
    assert "skills" not in listing


def test_problems_are_shown_below_the_list_in_the_language_of_the_user(home: Path) -> None:
    broken = project_skill(home, "deploy", "temperature: 3")
    messages = {
        language: acp_agent(
            home, "skills", "--cwd", "work", environ={"ACP_AGENT_LANGUAGE": language}
        ).stdout
        for language in ("en", "zh")
    }
    assert f"{broken}:4: temperature: expected a number from 0 to 2, found 3\n" in messages["en"]
    assert f"{broken}:4: temperature：应为 0 到 2 之间的数字，实为 3\n" in messages["zh"]
    assert "技能" not in messages["en"]
    assert "deploy  " not in messages["en"]


def test_a_disabled_skill_is_listed_as_disabled(home: Path) -> None:
    (home / "agent" / "config.toml").write_text("[skills.notes]\nenabled = false\n")
    assert "disabled" in acp_agent(home, "skills").stdout
    assert [(skill["name"], skill["enabled"]) for skill in listed(home, "skills")["skills"]] == [
        ("notes", False)
    ]


@pytest.mark.parametrize("command", ["skills", "agents"])
def test_a_path_that_is_not_a_folder_is_reported(home: Path, command: str) -> None:
    ran = acp_agent(home, command, "--cwd", str(home / "wrok"))
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.endswith(f"argument --cwd: {home / 'wrok'} is not a directory\n")


def test_an_empty_list_says_how_to_add_an_entry(tmp_path: Path) -> None:
    user = tmp_path / "agent"
    output = acp_agent(tmp_path, "skills").stdout
    assert output.startswith("No skills found. Add one as .agents/skills/NAME/SKILL.md")
    assert f"{user}/skills/NAME/SKILL.md" in output
    output = acp_agent(tmp_path, "agents").stdout
    assert output.startswith("No agents found. Add one as .agents/agents/NAME.md")
    assert f"{user}/agents/NAME.md" in output
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "config.toml").write_text("bundled_skills = false\n")
    assert listed(tmp_path, "skills") == {"skills": [], "problems": []}


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are always text")
def test_a_folder_with_a_name_that_is_not_utf_8_can_be_listed(home: Path) -> None:
    project_skill(home, "deploy")
    strange = os.fsdecode(b"\xff")
    (home / "work").rename(home / strange)
    (path,) = [
        skill["path"]
        for skill in listed(home, "skills", "--cwd", strange)["skills"]
        if skill["source"] == "project"
    ]
    assert path.endswith("\ufffd/.agents/skills/deploy/SKILL.md")
    assert "deploy" in acp_agent(home, "skills", "--cwd", strange).stdout


def doctor(home: Path) -> tuple[int, list[tuple[str, str]]]:
    """Its exit status, and what it says of skills and agents."""
    ran = acp_agent(home, "doctor", "--json", "--offline")
    assert ran.stderr == ""
    findings = json.loads(ran.stdout)["findings"]
    return ran.returncode, [
        (finding["state"], finding["what"])
        for finding in findings
        if finding["part"] == "Skills and agents"
    ]


def test_the_doctor_counts_skills_and_agents_and_says_nothing_where_there_are_none(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert doctor(home) == (0, [("ok", "skills: 1, agents: 1")])
    bare = tmp_path_factory.mktemp("bare")
    assert doctor(bare) == (0, [])
    assert "Skills and agents" not in acp_agent(bare, "doctor", "--offline").stdout


def test_the_doctor_reports_broken_definitions_and_unusable_models(
    home: Path,
) -> None:
    (home / ".git").mkdir()  # where it runs is a project
    folder = home / ".acp-agent" / "agents"
    broken = write(folder / "a.md", "name: A", "description: D.")
    second = write(folder / "b.md", "name: b", "description: D.", "model: opus")
    keyless = write(folder / "c.md", "name: c", "description: D.", "model: openai/gpt-5.2")
    status, findings = doctor(home)
    assert status == 1
    assert [state for state, _ in findings] == ["ok", "broken", "missing", "missing"]
    assert findings[0][1] == "skills: 1, agents: 3"
    assert findings[1][1].startswith(f"{broken}:2: name: expected a name of lowercase letters")
    assert findings[2][1].startswith(f"{second}:4: model: opus is not known here")
    assert findings[3][1].startswith(f"{keyless}: its model openai/gpt-5.2 cannot be used: OpenAI ")


def test_the_doctor_names_a_model_that_several_agents_of_a_table_have_once(home: Path) -> None:
    (home / ".git").mkdir()
    agent = {"description": "D.", "prompt": "P.", "model": "openai/gpt-5.2"}
    (home / "opencode.json").write_text(json.dumps({"agent": {"one": agent, "two": agent}}))
    _, findings = doctor(home)
    assert sum("its model openai/gpt-5.2 cannot be used" in text for _, text in findings) == 1


def test_definitions_are_listed_only_in_a_trusted_folder_and_the_doctor_says_so(home: Path) -> None:
    (home / "agent" / "config.toml").unlink()
    skill = project_skill(home, "deploy")
    (home / "work" / "AGENTS.md").write_text("Be brief.")
    at = ("--cwd", "work")
    assert listed(home, "skills", *at)["untrusted"] == [str(skill)]
    assert "acp-agent trust" in acp_agent(home, "skills", *at).stdout
    refused = acp_agent(home, "trust", "work")
    assert (refused.returncode, "skill: .agents/skills/deploy" in refused.stdout) == (1, True)
    trusted = acp_agent(home, "trust", "work", "--yes")
    assert trusted.returncode == 0, trusted.stderr
    assert "AGENTS.md" not in trusted.stdout
    listing = listed(home, "skills", *at)
    assert "untrusted" not in listing
    assert "deploy" in {entry["name"] for entry in listing["skills"]}
    assert str(home / "work") in acp_agent(home, "trust", "--list").stdout
    skill.write_text(skill.read_text().replace("D.", "Other."))
    assert "+description: Other." in acp_agent(home, "trust", "work").stdout
    assert acp_agent(home, "trust", "--revoke", "work").returncode == 0
    assert listed(home, "skills", *at)["untrusted"] == [str(skill)]


def test_agents_that_are_other_programs_are_listed_and_doctor_names_those_that_are_missing(
    home: Path,
) -> None:
    config = home / "agent" / "config.toml"
    config.write_text(
        f'[agents.here]\ncommand = "{sys.executable}"\nargs = ["-m", "it"]\n'
        '[agents.gone]\ncommand = "no-such-agent"\n'
        '[agents.off]\ncommand = "no-such-agent"\nenabled = false\n'
    )
    programs = {"here": [sys.executable, "-m", "it"], "gone": ["no-such-agent"]}
    assert listed(home, "agents")["programs"] == programs
    listing = acp_agent(home, "agents").stdout
    assert f"Other programs: here ({sys.executable} -m it), gone (no-such-agent)" in listing
    report = acp_agent(home, "doctor", "--offline").stdout
    assert f"agent here: {sys.executable}" in report
    assert "agent gone: program not found: no-such-agent" in report
    assert "agent off" not in report
