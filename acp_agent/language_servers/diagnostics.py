"""The problems of one language server: requested if it supports that, otherwise awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

from msgspec import UNSET

from acp_agent.content import printable_line
from acp_agent.language_servers import wire
from acp_agent.language_servers.client import LanguageClient, convert, settle
from acp_agent.language_servers.documents import Document, Documents
from acp_agent.language_servers.problems import Problem, Severity
from acp_agent.language_servers.wire import path_from_uri, to_column
from protocol.codec import typed_json
from protocol.jsonrpc.messages import RpcError

_SEVERITIES: Mapping[int, Severity] = {1: "error", 2: "warning"}
_MAX_FILES = 5_000
_MAX_PROBLEMS = 20_000  # of all files
_MAX_FILE_PROBLEMS = 300
# Stored problems of a file as received, and bytes of one.
_MAX_RAW_PROBLEMS, _MAX_RAW_BYTES = 100, 4_000
_MAX_MESSAGE = 500  # characters of a message
_MAX_NAME = 80  # characters of a code or source
_LAST_LINE = 10**7  # of a file whose text is not known
_QUIET_SECONDS = 0.06  # seconds without a further message after which a server has sent all it has
# Likewise, of a document just opened: what is sent later would count as new.
_FIRST_QUIET_SECONDS = 0.5
_MAX_PAUSES = 4  # of these, after which a server that goes on sending is not waited for
# Seconds for a server that sends problems by itself.
_MAX_PUSH_TIMEOUT, _MIN_PUSH_TIMEOUT = 5.0, 0.5
_RETRIES = 3  # of a request that the server cancelled because a text changed
_SERVER_CANCELLED = (-32801, -32802)  # ContentModified, ServerCancelled


class Diagnostics:
    """The problems that a server reports.

    Args:
        name: the server's name, for problems that name no source.
        documents: the open documents, whose texts give the columns.
        is_in_project: whether a path lies in the folders that the server is used for.
    """

    def __init__(
        self,
        name: str,
        client: LanguageClient,
        documents: Documents,
        is_in_project: Callable[[Path], bool],
    ) -> None:
        self.workspace_known = False  # all files were asked for at least once
        self.unanswered = 0  # requests in a row that were not answered in time
        self._name = name
        self._client = client
        self._documents = documents
        self._is_in_project = is_in_project
        self._pushed: dict[Path, tuple[Problem, ...]] = {}
        self._pulled: dict[Path, tuple[Problem, ...]] = {}
        self._versions: dict[Path, tuple[int, int | None]] = {}  # number of messages, last version
        self._awaited: dict[Path, tuple[int, int]] = {}  # version, `count_published` before it
        # Of open documents, as they came.
        self._raw_diagnostics: dict[Path, list[wire.Diagnostic]] = {}
        self._result_ids: dict[Path, str] = {}
        self._count = 0  # of all problems
        self._arrived = asyncio.Event()
        self._push_timeout = _MAX_PUSH_TIMEOUT

    def problems_in(self, path: Path) -> tuple[Problem, ...]:
        """Return the errors and warnings of a file, as far as they are known."""
        return (*self._pulled.get(path, ()), *self._pushed.get(path, ()))

    def raw_diagnostics(self, path: Path, line: int) -> list[wire.Diagnostic]:
        """Return the problems of an open document's line, from 1, as the server wrote them."""
        diagnostics = self._raw_diagnostics.get(path, [])
        return [
            diagnostic
            for diagnostic in diagnostics
            if diagnostic.range.start.line < line <= diagnostic.range.end.line + 1
        ]

    def snapshot(self) -> dict[Path, tuple[Problem, ...]]:
        """Return the problems of all files, those left out whose last text is being checked."""
        paths = {*self._pulled, *self._pushed}.difference(self._awaited)
        return {path: self.problems_in(path) for path in paths}

    @property
    def pulls(self) -> bool:
        """Whether the server answers requests for the problems of a file."""
        return self._client.offers("textDocument/diagnostic")

    @property
    def pulls_workspace(self) -> bool:
        """Whether the server answers requests for the problems of all files."""
        options = self._client.capability("diagnosticProvider", "textDocument/diagnostic")
        return isinstance(options, dict) and options.get("workspaceDiagnostics") is True

    @property
    def spans_files(self) -> bool:
        """Whether a change in one file may cause problems in another one."""
        options = self._client.capability("diagnosticProvider", "textDocument/diagnostic")
        return isinstance(options, dict) and options.get("interFileDependencies") is True

    def on_published(self, params: wire.PublishedDiagnostics) -> None:
        """Store problems that the server published."""
        path = path_from_uri(params.uri)
        if path is None or not self._is_in_project(path) or not self._has_room(path, self._pushed):
            return
        count, _ = self._versions.get(path, (0, None))
        self._versions[path] = (count + 1, params.version)
        self._store(self._pushed, path, params.diagnostics)
        version, published_before = self._awaited.get(path, (0, 0))
        if not self.pulls and self._is_published(path, version, published_before):
            self._awaited.pop(path, None)
        self._arrived.set()

    def on_registered(self) -> None:
        """Record that the server offers more."""
        self._arrived.set()

    def count_published(self, path: Path) -> int:
        """Return how often the server has sent the problems of a file."""
        return self._versions.get(path, (0, None))[0]

    def collect(
        self, path: Path, document: Document, *, timeout: float
    ) -> Coroutine[None, None, bool]:
        """Wait for the problems of a document's version; whether they came.

        From this call on, and not only once it is awaited, the file's problems are not current.

        Args:
            path: the file.
            document: as it was sent.
        """
        self._awaited[path] = (document.version, document.published_before)
        return self._collect(path, document, document.version, timeout)

    async def _collect(self, path: Path, document: Document, version: int, timeout: float) -> bool:
        published_before = document.published_before
        try:
            async with asyncio.timeout(timeout if self.pulls else min(timeout, self._push_timeout)):
                # Some servers only say after the handshake that they can be asked.
                while not self.pulls and not self._is_published(path, version, published_before):
                    self._arrived.clear()
                    await self._arrived.wait()
                if self.pulls:
                    await self._pull(path, document)
                else:
                    quiet = _FIRST_QUIET_SECONDS if version == 1 else _QUIET_SECONDS
                    await self._wait_for_pause(path, quiet)
            self._push_timeout = _MAX_PUSH_TIMEOUT
        except TimeoutError:
            if self.pulls or not self._is_published(path, version, published_before):
                self.unanswered += self.pulls
                # Many servers send nothing where nothing changed.
                self._push_timeout = max(_MIN_PUSH_TIMEOUT, self._push_timeout / 2)
                return False
            # A server that never pauses: what it has sent so far counts.
        except (ConnectionError, RpcError):
            return False
        self.unanswered = 0
        if self._awaited.get(path) == (version, published_before):
            del self._awaited[path]
        document.checked = document.text if document.version == version else None
        return True

    async def _wait_for_pause(self, path: Path, quiet: float) -> None:
        """Wait until nothing more is sent of a file; not for long if the server never pauses."""
        for _ in range(_MAX_PAUSES):
            count = self.count_published(path)
            await asyncio.sleep(quiet)
            if self.count_published(path) == count:
                return

    async def _pull(self, path: Path, document: Document) -> None:
        params: dict[str, object] = {"textDocument": {"uri": document.uri}}
        if path in self._result_ids:
            params["previousResultId"] = self._result_ids[path]
        for attempt in range(_RETRIES):
            try:
                report = await self._client.request(
                    "textDocument/diagnostic", params, wire.DiagnosticReport, timeout=30.0
                )
            except RpcError as error:
                if error.code not in _SERVER_CANCELLED or attempt == _RETRIES - 1:
                    raise
            else:
                if report is not None:
                    self._store_report(path, report)
                return

    def _store_report(self, path: Path, report: wire.DiagnosticReport) -> None:
        if not self._is_in_project(path) or not self._has_room(path, self._pulled):
            return
        if report.result_id is not None:
            self._result_ids[path] = report.result_id
        else:
            self._result_ids.pop(path, None)
        if report.kind != "unchanged":
            self._store(self._pulled, path, report.items)
        for uri, raw in report.related_documents.items():
            related_path = path_from_uri(uri)
            try:
                related = typed_json.decode(raw, wire.DiagnosticReport)
            except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
                continue
            if related_path is not None:
                self._store_report(related_path, related)

    def _is_published(self, path: Path, version: int, published_before: int) -> bool:
        """Return whether the server has published problems for this version, or for any if None."""
        count, published_version = self._versions.get(path, (0, None))
        return count > published_before and (
            published_version is None or published_version >= version
        )

    async def pull_workspace(self, timeout: float) -> bool:
        """Ask for the problems of all files; whether they came.

        A server may answer only once something changes. Its progress says when it has looked at
        everything, and what it found comes in parts.
        """
        ended, arrived = asyncio.Event(), asyncio.Event()

        def on_progress(value: object) -> None:
            if isinstance(value, dict) and value.get("kind") == "end":
                ended.set()

        def on_part(value: object) -> None:
            report = convert(value, wire.WorkspaceReport)
            if report is not None:
                self._store_reports(report)
                arrived.set()

        tokens = (self._client.progress_token(on_progress), self._client.progress_token(on_part))
        request = asyncio.ensure_future(self._ask_workspace(tokens, timeout))
        end = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait([request, end], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not request.done() and ended.is_set():
                await settle(arrived, _QUIET_SECONDS)
            complete = ended.is_set() or (request.done() and request.exception() is None)
        finally:
            for task in (request, end):
                task.cancel()
            await asyncio.wait([request, end])
            if not request.cancelled():
                request.exception()
            for token in tokens:
                self._client.forget_token(token)
        self.workspace_known = self.workspace_known or complete
        return complete

    async def _ask_workspace(self, tokens: tuple[str, str], timeout: float) -> None:
        previous_ids = [
            {"uri": path.as_uri(), "value": result_id}
            for path, result_id in self._result_ids.items()
        ]
        params = {
            "previousResultIds": previous_ids,
            "workDoneToken": tokens[0],
            "partialResultToken": tokens[1],
        }
        report = await self._client.request(
            "workspace/diagnostic", params, wire.WorkspaceReport, timeout=timeout
        )
        if report is not None:
            self._store_reports(report)

    def _store_reports(self, report: wire.WorkspaceReport) -> None:
        for item in report.items:
            path = path_from_uri(item.uri)
            if path is not None:
                self._store_report(path, item)

    def _has_room(self, path: Path, store: Mapping[Path, object]) -> bool:
        return path in store or len(store) < _MAX_FILES

    def _store(
        self,
        problems_by_path: dict[Path, tuple[Problem, ...]],
        path: Path,
        diagnostics: Sequence[wire.Diagnostic],
    ) -> None:
        """Replace the stored problems of a file."""
        self._count -= len(problems_by_path.get(path, ()))
        if self._documents.get(path) is not None:
            self._raw_diagnostics = {
                open_path: raw
                for open_path, raw in self._raw_diagnostics.items()
                if self._documents.get(open_path)
            }
            self._raw_diagnostics[path] = [
                diagnostic for diagnostic in diagnostics if _is_small(diagnostic)
            ][:_MAX_RAW_PROBLEMS]
        problems = self._problems(path, diagnostics)[: max(0, _MAX_PROBLEMS - self._count)]
        self._count += len(problems)
        problems_by_path[path] = problems

    def _problems(self, path: Path, diagnostics: Sequence[wire.Diagnostic]) -> tuple[Problem, ...]:
        document = self._documents.get(path)
        lines = document.lines if document is not None else []
        return tuple(
            Problem(
                path=str(path),
                line=min(
                    max(0, diagnostic.range.start.line), len(lines) - 1 if lines else _LAST_LINE
                )
                + 1,
                column=to_column(lines, diagnostic.range.start, self._client.encoding)
                if lines
                else max(0, diagnostic.range.start.character) + 1,
                severity=_SEVERITIES[diagnostic.severity],
                message=diagnostic.message[:_MAX_MESSAGE],
                code=""
                if diagnostic.code is None
                else printable_line(str(diagnostic.code)[:_MAX_MESSAGE], _MAX_NAME),
                source=printable_line(diagnostic.source[:_MAX_MESSAGE], _MAX_NAME) or self._name,
            )
            for diagnostic in diagnostics[:_MAX_FILE_PROBLEMS]
            if diagnostic.severity in _SEVERITIES
        )


def _is_small(diagnostic: wire.Diagnostic) -> bool:
    data = b"" if diagnostic.data is UNSET else bytes(diagnostic.data)
    return (
        len(diagnostic.message) + len(diagnostic.source) + len(str(diagnostic.code)) + len(data)
        <= _MAX_RAW_BYTES
    )
