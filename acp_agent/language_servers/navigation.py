"""Query language servers for symbols: definition, references, hover, outline.

Everything they say is data of others: it is bounded here, and made printable where it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Raw, Struct

from acp_agent.errors import ToolError
from acp_agent.language_servers.service import LanguageServers
from acp_agent.language_servers.wire import Range, path_from_uri, split_lines, to_position
from protocol.codec import typed_json
from protocol.codec.tolerance import Lenient, LenientItems
from protocol.jsonrpc.messages import RpcError

Kind = Literal["definition", "references", "hover"]

SECONDS = 20.0  # for one question, with the start of the server
MAX_LOCATIONS = 100
_MAX_REPORTED_LINES = 10  # places that a mistaken question is answered with
_MAX_DEPTH = 5  # of an outline
_MAX_TEXT = 6_000  # characters of a description
_DATA_PICTURE = re.compile(r"!\[[^\]\n]*\]\(data:[^)\s]*\)")
_KINDS = (
    "", "file", "module", "namespace", "package", "class", "method", "property", "field",
    "constructor", "enum", "interface", "function", "variable", "constant", "string", "number",
    "boolean", "array", "object", "key", "null", "enum member", "struct", "event", "operator",
    "type parameter",
)  # fmt: skip


class SymbolLocation(Struct, frozen=True):
    """A line of a file, from 1, with its description."""

    path: Path
    line: int
    label: str = ""
    depth: int = 0


class _Target(Struct, frozen=True, kw_only=True, rename="camel"):
    """A Location or a LocationLink."""

    uri: Lenient[str] = ""
    range: Lenient[Range | None] = None
    target_uri: Lenient[str] = ""
    target_selection_range: Lenient[Range | None] = None


class _Symbol(Struct, frozen=True, kw_only=True, rename="camel"):
    """A DocumentSymbol, a SymbolInformation or a WorkspaceSymbol."""

    name: str
    kind: Lenient[int] = 0
    container_name: Lenient[str] = ""
    selection_range: Lenient[Range | None] = None
    location: Lenient[_Target | None] = None
    children: LenientItems[list[_Symbol]] = []


class _Hover(Struct, frozen=True):
    contents: Any = ""


_Targets = LenientItems[list[_Target]]
_Symbols = LenientItems[list[_Symbol]]


class Navigator:
    """Asks the language servers of a session."""

    def __init__(self, servers: LanguageServers) -> None:
        self._servers = servers

    async def find_locations(
        self, kind: Literal["definition", "references"], path: Path, symbol: str, line: int | None
    ) -> list[SymbolLocation]:
        """Return where a symbol is defined or used, in the order of paths and lines.

        Args:
            kind: what is asked.
            symbol: its name, with those of what it is in where it helps (`Class.method`).
            line: where it is in the file, from 1.

        Raises:
            ToolError: the symbol is not there, or in several places, or no server can tell.
        """
        method = f"textDocument/{kind}"
        params = await self.position(method, path, symbol, line)
        if kind == "references":
            params["context"] = {"includeDeclaration": True}
        raw = bytes(
            await self._servers.request(path, method, params, Raw, timeout=SECONDS) or b"[]"
        )
        try:
            targets = typed_json.decode(raw if raw.startswith(b"[") else b"[%b]" % raw, _Targets)
        except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
            raise ToolError("the language server's answer cannot be understood") from None
        locations = {location for target in targets if (location := _location(target)) is not None}
        return sorted(locations, key=lambda location: (location.path, location.line))

    async def hover(self, path: Path, symbol: str, line: int | None) -> str:
        """Return a symbol's type and documentation, "" if the server knows none.

        Raises:
            ToolError: see `find_locations`.
        """
        method = "textDocument/hover"
        params = await self.position(method, path, symbol, line)
        hover_result = await self._servers.request(path, method, params, _Hover, timeout=SECONDS)
        text = "" if hover_result is None else _plain(hover_result.contents)
        return _DATA_PICTURE.sub("", text).strip()[:_MAX_TEXT]

    async def outline(self, path: Path) -> list[SymbolLocation]:
        """Return the symbols of a file. Raises ToolError if no server can tell."""
        method = "textDocument/documentSymbol"
        symbols = await self._servers.request(path, method, {}, _Symbols, timeout=SECONDS)
        return [
            location for symbol in symbols or [] for location, _ in _flatten(symbol, path, "", 0)
        ]

    async def search(self, query: str) -> list[SymbolLocation]:
        """Return the symbols of the project whose names have the query, of all running servers.

        Raises:
            ToolError: no server can tell.
        """
        method = "workspace/symbol"
        running = self._servers.running_with(method)
        if not running:
            raise ToolError("no language server that runs offers symbols of the project")
        locations: list[SymbolLocation] = []
        for server in running:
            try:
                symbols = await server.client.request(
                    method, {"query": query}, _Symbols, timeout=SECONDS / 2
                )
            except (RpcError, ConnectionError, TimeoutError):
                continue
            for symbol in symbols or []:
                location = None if symbol.location is None else _location(symbol.location)
                if location is not None:
                    label = _label(symbol, symbol.container_name)
                    locations.append(SymbolLocation(location.path, location.line, label))
        return list(dict.fromkeys(locations))

    async def position(
        self, method: str, path: Path, symbol: str, line: int | None
    ) -> dict[str, object]:
        """Return where a symbol is, as a parameter of a method; the file's server has its text.

        Raises:
            ToolError: see `find_locations`.
        """
        _, running = await self._servers.ready_server(path, method, timeout=SECONDS)
        text = await self._servers.read(path)
        lines = split_lines(text or "")
        occurrences = _occurrences(lines, symbol)
        candidates = [occurrence for occurrence in occurrences if occurrence[0] == line]
        if line is None and len(occurrences) != 1:
            candidates = await self._find_declaration(path, symbol, occurrences)
        elif line is None:
            candidates = occurrences
        if not candidates:
            raise _missing_symbol_error(lines, path, symbol, line, occurrences)
        protocol_position = to_position(lines, *candidates[0], running.client.encoding)
        return {
            "position": {"line": protocol_position.line, "character": protocol_position.character}
        }

    async def _find_declaration(
        self, path: Path, symbol: str, occurrences: Sequence[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Return the place where the file itself declares a symbol, if it is one."""
        try:
            method = "textDocument/documentSymbol"
            symbols = await self._servers.request(path, method, {}, _Symbols, timeout=SECONDS)
        except ToolError:
            return []
        lines = [
            location.line
            for root_symbol in symbols or []
            for location, name in _flatten(root_symbol, path, "", 0)
            if f".{name}".endswith(f".{symbol}")
        ]
        candidates = [occurrence for occurrence in occurrences if occurrence[0] in lines]
        if lines and not candidates:  # `Class.method` is written so nowhere in the file
            text = split_lines(await self._servers.read(path) or "")
            name = symbol.rpartition(".")[2]
            candidates = [
                occurrence for occurrence in _occurrences(text, name) if occurrence[0] in lines
            ]
        return candidates if len({line for line, _ in candidates}) == 1 else []


