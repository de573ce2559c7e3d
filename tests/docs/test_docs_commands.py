"""The commands that the documentation mentions exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from acp_agent.cli.main import COMMANDS
from tests.support.warm_parent import shared_parent

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Commands stand between backticks, or in a block that is indented or fenced.
CODE = re.compile(r"`([^`\n]+)`|^(?:    |\$ )(\S.*)$", re.MULTILINE)
PIPED = re.compile(r"[|(] *(?=acp-agent )")


def mentioned(program: str) -> set[str]:
    """What is written of commands that begin with `program`, without comments."""
    found = set()
    for page in PAGES:
        for inline, block in CODE.findall(page.read_text("utf-8")):
            for command in PIPED.split(inline or block):
                words = re.split(r" #|\)", command)[0].split()
                if words and words[0] == program:
                    found.add(" ".join(words[1:]))
    return found


def test_every_make_target_that_is_mentioned_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {word for words in mentioned("make") for word in words.split()[:1]}
    assert {"run", "test"} <= named <= targets


def test_every_subcommand_that_is_mentioned_exists_and_the_other_way_round() -> None:
    named = {
        word for words in mentioned("acp-agent") for word in words.split()[:1] if word.isalnum()
    }
    assert named == set(COMMANDS) - {"version"}  # `--version` is what people know


ACTIONS = sorted(
    words for words in mentioned("acp-agent") if words.startswith(("config ", "sessions "))
)

WITH_ACTIONS = {"a2a", "flow", "sessions"}  # commands whose actions' flags are mentioned with them


@pytest.mark.parametrize("words", ACTIONS)
def test_an_action_that_is_mentioned_has_help(words: str, tmp_path: Path) -> None:
    command = [*shared_parent().command(), *words.split()[:2], "--help"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"ACP_AGENT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: acp-agent")


def test_every_flag_that_is_mentioned_is_known(tmp_path: Path) -> None:
    """Flags of subcommands, which refuse those that they do not know."""
    flags: dict[str, set[str]] = {}
    for words in mentioned("acp-agent"):
        first, *rest = words.split() or [""]
        if first in COMMANDS:
            command = " ".join([first, *rest[:1]]) if first in WITH_ACTIONS else first
            flags.setdefault(command, set()).update(re.findall(r"--[a-z-]+", " ".join(rest)))
    for command, used in flags.items():
        if used:
            done = subprocess.run(
                [*shared_parent().command(), *command.split(), "--help"],
                cwd=ROOT,
                env={"ACP_AGENT_HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            assert used <= set(re.findall(r"--[a-z-]+", done.stdout)), command
