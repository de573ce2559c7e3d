"""An agent as a child process of ours, and what becomes of the pipes between us."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path

from acp_agent.cli.child import AgentChild
from protocol.v1 import methods, types as acp

MUCH = "x" * 200_000  # more than a pipe holds
READS_A_LITTLE = "import os, time; time.sleep(0.3); os.read(0, 70_000); time.sleep(60)"
READS_LATE = """
import sys, time
time.sleep(0.3)
sys.exit(7 if len(sys.stdin.buffer.read()) > 200_000 else 1)
"""


async def started(script: str, cwd: Path) -> AgentChild:
    """A child that was sent more than it read."""
    child = await AgentChild.start([sys.executable, "-c", script], {}, cwd=cwd)
    child.connection.notify(methods.SESSION_CANCEL, acp.CancelNotification(session_id=MUCH))
    return child


async def test_what_an_agent_never_read_is_written_into_no_other_file(tmp_path: Path) -> None:
    child = await started(READS_A_LITTLE, tmp_path)
    ending = asyncio.create_task(child.aclose(patience=0.2))
    with ExitStack() as files:
        paths: list[Path] = []
        while not ending.done():  # each takes the lowest number that is free
            paths.append(tmp_path / str(len(paths)))
            files.enter_context(paths[-1].open("wb"))
            await asyncio.sleep(0.02)
        await ending
        assert child.status == -9
        assert [path.name for path in paths if path.stat().st_size] == []


async def test_an_agent_that_reads_late_gets_all_and_ends_by_itself(tmp_path: Path) -> None:
    child = await started(READS_LATE, tmp_path)
    await child.aclose(patience=20)
    assert child.status == 7
