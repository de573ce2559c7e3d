from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from acp_agent.permissions.classify import classify
from acp_agent.permissions.paths import CommandContext


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = tmp_path.resolve() / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("x\n")
    (folder / "b.py").write_text("x\n")
    (tmp_path / "secret").write_text("secret\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    return folder


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["/usr/bin/git", "-C", folder, *arguments], check=True)


def tier(project: Path, line: str) -> str:
    home = str(project.parent)
    return classify(line, CommandContext(cwd=str(project), roots=(str(project),), home=home)).tier


READ = "git ls-files | xargs wc -l"
READ_NUL = "git ls-files -z | xargs -0 wc -l"


@pytest.mark.parametrize(
    "line",
    [READ, READ_NUL, "git ls-files src '*.py' | xargs grep -n x",
     r"git ls-files | grep -v '\.lock$' | head -20 | xargs -n1 file"],
)  # fmt: skip
def test_a_reading_program_gets_the_names_of_tracked_files_without_a_question(
    project: Path, line: str
) -> None:
    assert tier(project, line) == "read_only"


@pytest.mark.parametrize(
    "line",
    ["git ls-files -o | xargs wc", "git ls-files -s | xargs wc", "git ls-files | xargs rm",
     "git ls-files | xargs wc /etc/passwd", "git ls-files | xargs -I% wc src/%",
     "git ls-files | sed s/^/../ | xargs wc", "(git ls-files; echo /etc/passwd) | xargs wc",
     "GIT_INDEX_FILE=x git ls-files | xargs wc", "git ls-files -z | xargs wc",
     "git ls-files | xargs -0 wc"],
)  # fmt: skip
def test_other_names_and_other_uses_of_them_are_asked_about(project: Path, line: str) -> None:
    assert tier(project, line) != "read_only"


@pytest.mark.parametrize("line", [READ, READ_NUL])
def test_a_tracked_link_is_asked_about(project: Path, line: str) -> None:
    (project / "link").symlink_to(project.parent / "secret")
    git(project, "add", "link")
    assert tier(project, line) == "standard"


@pytest.mark.parametrize("line", [READ, READ_NUL])
def test_a_file_that_has_become_a_link_is_asked_about(project: Path, line: str) -> None:
    (project / "b.py").unlink()
    (project / "b.py").symlink_to(project.parent / "secret")
    assert tier(project, line) == "standard"


@pytest.mark.parametrize("line", [READ, READ_NUL])
def test_a_folder_that_has_become_a_link_is_asked_about(project: Path, line: str) -> None:
    (project / "src").rename(project / "moved")
    (project / "src").symlink_to(project.parent)
    assert tier(project, line) == "standard"


def test_a_name_that_xargs_splits_is_asked_about(project: Path) -> None:
    (project / "x").mkdir()
    (project / "x" / "a b").write_text("x\n")
    git(project, "add", "x")
    assert (tier(project, READ), tier(project, READ_NUL)) == ("standard", "read_only")


@pytest.mark.parametrize("line", [READ, READ_NUL])
def test_a_name_that_is_an_option_is_asked_about(project: Path, line: str) -> None:
    (project / "--files0-from=b.py").write_text("x\n")
    git(project, "add", "-A")
    assert tier(project, line) == "standard"


@pytest.mark.parametrize("argument", ["--split-index", "--index-version=4"])
def test_an_index_in_another_form_is_read_or_asked_about(project: Path, argument: str) -> None:
    (project / "c.py").symlink_to(project.parent / "secret")
    git(project, "add", "-A")
    git(project, "update-index", *argument.split("="))
    assert tier(project, READ) == "standard"


def test_without_a_repository_it_is_asked_about(tmp_path: Path) -> None:
    assert tier(tmp_path.resolve(), READ) == "standard"
