"""The language servers of one session: the interface for tools and the turn."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from acp_agent.config.types import LanguageServerConfig
from acp_agent.content import JsonObject
from acp_agent.errors import AcpAgentError, ToolError, WorkspaceError
from acp_agent.language_servers.pool import ServerPool
from acp_agent.language_servers.programs import InstalledServer, find_root, find_server
from acp_agent.language_servers.project_size import used_extensions
from acp_agent.language_servers.server import LanguageServer, RunningServer
from acp_agent.language_servers.table import ServerSpec, available_servers
from acp_agent.workspace.files import WorkspaceFiles
from protocol.jsonrpc.messages import RpcError

R = TypeVar("R")

TEXT_LIMIT = 2_000_000  # characters of a text that servers are given
READ_SECONDS = 2.0  # for an editor that is asked for a text
_CACHE_SECONDS = 30.0  # for which it is remembered which servers are installed
_OBSERVE_SECONDS = 60.0  # in which a server that starts is given the files that were read
_MAX_OBSERVED = 40  # files that wait for that
_WORKSPACE_SECONDS = 20.0

_log = logging.getLogger(__name__)


class DetectedServer(Struct, frozen=True, kw_only=True):
    """A language server that is installed: its name, its languages and the program's path.

    `in_project` where the program is in the session's folders, and so is not started by itself;
    `project_code` where the server would run the project's code, and is not started by itself.
    """

    name: str
    languages: tuple[str, ...]
    program: str
    in_project: bool = False
    project_code: bool = False


class LanguageServers:
    """The language servers of a session. Nothing runs before a file is touched.

    Args:
        files: the session's files, with what the editor has not saved.
        trusted: whether the session may run the project's code.
        enabled: whether any server is used.
        on_untrusted: is called with the names of the project's own servers for a file, where these
            are not used because the session may not run the project's code.
    """

    def __init__(
        self,
        pool: ServerPool,
        files: WorkspaceFiles,
        configured: Mapping[str, LanguageServerConfig],
        trusted: Callable[[], bool],
        *,
        enabled: bool = True,
        on_untrusted: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        self._on_untrusted = on_untrusted
        self.files = files
        self._pool = pool
        self._specs = available_servers(configured) if enabled else ()
        self._trusted = trusted
        self._server_cache: dict[tuple[str, bool], tuple[float, InstalledServer | None]] = {}
        self._match_cache: dict[tuple[Path, str, bool], tuple[float, list[_Match]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def servers_for(self, path: Path, *, start: bool = False) -> list[LanguageServer]:
        """Return the servers of a file that run or start.

        Args:
            start: whether to start those that do not run.
        """
        trusted = self._trusted()
        servers: list[LanguageServer] = []
        running = {
            (running_server.spec.name, running_server.root): running_server
            for running_server in self._pool.servers(self.files.roots)
        }
        for match in self._matches(path, trusted):
            server = running.get((match.installed.spec.name, match.root))
            if server is None or start:
                server = (
                    self._pool.get(match.installed, match.root, trusted=trusted) if start else None
                )
            if server is not None and server.state in {"starting", "ready"}:
                servers.append(server)
        return servers

    def running_with(self, method: str) -> list[RunningServer]:
        """Return the servers of the session's folders that run and offer a method."""
        servers = self._pool.servers(self.files.roots)
        running = [server.running for server in servers if server.running is not None]
        return [server for server in running if server.client.offers(method)]

    def touch(self, path: Path) -> None:
        """Start the servers of a file in the background, and show it to them.

        Never waits, never raises.
        """
        try:
            servers = self.servers_for(path, start=True)
        except (OSError, AcpAgentError):
            _log.exception("looking for language servers")
            return
        for server in servers:
            if len(self._tasks) < _MAX_OBSERVED:
                self.spawn(self._observe(server, path))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work in the background until the session closes."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """Log what failed: nobody waits for it, and a server's trouble must not spread."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("work with a language server failed", exc_info=error)

    async def _observe(self, server: LanguageServer, path: Path) -> None:
        """Let a server check a file, so that its problems are known before it is changed."""
        if await server.wait_ready(_OBSERVE_SECONDS) is None:
            return
        async with server.lock:
            text = await self.read(path)
            if text is not None and server.running is not None:
                await check_text(server, path, text, timeout=_OBSERVE_SECONDS)
                await check_workspace(server)

    async def read(self, path: Path) -> str | None:
        """Return a file's text as the editor sees it; None if there is none to check."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                text = (await self.files.read_text(path)).text
        except (WorkspaceError, TimeoutError):
            return None
        return text if len(text) <= TEXT_LIMIT else None

    async def ready_server(
        self, path: Path, method: str, *, timeout: float
    ) -> tuple[LanguageServer, RunningServer]:
        """Return the first running server of a file that offers a method, with its current text.

        Raises:
            ToolError: there is none.
        """
        for server in self.servers_for(path, start=True):
            running = await server.wait_ready(timeout)
            if running is not None and running.client.offers(method):
                text = await self.read(path)
                if text is None or server.sync(path, text) is None:
                    raise ToolError(f"{path.name} cannot be given to {server.spec.name}")
                return server, running
        raise ToolError(f"no language server that runs for {path.name} offers {method}")

    async def request(
        self, path: Path, method: str, params: JsonObject, result: type[R], *, timeout: float
    ) -> R | None:
        """Ask the first running server of a file that offers the method; None: it knows nothing.

        The document is opened, or brought up to date, before. `textDocument` is added to `params`.

        Raises:
            ToolError: no running server offers the method, it failed or did not answer in time.
        """
        server, _ = await self.ready_server(path, method, timeout=timeout)
        request_params = {"textDocument": {"uri": path.as_uri()}, **params}
        return await self.ask(server, method, request_params, result, timeout=timeout)

    async def ask(
        self,
        server: LanguageServer,
        method: str,
        params: JsonObject,
        result: type[R],
        *,
        timeout: float,
    ) -> R | None:
        """Ask one server; None: it knows nothing.

        Raises:
            ToolError: it has ended, failed or did not answer in time.
        """
        if server.running is None:
            raise ToolError(f"{server.spec.name} has ended", advice="try again")
        try:
            return await server.running.client.request(method, params, result, timeout=timeout)
        except TimeoutError:
            raise ToolError(f"{server.spec.name} did not answer in {timeout:g} seconds") from None
        except (RpcError, ConnectionError) as error:
            raise ToolError(f"{server.spec.name} failed: {str(error)[:300]}") from None

    async def aclose(self) -> None:
        """End the session's own work; the servers stay for other sessions."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)

    def _matches(self, path: Path, trusted: bool) -> list[_Match]:
        """Return the installed servers of a file with the roots of its project."""
        if not any(path.is_relative_to(root) for root in self.files.roots):
            return []
        kind = path.suffix.lower() or path.name
        key = (path.parent, kind, trusted)
        now = time.monotonic()
        cached = self._match_cache.get(key)
        if cached is not None and now - cached[0] < _CACHE_SECONDS:
            return cached[1]
        matches: list[_Match] = []
        untrusted: list[ServerSpec] = []
        groups: set[str] = set()
        for spec in self._specs:
            if spec.language_for(path) is None or (spec.group and spec.group in groups):
                continue
            installed = self._find(spec, now, trusted=trusted)
            root = None if installed is None else find_root(spec, path, self.files.roots)
            if installed is not None and root is not None:
                matches.append(_Match(installed, root))
                groups.add(spec.group)
            elif installed is None and not trusted and self._is_in_project(spec):
                untrusted.append(spec)
        names = [spec.name for spec in untrusted if not spec.group or spec.group not in groups]
        if names:
            self._on_untrusted(names)
        self._match_cache[key] = (now, matches)
        return matches

    def _find(self, spec: ServerSpec, now: float, *, trusted: bool) -> InstalledServer | None:
        cached = self._server_cache.get((spec.name, trusted))
        if cached is not None and now - cached[0] < _CACHE_SECONDS:
            return cached[1]
        installed = None
        if trusted or not spec.project_code:
            path = self._pool.environ.get("PATH", os.defpath)
            installed = find_server(spec, self.files.roots, path, in_project=trusted)
        self._server_cache[spec.name, trusted] = (now, installed)
        return installed

    def _is_in_project(self, spec: ServerSpec) -> bool:
        path = self._pool.environ.get("PATH", os.defpath)
        installed = find_server(spec, self.files.roots, path, in_project=True)
        return installed is not None and installed.in_project


