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
from acp_agent.language_servers.positions import column_of, path_of
from acp_agent.language_servers.problems import Problem, Severity
from protocol.codec import typed_json
from protocol.jsonrpc.errors import RpcError

_SEVERITIES: Mapping[int, Severity] = {1: "error", 2: "warning"}
_MOST_FILES = 5_000
_MOST_PROBLEMS = 20_000  # of all files
_MOST_IN_FILE = 300
_MOST_SENT, _LARGEST = 100, 4_000  # stored problems of a file as received, and bytes of one
_LONGEST = 500  # characters of a message
_NAME = 80  # characters of a code or source
_LAST_LINE = 10**7  # of a file whose text is not known
_QUIET = 0.06  # seconds without a further message after which a server has sent all it has
_FIRST_QUIET = 0.5  # likewise, of a document just opened: what is sent later would count as new
_PATIENCE, _LEAST_PATIENCE = 5.0, 0.5  # seconds for a server that sends problems by itself
_RETRIES = 3  # of a request that the server cancelled because a text changed
_SERVER_CANCELLED = (-32801, -32802)  # ContentModified, ServerCancelled


class Diagnostics:
    """The problems that a server reports.

    Args:
        name: the server's name, for problems that name no source.
        client: the connection.
        documents: the open documents, whose texts give the columns.
        is_ours: whether a path lies in the folders that the server is used for.
    """

    def __init__(
        self,
        name: str,
        client: LanguageClient,
        documents: Documents,
        is_ours: Callable[[Path], bool],
    ) -> None:
        self.workspace_known = False  # all files were asked for at least once
        self.unanswered = 0  # requests in a row that were not answered in time
        self._name = name
        self._client = client
        self._documents = documents
        self._is_ours = is_ours
        self._pushed: dict[Path, tuple[Problem, ...]] = {}
        self._pulled: dict[Path, tuple[Problem, ...]] = {}
        self._versions: dict[Path, tuple[int, int | None]] = {}  # number of messages, last version
        self._awaited: dict[Path, tuple[int, int]] = {}  # version, `count_published` before it
        self._sent: dict[Path, list[wire.Diagnostic]] = {}  # of open documents, as they came
        self._result_ids: dict[Path, str] = {}
        self._count = 0  # of all problems
        self._arrived = asyncio.Event()
        self._patience = _PATIENCE

    def of(self, path: Path) -> tuple[Problem, ...]:
        """Return the errors and warnings of a file, as far as they are known."""
        return (*self._pulled.get(path, ()), *self._pushed.get(path, ()))

    def sent(self, path: Path, line: int) -> list[wire.Diagnostic]:
        """Return the problems of an open document's line, from 1, as the server wrote them."""
        found = self._sent.get(path, [])
        return [one for one in found if one.range.start.line < line <= one.range.end.line + 1]

    def snapshot(self) -> dict[Path, tuple[Problem, ...]]:
        """Return the problems of all files, those left out whose last text is being checked."""
        known = {*self._pulled, *self._pushed}.difference(self._awaited)
        return {path: self.of(path) for path in known}

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

    def published(self, params: wire.PublishedDiagnostics) -> None:
        """Store problems that the server published."""
        path = path_of(params.uri)
        if path is None or not self._is_ours(path) or not self._has_room(path, self._pushed):
            return
        count, _ = self._versions.get(path, (0, None))
        self._versions[path] = (count + 1, params.version)
        self._store(self._pushed, path, params.diagnostics)
        version, seen = self._awaited.get(path, (0, 0))
        if not self.pulls and self._is_published(path, version, seen):
            self._awaited.pop(path, None)
        self._arrived.set()

    def registered(self) -> None:
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
            timeout: seconds.
        """
        self._awaited[path] = (document.version, document.seen)
        return self._collect(path, document, document.version, timeout)

    async def _collect(self, path: Path, document: Document, version: int, timeout: float) -> bool:
        seen = document.seen
        try:
            async with asyncio.timeout(timeout if self.pulls else min(timeout, self._patience)):
                # Some servers only say after the handshake that they can be asked.
                while not self.pulls and not self._is_published(path, version, seen):
                    self._arrived.clear()
                    await self._arrived.wait()
                if self.pulls:
                    await self._pull(path, document)
                else:
                    await settle(self._arrived, _FIRST_QUIET if version == 1 else _QUIET)
            self._patience = _PATIENCE
        except TimeoutError:
            self.unanswered += self.pulls
            # Many servers send nothing where nothing changed.
            self._patience = max(_LEAST_PATIENCE, self._patience / 2)
            return False
        except (ConnectionError, RpcError):
            return False
        self.unanswered = 0
        if self._awaited.get(path) == (version, seen):
            del self._awaited[path]
        document.checked = document.text if document.version == version else None
        return True

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
                    self._take_report(path, report)
                return

    def _take_report(self, path: Path, report: wire.DiagnosticReport) -> None:
        if not self._is_ours(path) or not self._has_room(path, self._pulled):
            return
        if report.result_id is not None:
            self._result_ids[path] = report.result_id
        else:
            self._result_ids.pop(path, None)
        if report.kind != "unchanged":
            self._store(self._pulled, path, report.items)
        for uri, raw in report.related_documents.items():
            other = path_of(uri)
            try:
                related = typed_json.decode(raw, wire.DiagnosticReport)
            except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
                continue
            if other is not None:
                self._take_report(other, related)

    def _is_published(self, path: Path, version: int, seen: int) -> bool:
        """Whether the server has sent problems for this version or, without one, anything."""
        count, sent = self._versions.get(path, (0, None))
        return count > seen and (sent is None or sent >= version)

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
                self._take_all(report)
                arrived.set()

        tokens = (self._client.progress_token(on_progress), self._client.progress_token(on_part))
        asking = asyncio.ensure_future(self._ask_workspace(tokens, timeout))
        ending = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait(
                [asking, ending], timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if not asking.done() and ended.is_set():
                await settle(arrived, _QUIET)
            complete = ended.is_set() or (asking.done() and asking.exception() is None)
        finally:
            for task in (asking, ending):
                task.cancel()
            await asyncio.wait([asking, ending])
            if not asking.cancelled():
                asking.exception()
            for token in tokens:
                self._client.forget_token(token)
        self.workspace_known = self.workspace_known or complete
        return complete

    async def _ask_workspace(self, tokens: tuple[str, str], timeout: float) -> None:
        known = [{"uri": path.as_uri(), "value": one} for path, one in self._result_ids.items()]
        params = {
            "previousResultIds": known,
            "workDoneToken": tokens[0],
            "partialResultToken": tokens[1],
        }
        report = await self._client.request(
            "workspace/diagnostic", params, wire.WorkspaceReport, timeout=timeout
        )
        if report is not None:
            self._take_all(report)

    def _take_all(self, report: wire.WorkspaceReport) -> None:
        for item in report.items:
            path = path_of(item.uri)
            if path is not None:
                self._take_report(path, item)

    def _has_room(self, path: Path, store: Mapping[Path, object]) -> bool:
        return path in store or len(store) < _MOST_FILES

    def _store(
        self,
        store: dict[Path, tuple[Problem, ...]],
        path: Path,
        found: Sequence[wire.Diagnostic],
    ) -> None:
        """Replace the stored problems of a file."""
        self._count -= len(store.get(path, ()))
        if self._documents.get(path) is not None:
            self._sent = {one: sent for one, sent in self._sent.items() if self._documents.get(one)}
            self._sent[path] = [one for one in found if _is_small(one)][:_MOST_SENT]
        problems = self._problems(path, found)[: max(0, _MOST_PROBLEMS - self._count)]
        self._count += len(problems)
        store[path] = problems

    def _problems(self, path: Path, found: Sequence[wire.Diagnostic]) -> tuple[Problem, ...]:
        document = self._documents.get(path)
        lines = document.lines if document is not None else []
        return tuple(
            Problem(
                path=str(path),
                line=min(max(0, one.range.start.line), len(lines) - 1 if lines else _LAST_LINE) + 1,
                column=column_of(lines, one.range.start, self._client.encoding)
                if lines
                else max(0, one.range.start.character) + 1,
                severity=_SEVERITIES[one.severity],
                message=one.message[:_LONGEST],
                code="" if one.code is None else printable_line(str(one.code)[:_LONGEST], _NAME),
                source=printable_line(one.source[:_LONGEST], _NAME) or self._name,
            )
            for one in found[:_MOST_IN_FILE]
            if one.severity in _SEVERITIES
        )


def _is_small(one: wire.Diagnostic) -> bool:
    data = b"" if one.data is UNSET else bytes(one.data)
    return len(one.message) + len(one.source) + len(str(one.code)) + len(data) <= _LARGEST
