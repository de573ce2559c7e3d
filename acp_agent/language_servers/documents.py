"""The documents that are open in a language server, and their versions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.language_servers.client import LanguageClient
from acp_agent.language_servers.wire import split_lines, to_position

_MAX_OPEN = 60
_INCREMENTAL = 2  # of TextDocumentSyncKind
CREATED, CHANGED = 1, 2  # kinds of FileChangeType


class Document(Struct):
    """An open document: its text as the server has it.

    `published_before` is how often the server had sent problems of it when this version was sent;
    `checked` is the text of the last check.
    """

    uri: str
    version: int
    text: str
    lines: list[str]
    published_before: int = 0
    checked: str | None = None


class Documents:
    """The open documents of one server, the one used last at the end."""

    def __init__(self, client: LanguageClient) -> None:
        self._client = client
        self._open: OrderedDict[Path, Document] = OrderedDict()

    def get(self, path: Path) -> Document | None:
        """Return a document that is open."""
        return self._open.get(path)

    def paths(self) -> Sequence[Path]:
        """Return the open files, the one used last at the end."""
        return list(self._open)

    def sync(self, path: Path, text: str, language: str, *, published_before: int) -> Document:
        """Open a document, or send its new text; the version counts up with each change."""
        document = self._open.get(path)
        if document is None:
            document = Document(path.as_uri(), 1, text, split_lines(text), published_before)
            self._open[path] = document
            item = {"uri": document.uri, "languageId": language, "version": 1, "text": text}
            self._client.notify("textDocument/didOpen", {"textDocument": item})
            if len(self._open) > _MAX_OPEN:
                self.close(next(iter(self._open)))
        elif document.text != text:
            change: dict[str, object] = {"text": text}
            sync = self._client.capability("textDocumentSync")
            if (sync.get("change") if isinstance(sync, dict) else sync) == _INCREMENTAL:
                # vtsls takes a change without a range for one that ends a line too far.
                lines, encoding = document.lines, self._client.encoding
                end = to_position(lines, len(lines), len(lines[-1]) + 1, encoding)
                change["range"] = {"start": to_position(lines, 1, 1, encoding), "end": end}
            document.version += 1
            document.published_before = published_before
            document.text, document.lines = text, split_lines(text)
            self._client.notify(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": document.uri, "version": document.version},
                    "contentChanges": [change],
                },
            )
        self._open.move_to_end(path)
        return document

    def report_saved(self, path: Path, *, created: bool) -> None:
        """Report that a file was written to the disk."""
        document = self._open.get(path)
        if document is not None:
            sync = self._client.capability("textDocumentSync")
            options = sync.get("save") if isinstance(sync, dict) else None
            text = isinstance(options, dict) and options.get("includeText") is True
            params: dict[str, object] = {"textDocument": {"uri": document.uri}}
            if text:
                params["text"] = document.text
            if options or isinstance(sync, int):
                self._client.notify("textDocument/didSave", params)
        self.report_disk_changes([path], kind=CREATED if created else CHANGED)

    def report_disk_changes(self, paths: Sequence[Path], *, kind: int = CHANGED) -> None:
        """Report files that changed on the disk, to a server that asked for such reports."""
        if paths and self._client.capability("", "workspace/didChangeWatchedFiles") is not None:
            changes = [{"uri": path.as_uri(), "type": kind} for path in paths]
            self._client.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    def close(self, path: Path) -> None:
        """Close a document, if it is open."""
        document = self._open.pop(path, None)
        if document is not None:
            self._client.notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})
