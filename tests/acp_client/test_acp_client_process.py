"""An agent as a child process of ours, and what becomes of the pipes between us."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from acp_agent.acp_client.process import AgentChild
from protocol.v1 import methods, types as acp
from tests.support.open_session import is_alive
from tests.support.waiting import until

LARGE_TEXT = "x" * 200_000  # more than a pipe holds
READS_A_LITTLE = "import os, time; time.sleep(0.3); os.read(0, 70_000); time.sleep(60)"
READS_LATE = """
import sys, time
time.sleep(0.3)
sys.exit(7 if len(sys.stdin.buffer.read()) > 200_000 else 1)
"""


async def started(script: str, cwd: Path) -> AgentChild:
    """A child that was sent more than it read."""
    child = await AgentChild.start([sys.executable, "-c", script], {}, cwd=cwd)
    child.connection.notify(methods.SESSION_CANCEL, acp.CancelNotification(session_id=LARGE_TEXT))
    return child


async def test_what_an_agent_never_read_is_written_into_no_other_file(tmp_path: Path) -> None:
    child = await started(READS_A_LITTLE, tmp_path)
    ending = asyncio.create_task(child.aclose(timeout=0.2))
    with ExitStack() as files:
        paths: list[Path] = []
        while not ending.done():  # each takes the lowest number that is free
            paths.append(tmp_path / str(len(paths)))
            files.enter_context(paths[-1].open("wb"))
            await asyncio.sleep(0.02)
        await ending
        assert child.status == -9
        assert [path.name for path in paths if path.stat().st_size] == []


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from acp_agent.acp_client import process
process.EXIT_SECONDS = 0.0

async def main():
    agent = await process.AgentChild.start([sys.executable, "-c", sys.argv[1]], {}, cwd=Path())
    await agent.initialize(process.acp.ClientCapabilities())

asyncio.run(main())
"""
# Ignores the end of its input and what asks it to end, and says when it does.
STUBBORN = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.readline()
print(os.getpid(), file=sys.stderr, flush=True)
time.sleep(600)
"""


async def test_an_agent_that_ignores_the_end_of_its_input_does_not_outlive_a_killed_client(
    tmp_path: Path,
) -> None:
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, STUBBORN, cwd=tmp_path, stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert client.stderr is not None
    async with asyncio.timeout(60):
        agent = int(await client.stderr.readline())
        client.kill()
        await client.wait()
    await until(lambda: not is_alive(agent))


async def test_an_agent_that_reads_late_gets_all_and_ends_by_itself(tmp_path: Path) -> None:
    child = await started(READS_LATE, tmp_path)
    await child.aclose(timeout=20)
    assert child.status == 7
