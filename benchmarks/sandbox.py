"""The overhead of the sandbox for a command, and of a hook."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.config.types import Config
from acp_agent.hooks.types import Hook
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox, Unavailable, find_backend
from acp_agent.session.hook_session import hook_runner
from acp_agent.workspace.processes import LocalProcesses
from benchmarks.table import Row, row

_ROUNDS = 40
_GOAL = 15.0  # ms more than the command takes without
_HOOK_GOAL = 10.0  # ms more than the hook's program takes


def rows() -> list[Row]:
    """Measure a command that does nothing, by turns with the sandbox and without."""
    backend = find_backend(os.environ.get("PATH"))
    if isinstance(backend, Unavailable):
        return []
    with tempfile.TemporaryDirectory() as folder:
        project = Path(os.path.realpath(folder), "project")
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        policy = SandboxPolicy(
            roots=(str(project),),
            home=str(Path.home()),
            program_files=(),
            readable=(),
            temporary=f"{project.parent}/temporary",
            search_path=os.environ.get("PATH", os.defpath),
            config=SandboxConfig(),
        )
        sandbox = Sandbox(backend, policy)
        plain, confined = asyncio.run(_measure(project, sandbox))
        alone, hooked, hooked_confined = asyncio.run(_measure_hooks(project, sandbox))
    both = _HOOK_GOAL + _GOAL
    return [
        row("a command in the sandbox", "ms", confined, "without", plain, times=1.0, plus=_GOAL),
        row("a hook outside it", "ms", hooked, "its program", alone, times=1.0, plus=_HOOK_GOAL),
        row("… in it", "ms", hooked_confined, "its program", alone, times=1.0, plus=both),
    ]


async def _measure_hooks(
    project: Path, sandbox: Sandbox
) -> tuple[list[float], list[float], list[float]]:
    runner = hook_runner(project, Config(), os.environ, sandbox)
    hooks = [Hook(event="Stop", command="true", sandbox=confined) for confined in (False, True)]

    async def alone() -> None:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", "true", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        await process.communicate()

    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        await alone()
        times[0].append((time.perf_counter() - began) * 1_000)
        for hook, found in zip(hooks, times[1:], strict=True):
            began = time.perf_counter()
            answer = await runner.run(hook, {"hook_event_name": "Stop"})
            found.append((time.perf_counter() - began) * 1_000)
            assert not answer.failure, answer.failure
    return times


async def _measure(project: Path, sandbox: Sandbox) -> tuple[list[float], list[float]]:
    outputs = project.parent / "outputs"
    both = [LocalProcesses(outputs, environ=os.environ, sandbox=one) for one in (None, sandbox)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for processes, found in zip(both, times, strict=True):
            began = time.perf_counter()
            await processes.run("true", project, timeout=10, on_output=_ignore)
            found.append((time.perf_counter() - began) * 1_000)
    for processes in both:
        await processes.aclose()
    return times


async def _ignore(_text: str) -> None:
    pass
