"""`ACP_AGENT_HOME` where it is no whole path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.agent_process import environment


def acp_agent(home: Path, cwd: Path, *arguments: str) -> str:
    """Run a command with a relative home; what it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "acp_agent", *arguments],
        cwd=cwd,
        env=environment(home) | {"ACP_AGENT_HOME": "kept"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ran.stdout + ran.stderr


def test_a_relative_home_is_the_same_in_every_folder(home: Path, tmp_path: Path) -> None:
    start_folder, project = tmp_path / "here", tmp_path / "project"
    start_folder.mkdir()
    project.mkdir()
    (project / "README.md").write_text("# Sample\n")
    ask = ("run", "--model", "demo/demo", "--cwd", str(project), "read README.md")
    session = acp_agent(home, start_folder, *ask).split("--resume ")[1].split()[0]
    assert session in acp_agent(home, start_folder, "sessions", "list", "--all", "--json")
    assert sorted(path.name for path in project.iterdir()) == ["README.md"]
    assert (start_folder / "kept" / "sessions.db").is_file()
