"""How long the gate takes to decide about a command line, with the rules of a large policy."""

from __future__ import annotations

import os
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec

from acp_agent.config.policy_types import PermissionsConfig
from acp_agent.permissions.access import CommandAccess, WriteAccess
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.policy.loading import Policies, compile_rules
from acp_agent.permissions.policy.rules import PolicyRule, Source
from acp_agent.workspace.git_repositories import GitRepositories, RepositoryCache
from benchmarks.table import Row, row

_CORPORA = Path(__file__).parents[1] / "tests" / "permissions"
_PROGRAMS = ("npm run", "make", "cargo", "go", "uv run", "docker", "kubectl", "terraform")
_ROUNDS = 3
_GOAL = 1.0  # ms


def lines() -> list[str]:
    """Return the command lines of the tests' corpora."""
    tricks = tomllib.loads((_CORPORA / "bypasses.toml").read_text("utf-8"))["trick"]
    table = tomllib.loads((_CORPORA / "commands.toml").read_text("utf-8"))
    groups = [*table.values(), *(g for t in tricks for g in t.values() if isinstance(g, list))]
    return list(dict.fromkeys(line for group in groups for line in group))


def rows() -> list[Row]:
    """Measure decisions about command lines and edits by some two hundred rules."""
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.realpath(folder)
        project = f"{home}/project"
        for name in ("objects", "refs"):  # an empty repository
            Path(project, ".git", name).mkdir(parents=True)
        Path(project, ".git", "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
        gate = PolicyGate(
            GrantStore(Path(home, "grants.json")), home=home, policies=Policies(_rules())
        )

        def command(line: str) -> Callable[[], object]:
            access = CommandAccess(line, project)
            return lambda: gate.judge(access, mode="ask", project=project)

        edit = WriteAccess((f"{project}/src/a.py",))
        command("npm run x")()  # imports the parser
        # Git is asked about the repository only where a line reads by git.
        every = [line for line in lines() if "git" not in line]
        times = sorted(_best(command(line), time.process_time) for line in every)
        cache = RepositoryCache()
        gate.repositories = lambda stopped: GitRepositories(stopped, cache=cache)  # as a session's
        reads = _best(command("git status"))
        asked = _best(lambda: GitRepositories().used_in(project))
        edits = _best(lambda: gate.judge(edit, mode="ask", project=project), time.process_time)
    count = f"{len(every):,}"
    return [
        row(f"decide about a command line, of {count}", "ms", times, plus=_GOAL),
        row("… 99 of 100", "ms", [times[len(times) * 99 // 100]], plus=_GOAL),
        row("… read by git", "ms", [reads], plus=_GOAL),
        row("… when its settings must be asked for", "ms", [asked]),
        row("… an edit", "ms", [edits], plus=_GOAL),
    ]


def _rules() -> list[PolicyRule]:
    table = {
        effect: [
            f"Bash({program} {effect}-{number} *)" for program in _PROGRAMS for number in range(8)
        ]
        + [f"Edit({effect}/{number}/**)" for number in range(8)]
        for effect in ("allow", "ask", "deny")
    }
    return compile_rules(msgspec.convert(table, PermissionsConfig), Source(file="config.toml"))


def _best(judge: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the shortest of a few times in ms.

    Args:
        clock: of the processor, unless the decision waits for git.
    """
    times = []
    for _ in range(_ROUNDS):
        start = clock()
        judge()
        times.append((clock() - start) * 1000)
    return min(times)
