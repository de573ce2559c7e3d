"""A program that runs `acp-agent` as a child of a warm parent, for programs that start agents.

    python -I -S warm_command.py SOCKET [arguments of acp-agent]

It hands on its standard streams, its folder and its environment, and ends as the agent ends; where
it is killed, the agent is.
`WarmParent.command` is this command line.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(path: str, arguments: list[str]) -> int:
    """Have the agent started, pass signals on to it, and return its exit status."""
    # Signals wait until they can be passed on; one that comes right before a read would be noticed
    # only behind it, so the wait is for the report or for a signal (the pipe `woken`).
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    reports, report = os.pipe()
    woken, waker = os.pipe()
    request = {"arguments": arguments, "cwd": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        control.connect(path)
        socket.send_fds(control, [json.dumps(request).encode()], [0, 1, 2, report])
        os.close(report)
        with open(reports) as lines:
            pid = int(lines.readline())
            os.set_blocking(waker, False)
            signal.set_wakeup_fd(waker)
            for number in _PASSED_ON:
                signal.signal(number, lambda number, _: os.kill(pid, number))
            for descriptor in (0, 1, 2):  # so that each end of the agent's pipes is seen
                os.close(descriptor)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            while reports not in select.select([reports, woken], [], [])[0]:
                os.read(woken, 64)
            status = os.waitstatus_to_exitcode(int(lines.readline()))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
