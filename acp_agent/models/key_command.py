"""Keys that a command of the user prints, such as a company's tokens that expire after an hour.

The command runs when a key is needed for the first time, when the last key is too old, and when a
key was refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path

from msgspec import structs

from acp_agent.config.secrets import check_key
from acp_agent.content import printable_line
from acp_agent.errors import AcpAgentError, InvalidInputError, ModelError
from acp_agent.models.base import Driver, Failed, ModelRequest, StreamEvent
from acp_agent.models.providers import Provider
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.posix import find_program
from acp_agent.workspace.child_process import end_process, start_process
from acp_agent.workspace.scrub import scrub

_TIMEOUT = 30.0  # the time limit of a command
_MAX_OUTPUT = 64 * 1024  # of its output that are read
_MAX_QUOTED_ERROR = 200  # characters of its error that are shown


class CommandKey:
    """The key that a provider's command printed last.

    Args:
        provider: the provider, which has a `key_command`.
        learn: receives each key, which is then treated as a secret.
    """

    def __init__(self, provider: Provider, learn: Callable[[Iterable[str]], None]) -> None:
        self._provider = provider
        self._learn = learn
        self._key = ""
        self._printed = 0.0  # by the event loop's clock
        self._lock = asyncio.Lock()

    async def provider(self, *, refused: str | None = None) -> Provider:
        """Return the provider with a key. Runs the command if necessary.

        Raises:
            ModelError: the command printed no key; the message says why.
        """
        async with self._lock:
            now = asyncio.get_running_loop().time()
            old = now - self._printed > self._provider.key_refresh
            if not self._key or old or self._key == refused:
                self._key = await self._run()
                self._learn([self._key])
                self._printed = now
            return structs.replace(self._provider, key=self._key)

    async def _run(self) -> str:
        name, *arguments = self._provider.key_command
        program = _program(name)
        if program is None:
            raise self._failed(f"there is no program {name}; write its name, or its whole path")
        try:
            # Not in the project's folder, whose files could change what the command does.
            process = await start_process(
                program,
                *arguments,
                cwd=Path.home(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._failed(f"it cannot be started: {describe_os_error(error)}") from None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(_TIMEOUT):
                printed, error_output = await asyncio.gather(
                    _read_all(process.stdout), _read_all(process.stderr)
                )
                status = await process.wait()
        except TimeoutError:
            raise self._failed(f"it took longer than {_TIMEOUT:g} seconds") from None
        finally:
            await end_process(process)
        key = printed.decode("utf-8", "replace").strip()
        if status:
            words = scrub(error_output.decode("utf-8", "replace"), (key, self._key))
            quoted = printable_line(words, _MAX_QUOTED_ERROR)
            raise self._failed(f"it ended with status {status}{quoted and f': {quoted}'}")
        try:
            return check_key(key)
        except InvalidInputError:
            raise self._failed("what it printed is no key") from None

    def _failed(self, why: str) -> ModelError:
        return ModelError(
            f"The key_command of {self._provider.name} gave no key: {why}. "
            "Run it in a terminal to see what it needs.",
            provider=self._provider.id,
        )


def _program(name: str) -> str | None:
    """Find a program by its name or absolute path; a relative path would depend on the folder."""
    if "/" not in name:
        return find_program(name)
    path = Path(name).expanduser()
    return find_program(str(path)) if path.is_absolute() else None


def key_from_command(provider: Provider) -> Provider:
    """Return a provider with the key that its command prints, if it has one. Blocks.

    Raises:
        ModelError: the command printed no key; the message says why.
    """
    if not provider.key_command:
        return provider
    return asyncio.run(CommandKey(provider, lambda _: None).provider())


async def _read_all(stream: asyncio.StreamReader) -> bytes:
    """Return the beginning of the output. Reads all of it, so that the command is not blocked."""
    read = bytearray()
    while piece := await stream.read(_MAX_OUTPUT):
        read += piece[: _MAX_OUTPUT - len(read)]
    return bytes(read)


class CommandKeyDriver:
    """A `Driver` for a key that a command prints. It creates an inner driver for each new key.

    Args:
        make: creates the driver of a provider with its key. Runs in a thread.
    """

    def __init__(self, key: CommandKey, make: Callable[[Provider], Driver]) -> None:
        self._key = key
        self._make = make
        self._provider: Provider | None = None
        self._driver: Driver | None = None
        self._stream_counts: dict[Driver, int] = {}  # the number of streams of each driver
        self._driver_lock = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent]]:
        """Ask the model; if the key is refused, ask once more with a new key."""
        refused: str | None = None
        failed: Failed | None = None
        while True:
            try:
                driver, key = await self._current(refused)
            except AcpAgentError as error:
                yield [Failed(kind="auth", message=str(error))]
                return
            if failed is not None and key == refused:  # the command printed the same key
                yield [failed]
                return
            async with aclosing(self._stream_with(driver, request)) as batches:
                async for batch in batches:
                    last = batch[-1] if batch else None
                    if isinstance(last, Failed) and last.kind == "auth" and failed is None:
                        failed, refused = last, key
                        break
                    yield batch
                else:
                    return

    async def connect(self) -> None:
        """Open a connection before the first request, if possible. Never raises."""
        try:
            driver, _ = await self._current(None)
        except AcpAgentError:
            return  # the first request will report it
        await driver.connect()

    async def aclose(self) -> None:
        """Close every connection."""
        drivers = {*self._stream_counts, *([self._driver] if self._driver is not None else [])}
        self._driver = self._provider = None
        await asyncio.gather(*(driver.aclose() for driver in drivers), return_exceptions=True)

    async def _stream_with(
        self, driver: Driver, request: ModelRequest
    ) -> AsyncGenerator[Sequence[StreamEvent]]:
        """Stream from a driver. A replaced driver is closed when its last stream ends."""
        self._stream_counts[driver] = self._stream_counts.get(driver, 0) + 1
        stream = driver.stream(request)
        try:
            async for batch in stream:
                yield batch
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
            self._stream_counts[driver] -= 1
            if not self._stream_counts[driver]:
                del self._stream_counts[driver]
                if driver is not self._driver:
                    await driver.aclose()

    async def _current(self, refused: str | None) -> tuple[Driver, str | None]:
        """Return the driver of the current key, and the key."""
        async with self._driver_lock:
            provider = await self._key.provider(refused=refused)
            if self._driver is None or provider != self._provider:
                previous = self._driver
                self._driver = await asyncio.to_thread(self._make, provider)
                self._provider = provider
                if previous is not None and previous not in self._stream_counts:
                    await previous.aclose()
            return self._driver, provider.key
