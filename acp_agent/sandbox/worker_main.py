"""The main module of a worker process: run the task from stdin, write its answer to stdout.

It imports little, since each check of a file's syntax starts such a process. It sets its own
resource limits in case its parent is killed.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import resource
import signal
import sys

import msgspec
from msgspec import Struct

from acp_agent.errors import AcpAgentError

_MAX_MEMORY = 3_000_000_000  # bytes of address space


class Task(Struct, frozen=True):
    """A task: a function as `module:name`, its arguments, and its limit of CPU seconds."""

    function: str
    arguments: msgspec.Raw
    seconds: float


class Answer(Struct, frozen=True):
    """The result of a task, or its error."""

    result: msgspec.Raw = msgspec.Raw()
    error: str = ""


def _limit_resources(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)  # ends the process at that CPU time
    cpu_seconds = math.ceil(seconds) + 1  # for code that catches the signal
    for limit, value in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_AS, _MAX_MEMORY)):
        with contextlib.suppress(OSError, ValueError):  # unsupported, or already lower
            resource.setrlimit(limit, (value, value))


def _run(raw: bytes) -> Answer:
    task = msgspec.msgpack.decode(raw, type=Task)
    _limit_resources(task.seconds)
    module, _, name = task.function.partition(":")
    try:
        arguments = msgspec.msgpack.decode(task.arguments)
        result = getattr(importlib.import_module(module), name)(**arguments)
        return Answer(result=msgspec.Raw(msgspec.msgpack.encode(result)))
    except AcpAgentError as error:
        return Answer(error=str(error))
    except Exception as error:  # noqa: BLE001 - bad input can raise any error
        return Answer(error=f"it cannot be read ({type(error).__name__})")


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(_run(sys.stdin.buffer.read())))
