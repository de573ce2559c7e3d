"""Refactoring through language servers: rename a symbol, apply a code action."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from msgspec import UNSET, Raw, Struct, UnsetType

from acp_agent.content import JsonObject, printable_line
from acp_agent.errors import ToolError
from acp_agent.language_servers.navigation import SECONDS, Navigator
from acp_agent.language_servers.server import LanguageServer
from acp_agent.language_servers.service import LanguageServers, check_text
from acp_agent.language_servers.wire import split_lines, to_position
from acp_agent.language_servers.workspace_edits import FileEdit, StaleEditError, read_edits
from protocol.codec import typed_json
from protocol.codec.tolerance import Lenient

_RENAME = "textDocument/rename"
_ACTIONS = "textDocument/codeAction"
_RESOLVE = "codeAction/resolve"
_MAX_ATTEMPTS = 3  # to get edits of the texts that the session sees
_MAX_ACTIONS = 50
_MAX_TITLE = 200  # characters of a title


class CodeAction(Struct, frozen=True):
    """A change that a server offers; `raw` is the original."""

    title: str
    kind: str
    server: LanguageServer
    raw: Raw


class _Action(Struct, frozen=True):
    """A CodeAction; a Command has the name of a command in `command`."""

    title: str
    kind: Lenient[str] = ""
    edit: Raw | UnsetType = UNSET
    command: Raw | UnsetType = UNSET
    disabled: Raw | UnsetType = UNSET


class Refactoring:
    """Asks the language servers of a session for edits; writes nothing."""

    def __init__(self, servers: LanguageServers) -> None:
        self._servers = servers
        self._navigator = Navigator(servers)

    async def rename(
        self, path: Path, symbol: str, line: int | None, new_name: str
    ) -> list[FileEdit]:
        """Return the edits that give a symbol another name everywhere in the project.

        Args:
            symbol: its name; see `Navigator.find_locations`.
            line: where it is in the file, from 1.

        Raises:
            ToolError: the symbol is not there, or no server can rename it.
            WorkspaceError: a file lies outside the session's folders, or cannot be read.
        """

        async def propose() -> list[FileEdit]:
            server, _ = await self._servers.ready_server(path, _RENAME, timeout=SECONDS)
            await server.report_changed_files()
            position = await self._navigator.position(_RENAME, path, symbol, line)
            request = {"textDocument": {"uri": path.as_uri()}, **position, "newName": new_name}
            raw = await self._servers.ask(server, _RENAME, request, Raw, timeout=SECONDS)
            return await read_edits(raw, server, self._servers)

        edits = await _retry_stale(propose)
        if not edits:
            raise ToolError(f"the language server cannot rename `{symbol}` here")
        return edits

    async def actions(self, path: Path, line: int) -> list[CodeAction]:
        """Return the code actions for a line of a file that only edit files.

        Args:
            path: the file.

        Raises:
            ToolError: no server offers code actions.
        """
        offering = [
            server
            for server in self._servers.servers_for(path, start=True)
            if (running := await server.wait_ready(SECONDS)) and running.client.offers(_ACTIONS)
        ]
        if not offering:
            raise ToolError(f"no language server that runs for {path.name} offers code actions")
        actions = [
            action
            for server in offering
            for action in await self._request_actions(server, path, line)
        ]
        return actions[:_MAX_ACTIONS]

    async def apply(self, path: Path, line: int, title: str) -> list[FileEdit]:
        """Return the edits of a code action.

        Args:
            path: the file.
            title: as `actions` has it.

        Raises:
            ToolError: there is no such action, or it cannot be used.
            WorkspaceError: a file lies outside the session's folders, or cannot be read.
        """

        async def propose() -> list[FileEdit]:
            offered = await self.actions(path, line)
            action = next((candidate for candidate in offered if candidate.title == title), None)
            if action is None:
                titles = "".join(f"\n{candidate.title}" for candidate in offered)
                raise ToolError(
                    f"line {line} has no code action `{printable_line(title, _MAX_TITLE)}`",
                    advice=f"give one of these:{titles}" if titles else "",
                )
            return await read_edits(await self._resolve_edit(action), action.server, self._servers)

        edits = await _retry_stale(propose)
        if not edits:
            raise ToolError("this code action changes no file")
        return edits

    async def _request_actions(
        self, server: LanguageServer, path: Path, line: int
    ) -> list[CodeAction]:
        text = await self._servers.read(path)
        if text is None:
            raise ToolError(f"{path.name} cannot be given to {server.spec.name}")
        try:
            async with asyncio.timeout(SECONDS), server.lock:
                await check_text(server, path, text, timeout=SECONDS)
        except TimeoutError:
            raise ToolError(f"{server.spec.name} is busy", advice="try again later") from None
        running = server.running
        if running is None:
            return []
        lines = split_lines(text)
        if line > len(lines):
            raise ToolError(f"{path.name} has {len(lines)} lines")
        request: JsonObject = {
            "textDocument": {"uri": path.as_uri()},
            "range": {
                "start": to_position(lines, line, 1, running.client.encoding),
                "end": to_position(lines, line, len(lines[line - 1]) + 1, running.client.encoding),
            },
            "context": {
                "diagnostics": running.diagnostics.raw_diagnostics(path, line),
                "triggerKind": 1,
            },
        }
        raws = await self._servers.ask(server, _ACTIONS, request, list[Raw], timeout=SECONDS)
        resolves = running.client.offers(_RESOLVE)
        actions: list[CodeAction] = []
        for raw in (raws or [])[:_MAX_ACTIONS]:
            action = _decode(raw)
            if action is None or action.disabled is not UNSET:
                continue
            if action.edit is UNSET and (not resolves or action.command is not UNSET):
                continue
            title = printable_line(action.title, _MAX_TITLE)
            kind = printable_line(action.kind, _MAX_TITLE)
            actions.append(CodeAction(title, kind, server, raw))
        return actions

    async def _resolve_edit(self, action: CodeAction) -> Raw | UnsetType | None:
        decoded = _decode(action.raw)
        if decoded is not None and decoded.edit is not UNSET:
            return decoded.edit
        params = typed_json.decode_any(action.raw)
        raw = await self._servers.ask(action.server, _RESOLVE, params, Raw, timeout=SECONDS)
        resolved = None if raw is None else _decode(raw)
        return None if resolved is None else resolved.edit


def _decode(raw: Raw) -> _Action | None:
    try:
        return typed_json.decode(raw, _Action)
    except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
        return None


async def _retry_stale(propose: Callable[[], Awaitable[list[FileEdit]]]) -> list[FileEdit]:
    """Ask again if a server had other texts than the session; it has received these meanwhile."""
    for _ in range(_MAX_ATTEMPTS - 1):
        with suppress(StaleEditError):
            return await propose()
    return await propose()
