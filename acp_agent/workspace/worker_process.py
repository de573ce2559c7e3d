"""Run a function in a new process, which is killed when its time is up.

A small input can keep a parser busy for hours, and a thread cannot be killed. The process reads
its arguments from stdin and writes the result to stdout, both as MessagePack. It sets its own
resource limits in case this process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import math
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from acp_agent.errors import AcpAgentError, WorkspaceError
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.child_process import end_process, start_confined

_MAX_MEMORY = 3_000_000_000  # bytes of address space
_MAX_ANSWER = 64_000_000  # bytes
_CHUNK = 1 << 16  # bytes per read

T = TypeVar("T")


class _Task(Struct, frozen=True):
    """A task: a function as `module:name`, its arguments, and its limit of CPU seconds."""

    function: str
    arguments: msgspec.Raw
    seconds: int


class _Answer(Struct, frozen=True):
    result: msgspec.Raw = msgspec.Raw()
    error: str = ""


async def run_in_process(
    function: str,
    arguments: Mapping[str, object],
    kind: type[T],
    *,
    seconds: float,
    confine: Confine = unconfined,
) -> T:
    """Run a function in a new process and return its result.

    Args:
        function: a function of this program, as `module:name`.
        arguments: keyword arguments, of types that MessagePack supports.
        confine: wraps the command line.

    Raises:
        TimeoutError: it took too long and was killed.
        WorkspaceError: it raised an error, used too much memory, or cannot be started.
    """
    task = _Task(function, msgspec.Raw(msgspec.msgpack.encode(arguments)), math.ceil(seconds) + 1)
    environ = {"PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path)), "PYTHONUTF8": "1"}
    try:
        command = (sys.executable, "-P", "-m", __name__)
        process = await start_confined(
            confine,
            command,
            environ,
            "/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise WorkspaceError(f"no process can be started: {error.strerror or error}") from None
    try:
        async with asyncio.timeout(seconds):
            raw = await _send_task(process, msgspec.msgpack.encode(task))
    finally:
        await end_process(process)
    try:
        answer = msgspec.msgpack.decode(raw, type=_Answer)
        if not answer.error:
            return msgspec.msgpack.decode(answer.result, type=kind)
    except msgspec.DecodeError:
        raise WorkspaceError("it takes too much memory, or time") from None
    raise WorkspaceError(answer.error)


async def _send_task(process: asyncio.subprocess.Process, task: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it exited early
        process.stdin.write(task)
        await process.stdin.drain()
    process.stdin.close()
    answer = bytearray()
    while len(answer) < _MAX_ANSWER and (piece := await process.stdout.read(_CHUNK)):
        answer += piece
    return bytes(answer)


def _limit_resources(seconds: int) -> None:
    for limit, value in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, _MAX_MEMORY)):
        with contextlib.suppress(OSError, ValueError):  # unsupported, or already lower
            resource.setrlimit(limit, (value, value))


def _run(raw: bytes) -> _Answer:
    task = msgspec.msgpack.decode(raw, type=_Task)
    _limit_resources(task.seconds)
    module, _, name = task.function.partition(":")
    try:
        arguments = msgspec.msgpack.decode(task.arguments)
        result = getattr(importlib.import_module(module), name)(**arguments)
        return _Answer(result=msgspec.Raw(msgspec.msgpack.encode(result)))
    except AcpAgentError as error:
        return _Answer(error=str(error))
    except Exception as error:  # noqa: BLE001 - bad input can raise any error
        return _Answer(error=f"it cannot be read ({type(error).__name__})")


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(_run(sys.stdin.buffer.read())))
