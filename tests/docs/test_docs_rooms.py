"""The rooms that docs/architecture.md describes are those of the code, and imports obey it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_room_is_in_the_architecture_and_every_room_of_it_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    told = set(re.findall(r"^\| `((?:protocol|acp_agent)/\w+)` \|", text, re.MULTILINE))
    there = {
        f"{package}/{folder.parent.name}"
        for package in ("acp_agent", "protocol")
        for folder in (ROOT / package).glob("*/__init__.py")
    }
    assert told == there


def test_imports_go_downwards_only() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
