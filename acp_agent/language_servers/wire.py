"""The used part of what language servers send (Language Server Protocol 3.17).

lsprotocol has all types of the protocol and takes 330 ms and 20 MB to import, for the few that are
needed here; the tests compare these with it. An invalid item of a list is left out. Positions of
the protocol count from 0, ours from 1.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from msgspec import UNSET, Raw, Struct, UnsetType

from acp_agent.content import JsonObject
from protocol.codec.tolerance import Lenient, LenientItems
from protocol.jsonrpc.methods import Method

NULL: Final = Raw(b"null")
UTF_8, UTF_16, UTF_32 = "utf-8", "utf-16", "utf-32"  # names of the protocol
_LINE_END = re.compile(r"\r\n|\n|\r")


class _Value(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A value of the protocol."""


class Position(_Value, frozen=True, kw_only=True):
    """A place in a text: line and units of the encoding, both from 0."""

    line: int
    character: int


class Range(_Value, frozen=True, kw_only=True):
    """From a place up to another one."""

    start: Position
    end: Position


class Diagnostic(_Value, frozen=True, kw_only=True):
    """A problem; `severity` is 1 (error), 2 (warning), 3 (information) or 4 (hint)."""

    range: Range
    message: str
    severity: Lenient[int] = 1
    code: Lenient[int | str | None] = None
    source: Lenient[str] = ""
    data: Raw | UnsetType = UNSET


class PublishedDiagnostics(_Value, frozen=True, kw_only=True):
    """The problems of a file that a server sends unasked."""

    uri: str
    version: Lenient[int | None] = None
    diagnostics: LenientItems[list[Diagnostic]] = []


class DiagnosticReport(_Value, frozen=True, kw_only=True):
    """The problems of a file that a server was asked for; `kind` is full or unchanged."""

    kind: str = "full"
    result_id: Lenient[str | None] = None
    items: LenientItems[list[Diagnostic]] = []
    related_documents: Lenient[dict[str, Raw]] = {}
    uri: str = ""


class WorkspaceReport(_Value, frozen=True, kw_only=True):
    """The problems of many files."""

    items: LenientItems[list[DiagnosticReport]] = []


class InitializeResult(_Value, frozen=True, kw_only=True):
    """What a server offers."""

    capabilities: JsonObject


class ConfigurationItem(_Value, frozen=True, kw_only=True):
    """A section of the settings that a server asks for."""

    section: Lenient[str] = ""


class ConfigurationParams(_Value, frozen=True, kw_only=True):
    """The sections that a server asks for."""

    items: list[ConfigurationItem]


class Registration(_Value, frozen=True, kw_only=True):
    """A method that a server offers from now on."""

    id: str
    method: str
    register_options: Lenient[JsonObject | None] = None


class RegistrationParams(_Value, frozen=True, kw_only=True):
    """The methods that a server offers from now on."""

    registrations: LenientItems[list[Registration]] = []


class UnregistrationParams(_Value, frozen=True, kw_only=True):
    """The methods that a server no longer offers; the protocol spells the name so."""

    unregisterations: LenientItems[list[Registration]] = []


class ProgressParams(_Value, frozen=True, kw_only=True):
    """Progress of a request, or a part of its result."""

    token: int | str
    value: Any = None


class AnyParams(Struct, frozen=True):
    """Unused parameters."""


CONFIGURATION: Final = Method("workspace/configuration", ConfigurationParams, Raw)
REGISTER: Final = Method("client/registerCapability", RegistrationParams, Raw)
UNREGISTER: Final = Method("client/unregisterCapability", UnregistrationParams, Raw)
APPLY_EDIT: Final = Method("workspace/applyEdit", AnyParams, dict)
ASK_USER: Final = Method("window/showMessageRequest", AnyParams, Raw)
CREATE_PROGRESS: Final = Method("window/workDoneProgress/create", AnyParams, Raw)
FOLDERS: Final = Method("workspace/workspaceFolders", AnyParams, Raw)
REFRESH: Final = Method("workspace/diagnostic/refresh", AnyParams, Raw)
PROGRESS: Final[Method[ProgressParams, None]] = Method("$/progress", ProgressParams)
PUBLISH: Final[Method[PublishedDiagnostics, None]] = Method(
    "textDocument/publishDiagnostics", PublishedDiagnostics
)


def client_capabilities() -> JsonObject:
    """Return what this client offers."""
    dynamic = {"dynamicRegistration": True}
    links = {"linkSupport": True, **dynamic}
    return {
        "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
        "workspace": {
            "applyEdit": False,
            "configuration": True,
            "workspaceFolders": True,
            "didChangeConfiguration": dynamic,
            "didChangeWatchedFiles": {"relativePatternSupport": True, **dynamic},
            "symbol": dynamic,
            "diagnostics": {"refreshSupport": True},
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": [],
                "failureHandling": "abort",
            },
        },
        "window": {"workDoneProgress": True, "showMessage": {}},
        "textDocument": {
            "synchronization": {"didSave": True, **dynamic},
            "publishDiagnostics": {"versionSupport": True, "dataSupport": True},
            "diagnostic": {"relatedDocumentSupport": True, **dynamic},
            "definition": links,
            "typeDefinition": links,
            "implementation": links,
            "references": dynamic,
            "hover": {"contentFormat": ["markdown", "plaintext"], **dynamic},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, **dynamic},
            "rename": {"prepareSupport": True, **dynamic},
            "codeAction": {
                "codeActionLiteralSupport": {
                    "codeActionKind": {
                        "valueSet": ["", "quickfix", "refactor", "source", "source.organizeImports"]
                    }
                },
                "isPreferredSupport": True,
                "dataSupport": True,
                "resolveSupport": {"properties": ["edit"]},
                **dynamic,
            },
        },
    }


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as the protocol counts them, without their ends."""
    return _LINE_END.split(text)


def path_from_uri(uri: str) -> Path | None:
    """Return the path of a `file:` address, without `..`; None for any other."""
    try:
        url_parts = urlsplit(uri)
        path = unquote(url_parts.path, errors="strict")
    except (ValueError, UnicodeDecodeError):
        return None
    if url_parts.scheme != "file" or not path.startswith("/") or "\0" in path:
        return None
    return Path(os.path.normpath(path))


def to_position(lines: list[str], line: int, column: int, encoding: str) -> Position:
    """Return a place as a server with this encoding counts it.

    Args:
        line: from 1; what is beyond the text is its end.
        column: in characters, from 1.
    """
    index = min(max(line, 1), max(1, len(lines))) - 1
    before = (lines[index] if lines else "")[: max(column, 1) - 1]
    return Position(line=index, character=_count_units(before, encoding))


def to_column(lines: list[str], position: Position, encoding: str) -> int:
    """Return the column of a server's place, in characters from 1."""
    if not 0 <= position.line < len(lines):
        return 1
    text, units = lines[position.line], max(0, position.character)
    if encoding == UTF_32 or text.isascii():
        return min(units, len(text)) + 1
    column = 0
    for character in text:
        units -= _count_units(character, encoding)
        if units < 0:
            break
        column += 1
    return column + 1


def _count_units(text: str, encoding: str) -> int:
    if encoding == UTF_32 or text.isascii():
        return len(text)
    if encoding == UTF_8:
        return len(text.encode("utf-8", "replace"))
    return len(text.encode("utf-16-le", "replace")) // 2
