"""The problems that edits cause: reported with the last edit of an answer, or the next request.

The problems before and after an edit are compared, and only new ones are reported. A slow or
starting server blocks nothing: its later problems are sent with the next request to the model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from acp_agent.language_servers.problems import (
    Problem,
    changed_lines,
    line_moves,
    moved_problems,
    new_problems,
)
from acp_agent.language_servers.server import LanguageServer
from acp_agent.language_servers.service import LanguageServers, check_text, check_workspace

MAX_WAIT = 1.5  # seconds for the problems of the changed files, from a server that is ready
_MAX_OTHERS_WAIT = 0.25  # seconds in all after which those of other files are late
_LATE_SECONDS = 30.0  # seconds in which late ones are taken
_WORKSPACE_SECONDS = 20.0
_MAX_UNANSWERED = 3  # requests in a row before a server is ended
_MAX_OTHER_DOCUMENTS = 10  # open ones that are checked again where a server cannot check all files

CheckSyntax = Callable[[Mapping[Path, tuple[str | None, str]]], Awaitable[Sequence[Problem]]]


class _Change(Struct):
    """A file that was changed: its text before (None: there was none) and now."""

    old: str | None
    new: str


class _Baseline(Struct):
    """The problems of a server at the last report.

    `changed_lines` are those of files whose problems before the first change are not known because
    the server was busy. Only problems in these lines are certain to be new.
    """

    generation: int
    problems: dict[Path, tuple[Problem, ...]]
    changed_lines: dict[Path, set[int]] = field(default_factory=dict)


class EditChecks:
    """Checks the files that a model changes.

    Args:
        check_syntax: finds what was broken in files that no server runs for; None: nothing does.
    """

    def __init__(self, servers: LanguageServers, check_syntax: CheckSyntax | None = None) -> None:
        self._servers = servers
        self._check_syntax = check_syntax
        self._changes: dict[Path, str | None] = {}  # the texts before
        self._baselines: dict[LanguageServer, _Baseline] = {}
        self._other_checks: dict[LanguageServer, asyncio.Task[None]] = {}
        self._slow_servers: set[LanguageServer] = set()  # those that are not waited for

    @property
    def has_changes(self) -> bool:
        """Whether files were changed and not checked yet."""
        return bool(self._changes)

    def record_read(self, path: Path) -> None:
        """Record that a file was read, and start its servers in the background."""
        self._servers.touch(path)

    def record_change(self, path: Path, old: str | None) -> None:
        """Record that a file was changed; `old` is its text before, None if there was none."""
        self._changes.setdefault(path, old)

    def record_command(self) -> None:
        """Record that a command may have changed files, and read open documents again."""
        servers = {
            server
            for path in {
                path
                for server in self._baselines
                if server.running is not None
                for path in server.running.documents.paths()
            }
            for server in self._servers.servers_for(path)
            if server.running is not None
        }
        for server in servers:
            self._servers.spawn(self._reload_documents(server))

    async def problems(self) -> Sequence[Problem]:
        """Return the new problems after at most `MAX_WAIT` seconds, without starting servers."""
        changes, self._changes = self._changes, {}
        unchecked: dict[Path, _Change] = {}
        by_server: dict[LanguageServer, dict[Path, _Change]] = {}
        for path, old in changes.items():
            servers = self._servers.servers_for(path, start=True)
            if not servers and self._check_syntax is None:
                continue
            text = await self._servers.read(path)
            if text is None or text == old:
                continue
            change = _Change(old, text)
            for server in servers:
                by_server.setdefault(server, {})[path] = change
            if not any(self._checks_syntax_now(server) for server in servers):
                unchecked[path] = change
        checks = [
            _Check(self, server, server_changes) for server, server_changes in by_server.items()
        ]
        ready = [
            check
            for check in checks
            if check.server.running is not None and check.server not in self._slow_servers
        ]
        for check in checks:
            check.task = self._servers.spawn(check.run())
        start = time.monotonic()
        mistakes, _ = await asyncio.gather(
            self._syntax_problems(unchecked),
            _wait([check.files_done.wait() for check in ready], MAX_WAIT),
        )
        self._slow_servers.update(check.server for check in ready if not check.files_done.is_set())
        remaining = start + _MAX_OTHERS_WAIT - time.monotonic()
        await _wait([check.all_done.wait() for check in ready], max(0.0, remaining))
        new = self.late_problems()
        locations = {(problem.path, problem.line) for problem in new}
        mistakes = [
            mistake for mistake in mistakes if (mistake.path, mistake.line) not in locations
        ]
        # Those of the changed files first, or they drown in what a change causes elsewhere.
        return sorted([*mistakes, *new], key=lambda problem: Path(problem.path) not in changes)

    def _checks_syntax_now(self, server: LanguageServer) -> bool:
        ready = server.running is not None and server not in self._slow_servers
        return ready and server.spec.checks_syntax

    def mark_caught_up(self, server: LanguageServer) -> None:
        """Wait again for a server that was slow."""
        self._slow_servers.discard(server)

    def check_others(self, server: LanguageServer, work: Coroutine[Any, Any, None]) -> None:
        """Check the files that were not changed, until the next change."""
        self._other_checks[server] = self._servers.spawn(work)

    def late_problems(self) -> Sequence[Problem]:
        """Return the new problems that were not reported yet, by file and line. Never waits."""
        new: list[Problem] = []
        for server, baseline in self._baselines.items():
            new += self._compare(server, baseline)
        return sorted(dict.fromkeys(new), key=lambda problem: (problem.path, problem.line))

    def _compare(self, server: LanguageServer, baseline: _Baseline) -> list[Problem]:
        """Return the problems that are new since the last report; this is the new report."""
        if server.running is None or server.generation != baseline.generation:
            return []
        reported: list[Problem] = []
        roots = self._servers.files.roots
        for path, current in server.running.diagnostics.snapshot().items():
            is_open = server.running.documents.get(path) is not None
            before = baseline.problems.get(path)
            baseline.problems[path] = current
            if before is None and is_open:  # it was opened since, and had these before any change
                continue
            new = new_problems(before or (), current)
            lines = baseline.changed_lines.get(path)
            if is_open:
                reported += [problem for problem in new if lines is None or problem.line in lines]
            elif any(path.is_relative_to(root) for root in roots):
                reported += [problem for problem in new if problem.severity == "error"]
        return reported

    async def take_baseline(self, server: LanguageServer, changes: Mapping[Path, _Change]) -> bool:
        """Have a server check the texts before the changes; return whether it still runs."""
        previous_check = self._other_checks.pop(server, None)
        # The other files are checked again after this change.
        if previous_check is not None and not previous_check.done():
            previous_check.cancel()
            await asyncio.wait([previous_check])
        unchecked_paths: set[Path] = set()
        for path, change in changes.items():
            if change.old is not None and not await check_text(
                server, path, change.old, timeout=_LATE_SECONDS
            ):
                unchecked_paths.add(path)
        await check_workspace(server)
        running = server.running
        if running is None:
            return False
        baseline = self._baselines.get(server)
        is_first = baseline is None or baseline.generation != server.generation
        if is_first and not running.diagnostics.pulls:
            await running.client.wait_idle(_LATE_SECONDS)
        snapshot = running.diagnostics.snapshot()
        if baseline is None or is_first:
            baseline = self._baselines[server] = _Baseline(server.generation, snapshot)
        for path in running.documents.paths():
            if path in snapshot:
                baseline.problems.setdefault(path, snapshot[path])
        for path, change in changes.items():
            lines = baseline.changed_lines.pop(path, None)
            before = baseline.problems.setdefault(path, snapshot.get(path, ()))
            if change.old is None:
                continue
            moves = line_moves(change.old, change.new)
            baseline.problems[path] = moved_problems(before, moves)
            document = running.documents.get(path)
            was_checked = lines is None and document is not None and document.checked is not None
            if path in unchecked_paths and not was_checked:
                baseline.changed_lines[path] = {
                    moved for line in lines or () if (moved := moves(line)) is not None
                } | changed_lines(change.old, change.new, moves)
        return server.running is running

    async def _syntax_problems(self, changes: Mapping[Path, _Change]) -> Sequence[Problem]:
        if self._check_syntax is None or not changes:
            return []
        texts = {path: (change.old, change.new) for path, change in changes.items()}
        return await self._check_syntax(texts)

    async def _reload_documents(self, server: LanguageServer) -> None:
        async with server.lock:
            await server.report_changed_files()
            for path in [] if server.running is None else server.running.documents.paths():
                text = await self._servers.read(path)
                running = server.running
                document = None if running is None else running.documents.get(path)
                if running is None or document is None or text == document.text:
                    continue
                if text is None:
                    running.documents.close(path)
                    continue
                baseline = self._baselines.get(server)
                if baseline is not None and path in baseline.problems:
                    moves = line_moves(document.text, text)
                    baseline.problems[path] = moved_problems(baseline.problems[path], moves)
                await check_text(server, path, text, timeout=_LATE_SECONDS)


class _Check:
    """A server's check of the files that were changed."""

    def __init__(
        self, owner: EditChecks, server: LanguageServer, changes: Mapping[Path, _Change]
    ) -> None:
        self.server = server
        self.files_done = asyncio.Event()
        self.all_done = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._owner = owner
        self._changes = changes

    async def run(self) -> None:
        """Check the changed files, then the others."""
        try:
            if await self.server.wait_ready(_LATE_SECONDS * 2) is None:
                return
            async with self.server.lock:
                if await self._owner.take_baseline(self.server, self._changes):
                    if await self._check_files():
                        self._owner.mark_caught_up(self.server)
                    self._owner.check_others(self.server, self._check_others())
                    return
        finally:
            self.files_done.set()
        self.all_done.set()

    async def _check_files(self) -> bool:
        """Check the changed files; return whether the server did."""
        running = self.server.running
        if running is None:
            return False
        waits = []
        for path, change in self._changes.items():
            document = self.server.sync(path, change.new)
            if document is not None:
                running.documents.report_saved(path, created=change.old is None)
                waits.append(running.diagnostics.collect(path, document, timeout=_LATE_SECONDS))
        is_complete = all(await asyncio.gather(*waits))
        if running.diagnostics.unanswered >= _MAX_UNANSWERED:
            self.server.fail("it does not answer")
        return is_complete

    async def _check_others(self) -> None:
        try:
            await self._check_other_files()
        finally:
            self.all_done.set()

    async def _check_other_files(self) -> None:
        running = self.server.running
        if running is None:
            return
        diagnostics = running.diagnostics
        if diagnostics.pulls_workspace and diagnostics.workspace_known and not self.server.large:
            await diagnostics.pull_workspace(_WORKSPACE_SECONDS)
        elif diagnostics.pulls and diagnostics.spans_files:
            unchanged = [path for path in running.documents.paths() if path not in self._changes]
            for path in unchanged[-_MAX_OTHER_DOCUMENTS:]:
                document = running.documents.get(path)
                if document is not None:
                    await diagnostics.collect(path, document, timeout=_LATE_SECONDS)


async def _wait(waits: Sequence[Awaitable[object]], limit: float) -> None:
    """Wait for all, at most `limit` seconds."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    if tasks:
        await asyncio.wait(tasks, timeout=limit)
        for task in tasks:
            task.cancel()
