"""Paths as models write them: what is meant where that is one file, and never more than it."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import OutsideWorkspaceError
from acp_agent.workspace.files import WorkspaceFiles

FILES = (
    "src/utils.py",
    "README.md",
    "Data.txt",
    "data.TXT",
    "@types/x.d.ts",
    "a\\b.txt",
    "a/b.txt",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (" src/utils.py\n", "src/utils.py"),
        ("`src/utils.py`", "src/utils.py"),
        ("@src/utils.py", "src/utils.py"),
        ("@types/x.d.ts", None),
        ("src\\utils.py", "src/utils.py"),
        ("src\\new.py", "src/new.py"),
        ("a\\b.txt", None),
        ("/src/utils.py", "src/utils.py"),
        ("/src/new.py", "src/new.py"),
        ("/workspace/src/utils.py", "src/utils.py"),
        ("project/src/utils.py", "src/utils.py"),
        ("a/src/utils.py", "src/utils.py"),
        ("src/utils.py:12", "src/utils.py"),
        ("C:\\work\\project\\src\\utils.py", "src/utils.py"),
        ("${workspaceFolder}/src/utils.py", "src/utils.py"),
        ("$HOME/src/utils.py", None),
        ("src\\/utils.py", "src/utils.py"),
        ("src/utils.py.", "src/utils.py"),
        ("readme.md", "README.md"),
        ("data.txt", None),
        ("data.TXT", None),
        ("nowhere/x.py", None),
    ],
)
def test_a_path_resolves_to_the_only_file_that_it_can_mean(
    project: Path, requested: str, expected: str | None
) -> None:
    files = WorkspaceFiles(project)
    assert files.clean_path(requested, existing=True) == (expected or requested)


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ("/testbed/src/new.py", "src/new.py"),
        ("/workspace/new.py", "new.py"),
        ("/home/someone/project/src/new.py", "src/new.py"),
        ("SRC/new.py", "src/new.py"),
        ("/documents/new.py", None),
        ("elsewhere/new.py", None),
    ],
)
def test_a_new_file_is_made_in_the_folder_that_exists(
    project: Path, requested: str, expected: str | None
) -> None:
    files = WorkspaceFiles(project)
    assert files.clean_path(requested, existing=False) == (expected or requested)


def test_a_new_file_does_not_replace_one_with_another_spelling(project: Path) -> None:
    files = WorkspaceFiles(project)
    for path in ("readme.md", "b/src/utils.py", "project/README.md", "/nowhere/new.py"):
        assert files.clean_path(path, existing=False) == path


@pytest.mark.parametrize(
    "requested",
    [
        "../secret.txt",
        "@../secret.txt",
        "..\\secret.txt",
        "`../secret.txt`",
        "file://{above}/secret.txt",
    ],
)
def test_no_way_of_writing_a_path_leads_out_of_the_project(project: Path, requested: str) -> None:
    (project.parent / "secret.txt").write_text("secret")
    with pytest.raises(OutsideWorkspaceError):
        WorkspaceFiles(project).resolve(requested.replace("{above}", str(project.parent)))
