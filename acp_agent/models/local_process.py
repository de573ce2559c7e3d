"""The process that serves a local model: started, awaited, ended and reaped with its group."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.errors import ModelError
from acp_agent.models.local import served_models
from acp_agent.platform import posix
from acp_agent.platform.open_files import reason

START_LIMIT = 60.0  # seconds; loading takes one to three, more on a busy machine
_END_LIMIT = 2.0  # seconds for the server to end by itself
_POLL = 0.02  # seconds between two looks at what is left of its group
_HEALTH_LIMIT = 5.0  # seconds for it to answer once it says that it does

# What of the environment the server is given: no key is among it.
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


class _Told(Struct):
    address: str = ""
    error: str = ""


class LocalProcess:
    """One server. `address` is where it answers, without a path."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self._process = process
        self.address = address

    @classmethod
    async def start(
        cls, model: Path, *, command: Sequence[str] = (), limit: float = START_LIMIT
    ) -> LocalProcess:
        """Start a server and wait until it answers.

        Args:
            model: the GGUF file.
            command: what to run instead of this package's server; the file is its last argument.
            limit: how long that may take, in seconds.

        Raises:
            ModelError: it cannot be started, or does not answer in time.
        """
        words = command or (sys.executable, "-P", "-m", "acp_agent.models.local_server")
        # A folder with a module of that name must not be what is run.
        environ = {name: os.environ[name] for name in _PASSED if name in os.environ}
        environ["PYTHONPATH"] = os.pathsep.join(filter(os.path.isabs, sys.path))
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                str(model),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                cwd=model.parent,
                env=environ,
            )
        except OSError as error:
            raise _failed(f"cannot be started: {reason(error)}") from None
        started = cls(process, "")
        try:
            async with asyncio.timeout(limit):
                started.address = await started._told()
        except TimeoutError:
            await started.end()
            raise _failed(f"did not start within {limit:g} seconds") from None
        except BaseException:
            await started.end()
            raise
        return started

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def end(self) -> None:
        """End it and what it has started, and reap it. Takes at most some seconds."""
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_END_LIMIT):
                await process.wait()
        except TimeoutError:
            pass
        finally:
            posix.end_group(process.pid, at_once=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_LIMIT):
                    await process.wait()
                    # Nothing tells of the end of a group.
                    while await asyncio.to_thread(posix.group_runs, process.pid):  # noqa: ASYNC110
                        await asyncio.sleep(_POLL)

    async def _told(self) -> str:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            code = await self._process.wait()
            raise _failed(f"ended at once, with status {code}")
        try:
            told = msgspec.json.decode(line, type=_Told)
        except msgspec.DecodeError:
            raise _failed("said something that is no address") from None
        if told.error or not told.address.startswith("http://127.0.0.1:"):
            raise _failed(f"cannot load its model: {told.error or told.address}")
        if await served_models(f"{told.address}/v1", patience=_HEALTH_LIMIT) is None:
            raise _failed(f"does not answer at {told.address}")
        return told.address


def _failed(what: str) -> ModelError:
    return ModelError(f"The local model's server {what}.", provider="local")
