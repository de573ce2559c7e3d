"""What no tracked file should have in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEVER = {
    "a note to do something later": r"(#|//|--).*\b(TODO|FIXME|XXX)\b",
    "a blank at the end of a line": r"[ \t]+$",
    "a mark of an unfinished merge": r"^(<{7}|>{7}) ",
    # Files that are named so, such as .copilot and copilot-instructions.md, are data.
    "a tool that it was written with": (
        r"(?i)(?<!/)claude[ -]code|co-authored-by|chatgpt|(?<![./])copilot(?!-)"
    ),
}


@pytest.mark.parametrize("what", NEVER)
def test_no_tracked_file_has(what: str) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git clone")
    done = subprocess.run(
        ["git", "grep", "-nIP", NEVER[what], "--", ".", ":!tests/docs/test_docs_words.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
