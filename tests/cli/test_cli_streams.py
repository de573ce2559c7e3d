"""Commands whose standard streams are closed or cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_process import environment


def run(home: Path, redirection: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "acp_agent",
         *words],
        cwd=home, env=environment(home), capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("words", [["help"], ["version"], ["policy", "test", "ls"]])
def test_a_command_whose_output_is_closed_ends_without_an_error(
    words: list[str], tmp_path: Path
) -> None:
    ran = run(tmp_path, ">&-", *words)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("words", [["help"], ["version"], ["policy", "test", "ls"]])
def test_a_command_whose_output_has_no_room_says_so_in_one_line(
    words: list[str], tmp_path: Path
) -> None:
    ran = run(tmp_path, ">/dev/full", *words)
    assert ran.returncode == 1
    assert ran.stderr == "acp-agent: cannot write the output: No space left on device\n"


def test_a_chat_whose_input_is_closed_answers_its_prompt_and_ends(tmp_path: Path) -> None:
    ran = run(tmp_path, "<&-", "chat", "--model", "demo/demo", "hi")
    assert ran.returncode == 0, ran.stderr
    assert "demo model" in ran.stdout
