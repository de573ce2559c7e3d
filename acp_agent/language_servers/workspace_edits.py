"""The file edits that servers propose, for a rename or a code action.

Nothing is written here. What a server proposes is data of others: it must be about the texts that
the session sees now, in the session's folders, and bounded.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET, Raw, Struct, UnsetType

from acp_agent.errors import MissingFileError, ToolError
from acp_agent.language_servers.server import LanguageServer
from acp_agent.language_servers.service import LanguageServers
from acp_agent.language_servers.wire import Position, Range, path_from_uri, split_lines, to_column
from acp_agent.workspace.file_io import TextFile, decode
from acp_agent.workspace.files import TEXT_LIMIT
from protocol.codec import typed_json
from protocol.codec.tolerance import Lenient

_MAX_FILES = 1_000
_MAX_EDITS = 5_000
_MAX_TEXT = 2_000_000  # characters of all that is put in
_LINE_START = re.compile(r"\A|(?<=\r\n)|(?<=\n)|(?<=\r)(?!\n)")


class FileEdit(Struct, frozen=True):
    """A file's text before, and after all edits; `changes` are what was taken out and put in."""

    before: TextFile
    text: str
    line: int
    changes: tuple[tuple[str, str], ...]


class _TextEdit(Struct, frozen=True, rename="camel"):
    range: Range
    new_text: str


class _Versioned(Struct, frozen=True):
    uri: str
    version: Lenient[int | None] = None


class _DocumentChange(Struct, frozen=True, rename="camel"):
    """A TextDocumentEdit; what has a `kind` creates, renames or deletes a file."""

    kind: str = ""
    text_document: _Versioned | None = None
    edits: list[_TextEdit] = []


class _WorkspaceEdit(Struct, frozen=True, rename="camel"):
    changes: dict[str, list[_TextEdit]] | None = None
    document_changes: list[_DocumentChange] | None = None


class StaleEditError(ToolError):
    """A server's edits are of other texts than there are; it may be asked again."""


async def read_edits(
    raw: Raw | UnsetType | None, server: LanguageServer, servers: LanguageServers
) -> list[FileEdit]:
    """Return the files' texts after a WorkspaceEdit of a server.

    Raises:
        StaleEditError: it is of other texts than the session sees; the server has these now.
        ToolError: it cannot be used; nothing is read of files outside the session's folders.
        WorkspaceError: a file lies outside them, or cannot be read.
    """
    proposed = _decode(raw)
    files = servers.files
    paths: dict[Path, tuple[list[_TextEdit], int | None]] = {}
    for uri, (edits, version) in proposed.items():
        edited_path = path_from_uri(uri)
        if edited_path is None:
            raise ToolError("the language server wants to change what is no file")
        path = files.resolve(str(edited_path))
        if path in paths:
            raise ToolError(f"the language server names {path.name} twice")
        paths[path] = edits, version
    if refused := await files.refused_reads(tuple(paths)):
        raise ToolError(next(iter(refused.values())))
    file_edits: list[FileEdit] = []
    stale: Path | None = None
    for path, (edits, version) in paths.items():
        before = await files.read_text(path)
        if not await _is_current(before, path, version, server, servers):
            stale = path
        elif stale is None:
            file_edits.append(
                await asyncio.to_thread(_apply_edits, before, edits, _encoding(server))
            )
    if stale is not None:
        raise StaleEditError(
            f"{stale.name} is another one by now than the language server knows", advice="try again"
        )
    return [edit for edit in file_edits if edit.text != edit.before.text]


def _decode(raw: Raw | UnsetType | None) -> dict[str, tuple[list[_TextEdit], int | None]]:
    if raw is None or raw is UNSET or bytes(raw) in {b"null", b"{}"}:
        return {}
    try:
        proposed = typed_json.decode(bytes(raw), _WorkspaceEdit)
    except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
        raise ToolError("the language server's answer cannot be understood") from None
    edits_by_uri: dict[str, tuple[list[_TextEdit], int | None]] = {}
    if proposed.document_changes is None:
        edits_by_uri = {uri: (edits, None) for uri, edits in (proposed.changes or {}).items()}
    for change in proposed.document_changes or ():
        if change.kind or change.text_document is None:
            raise ToolError(
                "the language server wants to create, rename or delete files as well",
                advice="make this change with `edit` and `shell`",
            )
        uri, version = change.text_document.uri, change.text_document.version
        edits_by_uri[uri] = ([*edits_by_uri.get(uri, ([], None))[0], *change.edits], version)
    count = sum(len(edits) for edits, _ in edits_by_uri.values())
    size = sum(len(edit.new_text) for edits, _ in edits_by_uri.values() for edit in edits)
    if len(edits_by_uri) > _MAX_FILES or count > _MAX_EDITS or size > _MAX_TEXT:
        raise ToolError(
            f"the language server wants to change too much: {len(edits_by_uri):,} files"
        )
    return edits_by_uri


async def _is_current(
    current: TextFile,
    path: Path,
    version: int | None,
    server: LanguageServer,
    servers: LanguageServers,
) -> bool:
    """Return whether a server's edits are of a text; if not, it is sent to it where it can be."""
    running = server.running
    document = None if running is None else running.documents.get(path)
    if document is not None and document.text == current.text:
        return version is None or version == document.version
    if document is None:  # it has what is on the disk
        try:
            data = await servers.files.read_bytes(path, limit=TEXT_LIMIT)
            if decode(path, data, label=path.name).digest == current.digest:
                return version is None or version == 0
        except MissingFileError:
            pass
    server.sync(path, current.text)
    return False


def _encoding(server: LanguageServer) -> str:
    if server.running is None:
        raise ToolError(f"{server.spec.name} has ended", advice="try again")
    return server.running.client.encoding


def _apply_edits(before: TextFile, edits: Sequence[_TextEdit], encoding: str) -> FileEdit:
    """Return a text after edits that do not overlap. Those at one place keep their order."""
    text = before.text
    lines, starts = split_lines(text), [match.start() for match in _LINE_START.finditer(text)]

    def offset(position: Position) -> int:
        if position.line == len(lines) and position.character == 0:
            return len(text)
        if not 0 <= position.line < len(lines) or position.character < 0:
            raise StaleEditError("the language server names a line that is not there")
        return starts[position.line] + to_column(lines, position, encoding) - 1

    spans = sorted(
        ((offset(edit.range.start), offset(edit.range.end), edit.new_text) for edit in edits),
        key=lambda span: span[:2],
    )
    pieces: list[str] = []
    end = 0
    for first, last, new in spans:
        if first < end or last < first:
            raise ToolError(f"the language server's edits of {Path(before.path).name} overlap")
        pieces += [text[end:first], new]
        end = last
    return FileEdit(
        before=before,
        text="".join([*pieces, text[end:]]),
        line=text.count("\n", 0, spans[0][0]) + 1 if spans else 1,
        changes=tuple((text[first:last], new) for first, last, new in spans),
    )
