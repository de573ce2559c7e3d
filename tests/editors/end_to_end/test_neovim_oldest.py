"""The plugin for Neovim in the oldest Neovim that it is for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.editors.end_to_end.neovim_oldest import VERSION, oldest_neovim
from tests.editors.neovim import ROOT


@pytest.mark.parametrize(
    "tests",
    ["test_editors_neovim", "end_to_end/test_neovim_plugin", "end_to_end/test_neovim_wire"],
    ids=["quick", "long", "wire"],
)
@pytest.mark.timeout(900)
def test_all_that_the_plugin_does_it_does_in_the_oldest_neovim_as_well(tests: str) -> None:
    program = str(oldest_neovim())
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith(f"NVIM v{VERSION}."), version.stdout
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"tests/editors/{tests}.py",
        ],
        cwd=ROOT,
        env=os.environ | {"ACP_AGENT_NEOVIM": program},
        capture_output=True,
        text=True,
        timeout=880,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout, done.stdout[-2000:]
