"""Commands in a folder that was removed while somebody was in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_process import environment


@pytest.mark.parametrize("command", [["run", "hi"], ["skills"], ["doctor", "--offline"], ["chat"]])
def test_a_missing_folder_is_reported_in_one_line(command: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    ran = subprocess.run(
        ["/bin/sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", sys.executable, "-m", "acp_agent",
         *command],
        cwd=folder, env=environment(tmp_path), capture_output=True, text=True, timeout=60,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr == (
        "acp-agent: the current directory no longer exists; change to another one\n"
    )
