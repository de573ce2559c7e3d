"""Runs all cases of `escapes.toml`, and prints what each reached.

    python -m tests.sandbox.escape_run FOLDER [without-bubblewrap | old-landlock | unconfined]

runs them in sandboxes of the agent, also of the kind that it has where bubblewrap is missing (as on
this kernel, or on an old one), or without one, and prints a JSON object: lists of sentences by
the case's name. It stands itself within an outer sandbox, see `test_sandbox_escapes.py`; FOLDER is
empty, and it changes nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from acp_agent.config.sandbox_types import SandboxConfig, SandboxLimitsConfig
from acp_agent.platform.posix import find_program
from acp_agent.sandbox.landlock.backend import OLDEST, Landlock
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox, Unavailable, find_backend
from acp_agent.workspace.processes import LocalProcesses
from tests.sandbox.escape_cases import SECRET, Case, load_corpus
from tests.sandbox.escape_judge import Judge
from tests.sandbox.escape_world import World

DRIVER = Path(__file__).parent / "escape_driver.py"
NOWHERE = "/nonexistent"  # a PATH on which there is no bubblewrap
BATCH_LIMIT = 60.0  # seconds
LIMITS = SandboxLimitsConfig(processes=80, memory_bytes=200_000_000, file_bytes=5_000_000)
USES = """
git status; git add -A; git commit -qm x; git st; git checkout -qb other
git log -1 -p; git diff HEAD~1; git submodule status
for folder in below target older/a/b/c node_modules/x node_modules/@x/y .venv/src/z; do
  ls -d $folder/.git || ls -d $folder/HEAD && (cd $folder; git status; git st)
done
"""


class Runner:
    """Runs cases in sandboxes, or without."""

    def __init__(self, world: World, judge: Judge) -> None:
        self._world = world
        self._judge = judge

    async def run(
        self, processes: LocalProcesses | None, cases: Sequence[Case], *, then: bool = False
    ) -> None:
        """Run cases in one sandbox and judge what they wrote; without processes, unconfined."""
        world, reached = self._world, self._judge.reached
        todo, results = world.project / "cases.json", world.project / "results.json"
        todo.write_text(json.dumps([self._prepared(case, then=then) for case in cases]))
        results.unlink(missing_ok=True)
        command = [sys.executable, "-I", str(DRIVER), str(todo), str(results)]
        output = ""
        if processes is None:
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    command, env=world.environ, cwd=world.project, timeout=BATCH_LIMIT, check=False
                )
        else:
            ended = await processes.run(
                shlex.join(command),
                world.project,
                timeout=min(case.seconds for case in cases),
                on_output=_ignore,
            )
            output = ended.output
        lines = results.read_text().splitlines() if results.exists() else []
        statuses: dict[str, int | None] = {}
        for line in lines:
            name, statuses[name], written = json.loads(line)
            if SECRET in written:
                reached[name].append(f"read {written[written.index(SECRET) :][:60]!r}")
        for case in cases:
            if case.name not in statuses and not case.alone:
                reached[case.name].append(f"did not run: {output[-300:]}")
            elif statuses.get(case.name) == 0 and case.check in {"refused", "process"}:
                reached[case.name].append("succeeded")

    def _prepared(self, case: Case, *, then: bool) -> dict[str, object]:
        world = self._world
        victim = world.victims.get(case.name)
        program = {"sh": case.then} if then else {"sh": case.sh} if case.sh else {"py": case.py}
        return program | {
            "name": case.name,
            "cwd": str(world.folder_of(case)),
            "environ": {
                "CASE": case.name,
                "MINE": str(world.outside / case.name),
                "REPO": str(world.folder_of(case)),
                "VICTIM": str(victim.pid) if victim else "",
            },
        }


def use_repositories(world: World) -> None:
    """Do in each repository what people and the agent do."""
    environ = world.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_PAGER": "cat"}
    search_path = f".::bin:node_modules/.bin:{environ['PATH']}"

    def use(folder: Path) -> None:
        subprocess.run(
            ["/bin/sh", "-c", USES],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )

    folders = [world.folder_of(case) for case in world.cases if case.repo]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, folders))
    for folder in folders:
        os.chdir(folder)
        program = find_program("git", search_path)
        subprocess.run([program or "false", "--version"], capture_output=True, check=False)
    os.chdir(world.base)


async def main(base: Path, kind: str) -> dict[str, list[str]]:
    """Run everything; returns what was reached."""
    corpus, unconfined = load_corpus(), kind == "unconfined"
    if unconfined:
        cases = tuple(case for case in corpus.cases if not case.control)
        corpus = structs.replace(corpus, cases=cases)
    world = World(base, corpus)
    world.build()
    world.environ["SERVICE_API_KEY"] = f"{SECRET}-environment"
    normal, limited = (None, None) if unconfined else _sandboxes(world, kind)
    for processes in filter(None, (normal, limited)):
        await processes.run("true", world.project, timeout=9, on_output=_ignore)
    judge = Judge(world)
    runner = Runner(world, judge)
    together = [case for case in world.cases if not (case.alone or case.limited)]
    await runner.run(normal, sorted(together, key=lambda case: case.last))
    await runner.run(limited, [case for case in world.cases if case.limited])
    for case in world.cases:
        if case.alone:
            await runner.run(normal, [case])
    await runner.run(normal, [case for case in world.cases if case.then], then=True)
    use_repositories(world)
    reached = judge.judge()
    for processes in filter(None, (normal, limited)):
        await processes.aclose()
    world.close()
    return reached


def _sandboxes(world: World, kind: str) -> tuple[LocalProcesses, LocalProcesses]:
    """What runs commands in the sandbox; the second with narrow limits."""
    backend = find_backend(NOWHERE if kind == "without-bubblewrap" else os.environ["PATH"])
    if kind == "old-landlock":
        backend = Landlock(OLDEST, "", namespace=has_namespaces())
    assert not isinstance(backend, Unavailable), backend
    repositories = [world.folder_of(case) for case in world.cases if case.repo]
    roots = (world.project, world.base / "filled", world.base / "fresh", *repositories)
    policy = SandboxPolicy(
        roots=tuple(map(str, roots)),
        home=str(world.home),
        program_files=(f"{world.home}/.config/acp-agent", f"{world.home}/.local/share/acp-agent"),
        readable=(),
        temporary="/tmp/of-the-session",
        search_path=os.environ["PATH"],
        config=SandboxConfig(),
    )
    narrow = structs.replace(policy, config=SandboxConfig(limits=LIMITS))
    first, second = (
        LocalProcesses(world.base / "outputs", environ=world.environ, sandbox=Sandbox(backend, one))
        for one in (policy, narrow)
    )
    return first, second


def has_namespaces() -> bool:
    """Whether a command that Landlock confines gets a process namespace on this system."""
    found = find_backend(NOWHERE)
    assert isinstance(found, Landlock)
    return found.namespace


async def _ignore(_text: str) -> None:
    pass


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), "".join(sys.argv[2:])))))
