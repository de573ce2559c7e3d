"""What the sandbox adds to a command."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox, Unavailable, find_backend
from acp_agent.workspace.processes import LocalProcesses
from benchmarks.table import Row, row

_ROUNDS = 40
_GOAL = 15.0  # ms more than the command takes without


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
            own=(),
            readable=(),
            temporary=f"{project.parent}/temporary",
            search_path=os.environ.get("PATH", os.defpath),
            config=SandboxConfig(),
        )
        plain, confined = asyncio.run(_measure(project, Sandbox(backend, policy)))
    return [
        row("a command in the sandbox", "ms", confined, "without", plain, times=1.0, plus=_GOAL)
    ]


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
