"""Stands between a client and the agent and keeps every line, so that the oracle can judge them.

    python -m tests.support.relay RECORD command [argument ...]

runs the command with its stdin and stdout passed through. RECORD gets one JSON array a line: who
wrote, and what. A line is recorded before it is passed on, so that the order is one in which things
can have happened. `judge` reads a record.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, BinaryIO

from tests.support.framing import Json
from tests.support.oracle import Oracle


def relay_command(record: Path, command: list[str]) -> list[str]:
    """The command line that runs `command` behind a relay."""
    return [sys.executable, "-m", "tests.support.relay", str(record), *command]


def judge(record: Path) -> list[Json]:
    """The agent's messages in a record, once the oracle has passed them. Raises ViolationError."""
    oracle = Oracle()
    messages: list[Json] = []
    with record.open(encoding="utf-8") as lines:
        for line in lines:
            who, text = json.loads(line)
            data = text.encode("latin-1")
            if who == "client":
                oracle.sent(data)
            else:
                messages += oracle.received(data)
    assert messages, "the agent wrote nothing"
    return messages


def _copy(who: str, source: IO[bytes], target: IO[bytes], record: BinaryIO) -> None:
    try:
        for line in source:
            entry = json.dumps([who, line.decode("latin-1")]).encode() + b"\n"
            record.write(entry)  # unbuffered and opened to append: one write, one entry
            target.write(line)
            target.flush()
    except OSError:
        pass  # the other side is gone
    finally:
        target.close()


def main() -> int:
    """Run the command; returns its exit status."""
    record = Path(sys.argv[1]).open("ab", buffering=0)  # noqa: SIM115 - open until the end
    agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None
    assert agent.stdout is not None
    client_in = os.fdopen(os.dup(0), "rb")
    client_out = os.fdopen(os.dup(1), "wb")
    threading.Thread(
        target=_copy, args=("client", client_in, agent.stdin, record), daemon=True
    ).start()
    outward = threading.Thread(target=_copy, args=("agent", agent.stdout, client_out, record))
    outward.start()
    outward.join()
    return agent.wait(10)


if __name__ == "__main__":
    # The thread that waits for the client must not hold up the end, nor a lock at it.
    os._exit(main())
