"""VS Code's extension ACP Client, in code-server, drives a turn once `acp-agent setup` was run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.editors.end_to_end import code_server as servers
from tests.editors.end_to_end.others_sources import sources, user_environment

SCENARIO = Path(__file__).with_name("acp_client.mjs")


@pytest.mark.timeout(2700)
def test_a_turn_asks_and_makes_the_edit(tmp_path: Path) -> None:
    (extension,) = sources("acp-client.vsix")
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (project / "greeting.txt").write_text("hello\n")
    with servers.code_server(home) as server:
        node, entry = servers._installed()
        folders = [f"--user-data-dir={home / 'data'}", f"--extensions-dir={home / 'extensions'}"]
        subprocess.run(
            [node, entry, *folders, "--install-extension", extension],
            env=user_environment(home), check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        usual = home / ".local" / "share" / "code-server"
        usual.mkdir(parents=True, exist_ok=True)
        (usual / "User").symlink_to(home / "data" / "User")
        (usual / "extensions").symlink_to(home / "extensions")
        subprocess.run(
            ["acp-agent", "setup", "code-server", "--yes"],
            env=user_environment(home), check=True, timeout=120,
        )  # fmt: skip
        settings = json.loads((home / "data" / "User" / "settings.json").read_text())
        assert "acp-agent" in settings["acp.agents"]
        task = {
            "url": server.url,
            "chromium": server.chromium,
            "folder": str(project),
            "prompt": "replace hello with goodbye in greeting.txt",
        }
        done = subprocess.run(
            ["node", SCENARIO, json.dumps(task)],
            capture_output=True, text=True, timeout=300, check=False, env=os.environ,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert any("Use the existing configuration" in login for login in seen["logins"])
    assert len(seen["asked"]) == 4
    assert "Edit greeting.txt" in seen["shown"]
    assert "Ask" in seen["options"]
    assert (project / "greeting.txt").read_text() == "goodbye\n"
