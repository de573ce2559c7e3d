"""The cost of unused servers, skills, agents, hooks and memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.agent import Agent
from benchmarks.requests import first
from benchmarks.table import Row, pairs, row

_ROUNDS = 15
_SERVERS, _SKILLS, _HOOKS = 10, 50, 20
_NOISE = 2.0  # ms that two runs of the same program differ by
_MOST = 600.0  # bytes that everything together adds to the first request
_OFF = "bundled_skills = false\nbundled_agents = false\nmemory = false\n"


def rows() -> list[Row]:
    """`session/new` with a configured and an empty home, and bytes of the first request."""
    with tempfile.TemporaryDirectory() as full, tempfile.TemporaryDirectory() as empty:
        _configure(Path(full))

        def configured() -> float:
            return _to_session(full)

        def plain() -> float:
            return _to_session(empty)

        configured(), plain()  # the journals are made, and the modules compiled
        times = pairs(configured, plain, _ROUNDS)
    added = float(first("openai") - first("openai", _OFF))
    return [
        row(
            f"spawn → session/new with {_SERVERS} servers, {_SKILLS} skills, {_HOOKS} hooks",
            "ms",
            times[0],
            "without",
            times[1],
            times=1.0,
            plus=_NOISE,
        ),
        row("skills, agents and memory in the first request", "bytes", [added], plus=_MOST),
    ]


def _to_session(home: str) -> float:
    with (
        Agent("--model", "demo/demo", home=home) as agent,
        tempfile.TemporaryDirectory() as cwd,
    ):
        agent.initialize()
        agent.new_session(cwd)
        return agent.since_spawn()


def _configure(home: Path) -> None:
    servers = (
        f'[mcp_servers.s{number}]\ncommand = "sleep"\nargs = ["60"]\n' for number in range(_SERVERS)
    )
    hooks = (
        f'[[hooks.PreToolUse]]\nmatcher = "Write"\ncommand = "true {number}"\n'
        for number in range(_HOOKS)
    )
    (home / "config.toml").write_text("\n".join((*servers, *hooks)))
    for number in range(_SKILLS):
        folder = home / "skills" / f"skill-{number}"
        folder.mkdir(parents=True)
        head = f"---\nname: skill-{number}\ndescription: Skill number {number} of a team.\n---\n"
        (folder / "SKILL.md").write_text(f"{head}Do what it says.\n")