class _Match(Struct, frozen=True):
    """A server and the root of the project that it is to be used for."""

    installed: InstalledServer
    root: Path


def detect_servers(
    specs: Sequence[ServerSpec], roots: Sequence[Path], environ: Mapping[str, str]
) -> list[DetectedServer]:
    """Return the servers that are installed. Looks at the disk.

    Args:
        roots: the session's folders, in which programs are the project's.
    """
    installed = [
        (spec, find_server(spec, roots, environ.get("PATH", os.defpath), in_project=True))
        for spec in specs
    ]
    return [
        DetectedServer(
            name=spec.name,
            languages=spec.languages,
            program=server.command[0],
            in_project=server.in_project and not spec.by_user,
            project_code=spec.project_code,
        )
        for spec, server in installed
        if server is not None
    ]


def missing_servers(
    specs: Sequence[ServerSpec], installed: Sequence[DetectedServer], root: Path
) -> list[ServerSpec]:
    """Return a server to install for each language of a project that has none. Looks at the disk.

    Args:
        specs: the known servers, in the order of preference.
    """
    names = {server.name for server in installed}
    served = {spec.group or spec.name for spec in specs if spec.name in names}
    used = used_extensions(root, {end for spec in specs for end in spec.extensions})
    missing: dict[str, ServerSpec] = {}
    for spec in specs:
        group = spec.group or spec.name
        if spec.install and group not in served and not used.isdisjoint(spec.extensions):
            missing.setdefault(group, spec)
    return list(missing.values())


async def check_text(server: LanguageServer, path: Path, text: str, *, timeout: float) -> bool:
    """Let a server check a text; whether its problems are known now. Hold the server's lock."""
    running = server.running
    document = None if running is None else running.documents.get(path)
    if document is not None and document.checked == text == document.text:
        return True
    new_document = server.sync(path, text)
    if new_document is None or running is None:
        return False
    return await running.diagnostics.collect(path, new_document, timeout=timeout)


async def check_workspace(server: LanguageServer) -> None:
    """Let a server check all files once, where it can and they are not too many.

    If that takes too long, the project counts as large, or the changed files would wait for it
    again at each edit.
    """
    running = server.running
    if running is None or server.large or running.diagnostics.workspace_known:
        return
    if running.diagnostics.pulls_workspace:
        server.large = not await running.diagnostics.pull_workspace(_WORKSPACE_SECONDS)
