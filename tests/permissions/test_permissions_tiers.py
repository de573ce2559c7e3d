from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_args

import pytest

from acp_agent.permissions.access import Tier
from acp_agent.permissions.classify import classify
from acp_agent.permissions.paths import CommandContext

TABLE = tomllib.loads((Path(__file__).parent / "commands.toml").read_text("utf-8"))
LINES = [(tier, line) for tier in get_args(Tier) for line in TABLE[tier]]
AT_ONCE = 50  # lines of a test: pytest takes longer for a test than a line does
PIECES = [
    (tier, TABLE[tier][start : start + AT_ONCE])
    for tier in get_args(Tier)
    for start in range(0, len(TABLE[tier]), AT_ONCE)
]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> CommandContext:
    home = (tmp_path_factory.mktemp("users") / "someone").resolve()
    project = home / "work" / "project"
    (project / "sub").mkdir(parents=True)
    (project / "src").mkdir()
    (project / "links").mkdir()
    (project / ".git").mkdir()
    for name in ("x", "y", "a", "b", "sub/x", "main.py"):
        (project / name).write_text("x\n")
    (home / "secret").write_text("secret\n")
    (project / "link").symlink_to(home / "secret")
    (project / "links" / "outside").symlink_to(home / "secret")
    return CommandContext(cwd=str(project), roots=(str(project),), home=str(home))


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("LESSOPEN", raising=False)


@pytest.mark.parametrize(("tier", "lines"), PIECES, ids=[repr(lines[0]) for _, lines in PIECES])
def test_a_command_line_gets_the_tier_of_its_worst_command(
    tier: str, lines: list[str], context: CommandContext
) -> None:
    for line in lines:
        text = line.replace("{home}", context.home).replace("{project}", context.cwd)
        classified = classify(text, context)
        assert classified.tier == tier, (line, classified)


def test_the_table_of_command_lines_is_large() -> None:
    assert len(LINES) >= 250
    assert len({line for _, line in LINES}) == len(LINES)
