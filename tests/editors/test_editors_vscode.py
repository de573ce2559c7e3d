"""The VS Code extension without the editor: its units, and its client with the real agent.

The editor itself is in `end_to_end/test_editors_vscode_*.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.agent_process import environment
from tests.support.npm_packages import node_modules
from tests.support.warm_parent import shared_parent

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "editor-plugins" / "vscode"
LIMIT = 110  # seconds
# They start hundreds of agents of Node: `make test-editors` has them.
LONG = ["tests/core/hostileAgents.test.ts", "tests/core/foreignAgents.test.ts"]


def run(*command: str, environ: dict[str, str] | None = None) -> str:
    """Run a command of the extension's folder; what it printed. Fails the test where it fails."""
    node_modules(PLUGIN)
    done = subprocess.run(
        command,
        cwd=PLUGIN,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.timeout(300)  # the packages may have to be installed first
def test_its_client_and_its_page_hold_with_bad_agents_and_the_real_one(tmp_path: Path) -> None:
    launcher = tmp_path / "acp-agent"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(shared_parent().command())} "$@"\n')
    launcher.chmod(0o755)
    excluded = [] if os.environ.get("ACP_AGENT_EDITORS") else LONG
    told = run(
        "node_modules/.bin/vitest",
        "run",
        "--reporter=json",
        *(f"--exclude={name}" for name in excluded),
        environ={
            **environment(tmp_path),
            "PYTHONPATH": str(ROOT),
            "ACP_AGENT_COMMAND": str(launcher),
        },
    )
    report = json.loads(told[told.index("{") :])
    assert report["success"]
    assert report["numPassedTests"] == report["numTotalTests"] > 250


def test_the_lock_files_name_no_registry() -> None:
    for lock in (PLUGIN / "package-lock.json", PLUGIN / "tools" / "package-lock.json"):
        packages = json.loads(lock.read_text())["packages"]
        assert [name for name, package in packages.items() if "resolved" in package] == []


def test_every_word_of_the_manifest_is_there_in_both_languages() -> None:
    manifest = (PLUGIN / "package.json").read_text()
    english = json.loads((PLUGIN / "package.nls.json").read_text())
    chinese = json.loads((PLUGIN / "package.nls.zh-cn.json").read_text())
    used = {part for part in manifest.split('"') if part.startswith("%") and part.endswith("%")}
    assert {word.strip("%") for word in used} == set(english)
    assert set(english) == set(chinese)


@pytest.mark.skipif(
    not os.environ.get("ACP_AGENT_EDITORS"), reason="make test-editors checks types and style"
)
@pytest.mark.timeout(300)
def test_its_types_and_style_hold() -> None:
    npm = shutil.which("npm")
    assert npm is not None
    run(npm, "run", "check")