def _occurrences(lines: Sequence[str], symbol: str) -> list[tuple[int, int]]:
    """Return the lines and columns, from 1, of a name's last part."""
    pattern = re.compile(rf"(?<!\w){re.escape(symbol)}(?!\w)")
    suffix_start = len(symbol) - len(symbol.rpartition(".")[2])
    return [
        (number, match.start() + suffix_start + 1)
        for number, line in enumerate(lines, 1)
        for match in pattern.finditer(line)
    ]


def _missing_symbol_error(
    lines: Sequence[str],
    path: Path,
    symbol: str,
    line: int | None,
    occurrences: Sequence[tuple[int, int]],
) -> ToolError:
    numbers = list(dict.fromkeys(number for number, _ in occurrences))
    if not numbers:
        return ToolError(
            f"{path.name} has no `{symbol}`", advice="give a name as it is written in the file"
        )
    rows = [
        f"{number}: {lines[number - 1].strip()[:120]}" for number in numbers[:_MAX_REPORTED_LINES]
    ]
    if len(numbers) > _MAX_REPORTED_LINES:
        rows.append(f"[and {len(numbers) - _MAX_REPORTED_LINES} more]")
    line_list = "\n".join(rows)
    if line is None:
        problem = f"several lines of {path.name} have `{symbol}`:\n{line_list}\n"
    else:
        problem = f"line {line} does not have `{symbol}`, but these do:\n{line_list}\n"
    return ToolError(problem, advice="give one of these as `line`")


def _location(target: _Target) -> SymbolLocation | None:
    path = path_from_uri(target.target_uri or target.uri)
    span = target.target_selection_range or target.range
    return (
        None if path is None else SymbolLocation(path, max(0, span.start.line if span else 0) + 1)
    )


def _flatten(
    symbol: _Symbol, path: Path, container: str, depth: int
) -> Iterator[tuple[SymbolLocation, str]]:
    """Yield a symbol and those in it, each with its name in full."""
    span = symbol.selection_range or (symbol.location.range if symbol.location else None)
    name = f"{container}.{symbol.name}" if container else symbol.name
    line = max(0, span.start.line if span else 0) + 1
    yield SymbolLocation(path, line, _label(symbol, symbol.container_name), depth), name
    if depth < _MAX_DEPTH:
        for child in symbol.children:
            yield from _flatten(child, path, name, depth + 1)


def _label(symbol: _Symbol, container: str) -> str:
    kind = _KINDS[symbol.kind] if 0 < symbol.kind < len(_KINDS) else "symbol"
    return f"{kind} {symbol.name}" + (f" in {container}" if container else "")


def _plain(contents: object) -> str:
    """Return the text of a hover: MarkupContent, MarkedString or a list of these."""
    match contents:
        case str():
            return contents
        case {"value": str(value)}:
            return value
        case list():
            return "\n\n".join(filter(None, map(_plain, contents)))
        case _:
            return ""
