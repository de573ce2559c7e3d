"""The model that comes with the extra `local`, served by a process that this one starts.

The server is started with the first request and ends with the driver, or with this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from msgspec import structs

from acp_agent.errors import ConfigError, ModelError
from acp_agent.models import local_model
from acp_agent.models.base import Failed, ModelRequest, StreamEvent
from acp_agent.models.local_process import LocalProcess
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.providers import Dialect, Provider
from acp_agent.models.sdk import openai_client


class LocalDriver:
    """A `Driver`. Making one imports the SDK, which takes tenths of a second: use a thread."""

    def __init__(self, provider: Provider) -> None:
        """Start nothing yet.

        Raises:
            ConfigError: the model or what serves it is not installed.
        """
        path = local_model.model_file()
        if path is None or not local_model.installed():
            raise ConfigError(
                f"{local_model.REF} is not installed: run `{local_model.INSTALL}` "
                "(127 MB), or choose another model."
            )
        openai_client()
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

    async def aclose(self) -> None:
        """End the server."""
        self._closed = True
        async with self._starting:
            await self._stop()

    async def _ready(self) -> OpenAIDriver:
        """The driver of a server that runs; one that has ended is started again."""
        async with self._starting:
            if self._closed:
                raise ModelError("The local model's server is closed.", provider="local")
            if self._driver is not None and self._process is not None and self._process.runs:
                return self._driver
            await self._stop()
            self._process = await LocalProcess.start(self._path)
            at = structs.replace(
                self._provider,
                name="The local model",
                base_url=f"{self._process.address}/v1",
                dialect=Dialect(),  # with a limit: a small model may never come to an end
            )
            self._driver = OpenAIDriver(at)
            return self._driver

    async def _stop(self) -> None:
        driver, self._driver = self._driver, None
        process, self._process = self._process, None
        if driver is not None:
            await driver.aclose()
        if process is not None:
            await process.end()
