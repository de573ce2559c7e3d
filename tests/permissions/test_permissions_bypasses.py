"""Command lines that got past other agents' checks get their tier, alone and within other lines."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from acp_agent.config.policy_types import PermissionsConfig
from acp_agent.permissions.access import CommandAccess, Tier
from acp_agent.permissions.classify import classify, worst_tier
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.loading import Policies, compile_rules
from acp_agent.permissions.policy.rules import Source

TRICKS = tomllib.loads((Path(__file__).parent / "bypasses.toml").read_text("utf-8"))["trick"]
TIERS: tuple[Tier, ...] = ("standard", "destructive", "blocked")
LINES = (
    "ls && {}", "cat x; {}", "({})", "{{ {}; }}", "if ls; then {}; fi", "{} 2>/dev/null", "V=1; {}"
)  # fmt: skip

PIECES = ("", " ", ";", "$(", '"', "'", "`", "<<E\n", "\0", "\1", "{", "\\", "> ", "${", "\ud800")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandContext:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    home = tmp_path.resolve() / "users" / "someone"
    project = home / "work" / "project"
    for folder in ("sub", "src", ".git"):
        (project / folder).mkdir(parents=True)
    for name in ("x", "y", "a", "b", "sub/x"):
        (project / name).write_text("x\n")
    (project / "link").symlink_to(home / "secret")
    return CommandContext(cwd=str(project), roots=(str(project),), home=str(home))


def lines(trick: dict[str, Any]) -> Iterator[tuple[Tier, str]]:
    return ((tier, line) for tier in TIERS for line in trick.get(tier, ()))


@pytest.mark.parametrize("trick", TRICKS, ids=[trick["name"] for trick in TRICKS])
def test_a_known_bypass_gets_its_tier(trick: dict[str, Any], context: CommandContext) -> None:
    found = [(line, tier, classify(line, context)) for tier, line in lines(trick)]
    assert [(line, tier, got) for line, tier, got in found if got.tier != tier] == []


@pytest.mark.parametrize("trick", TRICKS, ids=[trick["name"] for trick in TRICKS])
def test_a_known_bypass_is_found_within_another_line(
    trick: dict[str, Any], context: CommandContext
) -> None:
    chosen = random.Random(trick["name"])
    missed = []
    for tier, line in lines(trick):
        if set("\n#") & set(line) or line.endswith(("&", ";", "\\")):
            continue
        wrapped = chosen.choice(LINES).format(line)
        got = classify(wrapped, context)
        if worst_tier([tier, got.tier]) != got.tier:
            missed.append((wrapped, tier, got))
    assert missed == []


def test_a_decision_about_any_text_is_made_without_an_error(context: CommandContext) -> None:
    table = {"allow": ["Bash(cat *)", "Bash(*x)"], "deny": ["Read(.env)", "Edit(*.lock)"]}
    rules = compile_rules(convert(table, PermissionsConfig), Source(file="config.toml"))
    grants = GrantStore(Path(context.home, "grants.json"))
    gate = PolicyGate(grants, home=context.home, policies=Policies(rules))
    every = [line for trick in TRICKS for _, line in lines(trick) if "git" not in line]
    chosen = random.Random(7)
    for _ in range(400):
        first, second = chosen.sample(every, 2)
        at, cut = chosen.randint(0, len(first)), chosen.randint(0, len(second))
        line = first[:at] + chosen.choice(PIECES) + second[cut:] + chosen.choice(PIECES)
        gate.judge(CommandAccess(line, context.cwd), mode="full", project=context.cwd)


def test_the_corpus_is_large_and_says_where_each_trick_was_published() -> None:
    every = [line for trick in TRICKS for _, line in lines(trick)]
    assert len(every) >= 1500
    assert len(set(every)) == len(every)
    assert all(trick["sources"] for trick in TRICKS)
