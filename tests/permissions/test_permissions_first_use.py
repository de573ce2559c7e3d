"""Commands of several agents are judged at the same time, also the first ones of a process."""

from __future__ import annotations

import subprocess
import sys

# Threads change places as often as they can, so that what is not safe shows at once.
PROGRAM = """
import sys, threading
from acp_agent.permissions import grant_tables
sys.setswitchinterval(1e-6)
start = threading.Barrier(6)
def judge():
    start.wait()
    grant_tables.grant_tables()
threads = [threading.Thread(target=judge) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_the_first_commands_of_a_process_can_be_judged_in_several_threads() -> None:
    for _ in range(5):
        ran = subprocess.run(
            (sys.executable, "-c", PROGRAM), capture_output=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr.decode()
