"""Run a function in a process that is killed when its time is up.

A small input can keep a parser busy for hours, and a thread cannot be killed. The process runs
`sandbox/worker_main.py`. Arguments and result are MessagePack on stdin and stdout.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from acp_agent.errors import WorkspaceError
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.sandbox.worker_main import Answer, Task
from acp_agent.workspace.child_process import end_process, start_confined

_MAX_ANSWER = 64_000_000  # bytes
_CHUNK = 1 << 16  # bytes per read
T = TypeVar("T")


async def run_in_process(
    function: str,
    arguments: Mapping[str, object],
    kind: type[T],
    *,
    seconds: float,
    cpu_seconds: float | None = None,
    confine: Confine = unconfined,
) -> T:
    """Run a function in a new process and return its result.

    Args:
        function: a function of this program, as `module:name`.
        arguments: keyword arguments, of types that MessagePack supports.
        seconds: how long it may take, which a busy machine lengthens.
        cpu_seconds: how long the function may compute; None: as long as it may take.
        confine: wraps the command line.

    Raises:
        TimeoutError: it took too long and was killed.
        WorkspaceError: it raised an error, used too much memory, or cannot be started.
    """
    raw_arguments = msgspec.Raw(msgspec.msgpack.encode(arguments))
    task = Task(function, raw_arguments, seconds if cpu_seconds is None else cpu_seconds)
    environ = {"PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path)), "PYTHONUTF8": "1"}
    try:
        command = (sys.executable, "-P", "-m", Task.__module__)
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
        answer = msgspec.msgpack.decode(raw, type=Answer)
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
