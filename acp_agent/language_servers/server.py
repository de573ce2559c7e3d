"""One language server for one project: started, watched, restarted if it ends, stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.errors import MissingFileError
from acp_agent.language_servers.client import LanguageClient
from acp_agent.language_servers.diagnostics import Diagnostics
from acp_agent.language_servers.documents import CREATED, Document, Documents
from acp_agent.language_servers.process import ServerProcess, start_server
from acp_agent.language_servers.programs import InstalledServer, fill_placeholders, server_environ
from acp_agent.language_servers.project_size import changed_files, is_large
from acp_agent.platform import posix
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.watchdog import Watchdog
from acp_agent.sandbox.launch import Confine
from protocol.jsonrpc.messages import RpcError

MAX_RESTARTS = 3
_FIRST_DELAY = 1.0  # seconds before the first restart
_DELAY_FACTOR = 4
_STABLE_SECONDS = 60.0  # seconds after which a server that ran counts as well
_CHECK_INTERVAL = 5.0  # seconds between two looks at its memory and its messages
_MAX_RECEIVED = 1024**2  # bytes a second that it may send all the time
_MAX_FLOODED_CHECKS = 3  # in a row
_MAX_MEMORY = 4 * 1024**3  # bytes of all its processes
_MAX_IDLE_SECONDS = 600.0  # seconds without use after which it is stopped
_SHUTDOWN_SECONDS = 0.3  # seconds to answer `shutdown`
_MAX_ERROR = 200  # characters of an error

State = Literal["starting", "ready", "stopped", "failed"]

_log = logging.getLogger(__name__)


class RunningServer(Struct, frozen=True):
    """The parts of a running server."""

    client: LanguageClient
    documents: Documents
    diagnostics: Diagnostics


class LanguageServer:
    """A server and its program.

    Args:
        installed: the server and the command that starts it.
        trusted: whether it may run the project's code.
        watch: ends it where this program is killed.
        confine: says how it is started.

    Attributes:
        running: the connection and what belongs to it; None while it does not run.
        generation: how often it was started.
        lock: held while the texts that it has are changed and checked.
    """

    def __init__(
        self,
        installed: InstalledServer,
        root: Path,
        *,
        environ: Mapping[str, str],
        trusted: bool,
        watch: Watchdog,
        confine: Confine,
    ) -> None:
        self.spec = installed.spec
        self.root = root
        self.state: State = "starting"
        self.running: RunningServer | None = None
        self.restarts = 0
        self.generation = 0
        self.last_error = ""
        self.lock = asyncio.Lock()
        self.used_at = asyncio.get_running_loop().time()
        self.large = False
        self.last_scan = time.time_ns()  # when changed files were last searched
        self._command = installed.command
        self._environ = environ
        self._trusted = trusted
        self._watch = watch
        self._confine = confine
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()  # of the state
        self._task = asyncio.create_task(self._supervise())

    def use(self) -> None:
        """Record that it is used."""
        self.used_at = asyncio.get_running_loop().time()

    async def wait_ready(self, timeout: float) -> RunningServer | None:
        """Wait until it runs; None if it does not in time, or never will."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.running is None and self.state == "starting":
                    await self._changed.wait()
        return self.running

    def sync(self, path: Path, text: str) -> Document | None:
        """Send a text; None if the server does not run, or not for such a file."""
        language = self.spec.language_for(path)
        if self.running is None or language is None:
            return None
        self.use()
        if self.running.client.is_overfull:
            self.fail("it does not read what it is sent")
            return None
        published_before = self.running.diagnostics.count_published(path)
        return self.running.documents.sync(path, text, language, published_before=published_before)

    async def report_changed_files(self) -> None:
        """Report files that were written since the last time, for instance by commands."""
        since, self.last_scan = self.last_scan, time.time_ns()
        extensions = frozenset(self.spec.extensions)
        paths = await asyncio.to_thread(changed_files, self.root, extensions, since)
        if self.running is not None:
            self.running.documents.report_disk_changes(paths, kind=CREATED)
            self.running.documents.report_disk_changes(paths)

    def fail(self, reason: str) -> None:
        """End it now, for a reason; it may be started again."""
        self.last_error = self.last_error or printable_line(reason, _MAX_ERROR)
        if self.running is not None:
            stopping = asyncio.create_task(self.running.client.stop())
            stopping.add_done_callback(lambda _: None)

    async def stop(self) -> None:
        """End it; returns within seconds, when none of its processes is left."""
        self._stopping.set()
        with suppress(asyncio.CancelledError):
            await asyncio.shield(self._task)

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        delay = _FIRST_DELAY
        while not self._stopping.is_set():
            start = loop.time()
            try:
                can_restart = await self._run()
            except Exception as error:  # noqa: BLE001 - its trouble must not reach anybody
                self.last_error = self.last_error or type(error).__name__
                _log.exception("the language server %s broke", self.spec.name)
                can_restart = False
            if self._stopping.is_set():
                break
            _log.warning("the language server %s: %s", self.spec.name, self.last_error)
            if loop.time() - start > _STABLE_SECONDS:
                self.restarts, delay = 0, _FIRST_DELAY
            if not can_restart or self.restarts >= MAX_RESTARTS:
                self._set_state("failed")
                return
            self.restarts += 1
            self._set_state("starting")
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            delay *= _DELAY_FACTOR
        self._set_state("stopped")

    async def _run(self) -> bool:
        """Run it once; return whether to start it again."""
        self.large = await asyncio.to_thread(is_large, self.root, frozenset(self.spec.extensions))
        settings = self.spec.settings_for(trusted=self._trusted, large=self.large)
        self.last_error = ""
        search_path = self._environ.get("PATH", os.defpath)
        try:
            settings = await asyncio.to_thread(
                fill_placeholders, settings, self._command[0], self.root, search_path
            )
        except MissingFileError as error:
            self.last_error = str(error)
            return False
        try:
            process = await start_server(
                self._command,
                root=self.root,
                environ=server_environ(self._environ, settings.environment),
                label=self.spec.name,
                watch=self._watch,
                confine=self._confine,
            )
        except OSError as error:
            self.last_error = f"it cannot be started: {describe_os_error(error)}"
            return False
        self.generation += 1
        client = LanguageClient(process.transport, root=self.root, settings=settings)
        documents = Documents(client)
        diagnostics = Diagnostics(
            self.spec.name, client, documents, lambda path: path.is_relative_to(self.root)
        )
        client.on_published = diagnostics.on_published
        client.on_registered = diagnostics.on_registered
        serving = asyncio.create_task(client.run())
        try:
            try:
                if not await self._initialize(client):
                    return False
            except TimeoutError:
                seconds = round(self.spec.start_seconds)
                self.last_error = f"it did not answer within {seconds} seconds"
                return False
            except (RpcError, ConnectionError) as error:
                await process.wait_for_exit(_SHUTDOWN_SECONDS)
                description = (
                    process.describe_end() if isinstance(error, ConnectionError) else str(error)
                )
                self.last_error = printable_line(description, _MAX_ERROR)
                return isinstance(error, ConnectionError)
            self.running = RunningServer(client, documents, diagnostics)
            self._set_state("ready")
            await self._monitor(process, serving)
        finally:
            self.running = None
            await self._end(client, process, serving)
        return True

    async def _initialize(self, client: LanguageClient) -> bool:
        """Shake hands; False where it is to be stopped meanwhile.

        Raises:
            RpcError, TimeoutError, ConnectionError: it failed.
        """
        stopping = asyncio.ensure_future(self._stopping.wait())
        handshake = asyncio.ensure_future(client.initialize(self.spec.start_seconds))
        try:
            await asyncio.wait([stopping, handshake], return_when=asyncio.FIRST_COMPLETED)
            if handshake.done():
                await handshake
            return handshake.done()
        finally:
            stopping.cancel()
            handshake.cancel()

    async def _monitor(self, process: ServerProcess, serving: asyncio.Task[None]) -> None:
        """Return when it has ended, is to be stopped, takes too much memory, or floods."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        received = flooded_checks = 0
        try:
            while not serving.done() and not stopping.done():
                await asyncio.wait(
                    [serving, stopping],
                    timeout=_CHECK_INTERVAL,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                memory = await asyncio.to_thread(posix.group_memory, process.group)
                if memory > _MAX_MEMORY:
                    self.last_error = f"it takes {memory // 1024**2:,} MB of memory"
                    return
                rate = (process.transport.received - received) / _CHECK_INTERVAL
                received = process.transport.received
                flooded_checks = flooded_checks + 1 if rate > _MAX_RECEIVED else 0
                if flooded_checks == _MAX_FLOODED_CHECKS:
                    self.last_error = f"it never stops sending: {rate / 1024**2:.1f} MB a second"
                    return
                if asyncio.get_running_loop().time() - self.used_at > _MAX_IDLE_SECONDS:
                    self._stopping.set()
        finally:
            stopping.cancel()
        if serving.done() and not self._stopping.is_set():
            await process.wait_for_exit(_SHUTDOWN_SECONDS)
            self.last_error = self.last_error or process.describe_end()

    async def _end(
        self, client: LanguageClient, process: ServerProcess, serving: asyncio.Task[None]
    ) -> None:
        if self.state == "ready" and self._stopping.is_set() and not client.closed:
            with suppress(RpcError, TimeoutError, ConnectionError):
                await client.shut_down(_SHUTDOWN_SECONDS)
        await process.end()
        await client.stop()
        await asyncio.wait([serving], timeout=_SHUTDOWN_SECONDS)

    def _set_state(self, state: State) -> None:
        self.state = state
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
