"""A command that takes more than its limits is ended, and is told why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acp_agent.config.sandbox_types import SandboxConfig, SandboxLimitsConfig
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox, Unavailable, find_backend
from acp_agent.workspace.processes import LocalProcesses

MANY = "for i in $(seq 60); do sleep 30 & done; wait"
SHARED = """exec python3 -c '
import mmap, time
held = [mmap.mmap(-1, 60_000_000) for _ in range(4)]
for one in held:
    one[::4096] = bytes(len(one[::4096]))
time.sleep(60)
'"""


@pytest.mark.parametrize(
    ("line", "why"), [(MANY, "more than 20 processes"), (SHARED, "a process with more")]
)
async def test_a_command_over_its_limits_is_ended_with_the_reason(
    tmp_path: Path, line: str, why: str
) -> None:
    found = find_backend(os.environ.get("PATH"))
    if isinstance(found, Unavailable):
        pytest.skip(f"no sandbox: {found.reason}")
    project = Path(os.path.realpath(tmp_path), "project")
    project.mkdir()
    policy = SandboxPolicy(
        roots=(str(project),),
        home=str(project.parent),
        program_files=(),
        readable=(),
        temporary=f"{project.parent}/temporary",
        search_path=os.environ["PATH"],
        config=SandboxConfig(limits=SandboxLimitsConfig(processes=20, memory_bytes=100_000_000)),
    )
    sandbox = Sandbox(found, policy)
    processes = LocalProcesses(tmp_path / "outputs", environ=os.environ, sandbox=sandbox)

    async def ignored(_: str) -> None: ...

    try:
        result = await processes.run(line, project, timeout=25, on_output=ignored)
    finally:
        await processes.aclose()
    assert not result.timed_out
    # The kernel limits the number of processes of all but root by itself.
    assert f"the sandbox ended {why}" in result.output or "fork" in result.output, result
