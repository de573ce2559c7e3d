"""What a team set for Claude, codex and Gemini is used, once it is trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent.extensions.project_settings import (
    ProjectSettings,
    existing_folders,
    find_settings,
    settings_items,
)


def write(project: Path, name: str, content: dict[str, Any] | str) -> None:
    file = project / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository beside a folder `shared`, both in a home folder."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    return folder


def trusted(project: Path) -> ProjectSettings:
    return find_settings(project, lambda _: True)


def test_settings_of_three_programs_are_read_and_the_most_specific_file_wins(project: Path) -> None:
    write(
        project, ".codex/config.toml", '[shell_environment_policy.set]\nMODE = "codex"\nA = "1"\n'
    )
    write(project, ".gemini/settings.json", {"context": {"fileName": ["TEAM.md", "TEAM2.md"]}})
    write(project, ".claude/settings.json", {"env": {"MODE": "shared", "PORT": 80, "ON": True}})
    write(project, ".claude/settings.local.json", {"env": {"MODE": "mine"}})
    found = trusted(project)
    assert found.variables == {"MODE": "mine", "A": "1", "PORT": "80", "ON": "true"}
    assert found.file_names == ("TEAM.md", "TEAM2.md")


def test_without_trust_nothing_is_used_and_each_file_says_what_it_sets(project: Path) -> None:
    write(
        project,
        ".claude/settings.json",
        {
            "env": {"MODE": "fast", "API_TOKEN": "hidden"},
            "permissions": {"additionalDirectories": ["../shared"]},
            "outputStyle": "Short",
        },
    )
    (item,) = settings_items(project)
    assert find_settings(project, lambda _: False) == ProjectSettings(untrusted=(item,))
    assert item.what == "variables: MODE=fast, API_TOKEN=…; folders: ../shared; output style: Short"


def test_other_settings_of_the_file_may_change_without_a_new_question(project: Path) -> None:
    write(project, ".claude/settings.json", {"env": {"MODE": "fast"}})
    before = settings_items(project)
    write(project, ".claude/settings.json", {"model": "opus", "env": {"MODE": "fast"}})
    assert settings_items(project) == before
    write(project, ".claude/settings.json", {"env": {"MODE": "slow"}})
    assert settings_items(project) != before


def test_a_folder_is_used_unless_it_is_missing_inside_or_holds_the_home_folder(
    project: Path,
) -> None:
    home = project.parent
    names = ["../shared", "~/shared", "src", "../missing", "..", "/"]
    (project / "src").mkdir()
    write(project, ".claude/settings.json", {"permissions": {"additionalDirectories": names}})
    folders, problems = existing_folders(trusted(project), project, home)
    assert folders == [home / "shared"]
    where = f"{project}/.claude/settings.json:{{}}: permissions.additionalDirectories:"
    wide = "contains your home folder, so it is not used; name a folder below it"
    assert problems == [
        f"{where.format(7)} ../missing is not a folder; fix the path or take it out",
        f"{where.format(8)} .. {wide}",
        f"{where.format(9)} / {wide}",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", "", '{"env": [1]}', '{"env": {"A B": "x", "N": null, "L": [], "Z": "\\u0000"}}',
        '{"permissions": 3, "outputStyle": 4}', "\x00\x01", "[" * 100_000,
    ],
)  # fmt: skip
def test_broken_values_are_left_out(project: Path, content: str) -> None:
    write(project, ".claude/settings.json", content)
    write(project, ".gemini/settings.json", '{"context": {"fileName": {"a": 1}}}')
    write(project, ".codex/config.toml", "shell_environment_policy = 1\n")
    assert trusted(project) == ProjectSettings()


def test_servers_that_claude_turned_off_are_known_without_trust(project: Path) -> None:
    write(project, ".claude/settings.json", {"disabledMcpjsonServers": ["one"]})
    write(project, ".claude/settings.local.json", {"disabledMcpjsonServers": ["two", 3]})
    settings = find_settings(project, lambda _: False)
    assert settings.disabled_servers == {"one", "two"}
