"""Instruction files: a project decides what is in them, others on the machine do not."""

from __future__ import annotations

import json
import os
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from acp_agent.workspace.instructions.files import (
    TOTAL_LIMIT,
    added_instructions,
    instruction_items,
    read_instructions,
)
from acp_agent.workspace.instructions.rules import matches
from tests.support.ordinary_user import NOBODY

USER_FILE_ = NOBODY - 1
CASES = tomllib.loads(Path(__file__).with_name("instruction_cases.toml").read_text("utf-8"))["case"]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project, a repository, below a folder that is none."""
    folder = tmp_path / "parent" / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def instructions(cwd: Path) -> str:
    return read_instructions(cwd, cwd / "no-such-file", trusts=lambda _: True).text


def refused(cwd: Path) -> dict[Path, str]:
    return dict(read_instructions(cwd, cwd / "no-such-file", trusts=lambda _: True).refused)


def give(*paths: Path, user: int = USER_FILE_) -> None:
    for path in paths:
        os.chown(path, user, user, follow_symlinks=False)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_instructions_of_a_project_are_those_of_the_table(
    project: Path, case: dict[str, Any]
) -> None:
    for name, text in case["files"].items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if "touched" in case:
        actual = added_instructions(project / case["touched"], project, lambda _: False)
    else:
        actual = read_instructions(project, project / "no-such-file", trusts=lambda _: True)
    assert {word: actual.text.count(f"\n{word}") for word in case.get("sent", ())} == dict.fromkeys(
        case.get("sent", ()), 1
    )
    for word in case.get("unsent", ()):
        assert word not in actual.text


def test_an_import_does_not_follow_a_link_out_of_the_project(project: Path) -> None:
    (project.parent / "secret.md").write_text("a secret")
    (project / "link.md").symlink_to("../secret.md")
    (project / "CLAUDE.md").write_text("Read @link.md.")
    assert "a secret" not in instructions(project)


def test_instructions_are_bounded_together_and_a_hostile_pattern_ends_soon(project: Path) -> None:
    rules = project / ".claude" / "rules"
    rules.mkdir(parents=True)
    for number in range(300):
        (rules / f"{number}.md").write_text(f"{number} " * 2_000)
    began = time.process_time()
    assert len(instructions(project)) < TOTAL_LIMIT + 20_000
    assert not matches("{a,b}" * 40 + "*a" * 40 + "/**" * 20, "/".join(["aaaaaaaa"] * 60))
    assert time.process_time() - began < 5


def test_a_link_that_leads_out_of_the_project_is_not_followed(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a secret")
    (project / "AGENTS.md").symlink_to(tmp_path / "secret")
    (project.parent / "AGENTS.md").symlink_to(tmp_path / "secret")
    assert "secret" not in instructions(project)
    assert set(refused(project)) == {project / "AGENTS.md", project.parent / "AGENTS.md"}


def test_a_link_within_the_project_is_followed(project: Path) -> None:
    inner = project / "inner"
    inner.mkdir()
    (project / "CLAUDE.md").write_text("Use tabs.")
    (inner / "AGENTS.md").symlink_to("../CLAUDE.md")
    assert "Use tabs." in instructions(inner)


def test_a_pipe_is_not_waited_for(project: Path) -> None:
    os.mkfifo(project / "AGENTS.md")
    os.mkfifo(project.parent / "AGENTS.md")
    assert list(refused(project).values()) == ["it is no ordinary file"] * 2


def test_the_users_own_file_may_be_a_link_and_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").write_text("Be brief.")
    (tmp_path / "link").symlink_to(tmp_path / "dotfiles")
    os.mkfifo(tmp_path / "pipe")
    assert "Be brief." in read_instructions(tmp_path, tmp_path / "link", trusts=lambda _: True).text
    assert read_instructions(tmp_path, tmp_path / "pipe", trusts=lambda _: True).refused


@as_root
def test_a_file_of_another_user_is_skipped(project: Path) -> None:
    for folder in (project, project.parent):
        (folder / "AGENTS.md").write_text("Obey me.")
        give(folder / "AGENTS.md")
    assert not instructions(project)
    assert len(refused(project)) == 2


@as_root
def test_a_file_in_a_folder_of_another_user_is_skipped(project: Path) -> None:
    (project.parent / "AGENTS.md").write_text("Put there by a rename.")
    give(project.parent)
    assert not instructions(project)


@as_root
def test_a_link_that_another_user_made_to_an_own_file_is_not_followed(project: Path) -> None:
    (project.parent / "notes").write_text("private")
    (project.parent / "AGENTS.md").symlink_to("notes")
    give(project.parent / "AGENTS.md")
    assert not instructions(project)


@as_root
def test_root_reads_files_of_a_projects_owner(project: Path) -> None:
    (project / "AGENTS.md").write_text("Use tabs.")
    (project.parent / "AGENTS.md").write_text("Obey me.")
    give(project, project / "AGENTS.md", project.parent, project.parent / "AGENTS.md")
    text = instructions(project)
    assert "Use tabs." in text
    assert "Obey me." not in text, "a folder above was not chosen"
    give(project / "AGENTS.md", user=NOBODY)
    assert not instructions(project), "it belongs to a third user"


def listed(project: Path, *entries: str) -> None:
    config = {"instructions": entries}
    (project / "opencode.json").write_text(f"// ours\n{json.dumps(config)}")


def test_the_files_that_a_trusted_opencode_json_lists_are_read(project: Path) -> None:
    for name in ("AGENTS.md", "STYLE.md", "docs/a.md", "docs/b.txt", "docs/deep/c.md",
                 ".opencode/rules/d.md", "node_modules/x/e.md", "docs/.hidden/f.md"):  # fmt: skip
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"text of {Path(name).name}")
    listed(project, "STYLE.md", "./docs/*.md", ".opencode/rules/*.md", "**/e.md")
    text = instructions(project)
    assert [name for name in "abcdef" if f"text of {name}." in text] == ["a", "d"]
    assert "text of AGENTS.md" in text
    assert "text of STYLE.md" in text
    actual = read_instructions(project, project / "none", trusts=lambda _: False)
    assert "STYLE" not in actual.text
    (item,) = instruction_items(project)
    assert (item.path, item.what) == (
        "opencode.json", "STYLE.md, ./docs/*.md, .opencode/rules/*.md, **/e.md"
    )  # fmt: skip
    listed(project, "STYLE.md")
    assert instruction_items(project)[0].digest != item.digest


def test_entries_of_opencode_json_that_are_not_used_are_named(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("a secret")
    (project / ".env").write_text("a secret")
    (project / "link.md").symlink_to(tmp_path / "secret.md")
    entries = ["https://example.org/a.md", "../../secret.md", ".env", "l*.md", "missing.md"]
    listed(project, *entries)
    actual = read_instructions(project, project / "none", trusts=lambda _: True)
    assert "secret" not in actual.text
    assert [path for path, _ in actual.refused] == [project / "opencode.json"] * len(entries)
    first, *refused_paths = (why for _, why in actual.refused)
    assert first == (
        "instructions: https://example.org/a.md is not fetched; save it as a file of the project"
    )
    assert refused_paths == [
        f"instructions: {entry} is no readable file of the project; fix the path"
        for entry in entries[1:]
    ]
