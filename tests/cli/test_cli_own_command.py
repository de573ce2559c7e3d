"""What the user has to type to run the program again."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from acp_agent.cli.screen import program_command


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program in a folder that is not on the PATH and has a space in its name."""
    folder = tmp_path / "my tools"
    folder.mkdir()
    (folder / "acp-agent").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    return folder / "acp-agent"


def test_a_path_with_a_space_is_one_word_for_the_shell(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shlex.split(program_command()) == ["my tools/acp-agent"]


def test_the_whole_path_is_shown_if_the_current_folder_was_deleted(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted_folder = tmp_path / "gone"
    deleted_folder.mkdir()
    monkeypatch.chdir(deleted_folder)
    deleted_folder.rmdir()
    assert shlex.split(program_command()) == [str(program)]
