"""A program that runs `acp-agent` as a child of a warm parent, for programs that start agents.

    python -I -S warm_command.py SOCKET [arguments of acp-agent]

It hands on its standard streams, its folder and its environment, and ends as the agent ends; where
it is killed, the agent is.
`WarmParent.command` is this command line.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main(path: str, arguments: list[str]) -> int:
    """Have the agent started, pass signals on to it, and return its exit status."""
    reports, report = os.pipe()
    request = {"arguments": arguments, "cwd": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        control.connect(path)
        socket.send_fds(control, [json.dumps(request).encode()], [0, 1, 2, report])
        os.close(report)
        with open(reports) as lines:
            pid = int(lines.readline())
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda number, _: os.kill(pid, number))
            for descriptor in (0, 1, 2):  # so that each end of the agent's pipes is seen
                os.close(descriptor)
            status = os.waitstatus_to_exitcode(int(lines.readline()))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
