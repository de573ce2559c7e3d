"""Query symbols through the language servers, rename one, or apply a code action."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject, Location, printable_line, text_part
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.events import ToolKind
from acp_agent.language_servers.navigation import MAX_LOCATIONS, Navigator, SymbolLocation
from acp_agent.language_servers.refactoring import Refactoring
from acp_agent.language_servers.service import LanguageServers
from acp_agent.language_servers.wire import split_lines
from acp_agent.language_servers.workspace_edits import FileEdit
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import (
    ALL_FILES_READ,
    EVERYTHING,
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    Touches,
    text_argument,
)
from acp_agent.tools.editing.replace import EditResult
from acp_agent.tools.file_changes import Change, apply_changes, prepare_changes
from acp_agent.tools.quoting import code_block, code_span, shorten
from acp_agent.workspace.file_io import display_path
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.workspace import Workspace

MAX_SHOWN_LENGTH = 10_000  # characters that the user is shown
_LINE_WIDTH = 200  # characters
_MAX_SHOWN_FILES = 40  # whose lines are shown
_MAX_LOCATIONS = 10


class CodeParams(ToolParams):
    """The request to the language servers."""

    action: Literal["definition", "references", "hover", "symbols", "rename", "code_action"]
    path: Annotated[str | None, Field(description="A file that has the symbol.")] = None
    symbol: Annotated[
        str | None, Field(description="Its name; for symbols without a path, a part of names.")
    ] = None
    line: Annotated[int | None, Field(ge=1, description="A line of the file that has it.")] = None
    new_name: Annotated[str | None, Field(description="For rename.")] = None
    apply: Annotated[
        str | None, Field(description="A code action's title; without it they are listed.")
    ] = None

    @property
    def changes_files(self) -> bool:
        """Whether the call changes files."""
        return self.action == "rename" or (self.action == "code_action" and self.apply is not None)


class CodeTool(Tool[CodeParams]):
    """Asks language servers about symbols, and for renames and code actions."""

    name: ClassVar[str] = "code"
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[CodeParams]] = CodeParams

    def __init__(self, workspace: Workspace, servers: Callable[[], LanguageServers | None]) -> None:
        super().__init__(workspace)
        self._servers = servers

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Find references of `foo`"."""
        symbol, path = text_argument(arguments, "symbol"), text_argument(arguments, "path")
        subject = symbol or path
        match text_argument(arguments, "action"):
            case "definition" if subject:
                return f"Find the definition of {code_span(subject)}"
            case "references" if subject:
                return f"Find references of {code_span(subject)}"
            case "hover" if subject:
                return f"Look up {code_span(subject)}"
            case "rename" if symbol:
                new = text_argument(arguments, "new_name")
                return f"Rename {code_span(symbol)} to {code_span(new)}" if new else "Rename"
            case "code_action" if path:
                action = text_argument(arguments, "apply")
                if action:
                    return f"Apply a code action to {code_span(path)}: {action}"
                return f"List code actions for {code_span(path)}"
            case _:
                return f"List symbols of {code_span(subject)}" if subject else "List symbols"

    def call_kind(self, arguments: JsonObject) -> ToolKind:
        """Return `edit` if files are changed."""
        action = text_argument(arguments, "action")
        applies = action == "code_action" and text_argument(arguments, "apply")
        return "edit" if action == "rename" or applies else self.kind

    def touches(self, params: CodeParams) -> Touches:
        """Return everything if files are changed: the server reports only later which."""
        return EVERYTHING if params.changes_files else ALL_FILES_READ

    async def prepare(self, params: CodeParams) -> Prepared:
        """Check the file and the arguments; make the diffs of a change."""
        files = self.workspace.files
        path = None
        if params.path:
            path = files.resolve(files.clean_path(params.path, existing=True), to_read=True)
            if not await asyncio.to_thread(os.path.isfile, path):
                label = display_path(path, files.roots[0])
                raise ToolError(f"file not found: {label}", advice="give a file in `path`")
            if refused := await files.refused_reads((path,)):
                raise ToolError(refused[path])
        _require_arguments(params, path)
        if path is not None and params.changes_files:
            return await self._change(params, path)

        async def run(_: Progress) -> Outcome:
            try:
                return await self._ask(params, path)
            except ToolError as error:
                if error.advice:
                    raise
                raise ToolError(error.shown, advice="use `grep`") from error

        return Prepared(
            title=self.title(params.model_dump()),
            run=run,
            access=ReadAccess(paths=(str(path or files.roots[0]),)),
        )

    def _running(self) -> LanguageServers:
        servers = self._servers()
        if servers is None:
            raise ToolError("no language server runs", advice="use `grep`")
        return servers

    async def _change(self, params: CodeParams, path: Path) -> Prepared:
        """Request the edits; they are written once they are allowed."""
        files = self.workspace.files
        refactoring = Refactoring(self._running())
        if params.action == "rename":
            rename_arguments = params.symbol or "", params.line, params.new_name or ""
            edits = await refactoring.rename(path, *rename_arguments)
        else:
            edits = await refactoring.apply(path, params.line or 1, params.apply or "")
        changes = [_file_change(edit, files) for edit in edits]

        def describe(change: Change) -> str:
            count = len(change.result.changes)
            count_text = f"{count} replacements, the first" if count > 1 else "1 replacement"
            return f"{change.display_path} edited: {count_text} in line {change.result.line}."

        async def run(_: Progress) -> Outcome:
            return await apply_changes(changes, files, describe)

        return prepare_changes(changes, title=self.title(params.model_dump()), run=run)

    async def _ask(self, params: CodeParams, path: Path | None) -> Outcome:
        symbol = params.symbol or ""
        if params.action == "code_action" and path is not None:
            actions = await Refactoring(self._running()).actions(path, params.line or 1)
            rows = [
                f"{action.title} ({' '.join([action.server.spec.name, action.kind])})"
                for action in actions
            ]
            return _outcome("\n".join(rows) or "There are no code actions for this line.", ())
        navigator = Navigator(self._running())
        if path is None:
            return await self._list_locations(await navigator.search(symbol))
        if params.action == "symbols":
            outline = await navigator.outline(path)
            name_part = symbol.casefold()
            return await self._list_locations(
                [symbol for symbol in outline if name_part in symbol.label.casefold()]
            )
        if params.action == "hover":
            text = await navigator.hover(path, symbol, params.line)
            lines = [printable_line(line, 500) if line.strip() else "" for line in text.split("\n")]
            body = "\n".join(lines).strip() or "The language server knows nothing of it."
            return _outcome(body, ())
        kind: Literal["definition", "references"] = (
            "references" if params.action == "references" else "definition"
        )
        return await self._list_locations(
            await navigator.find_locations(kind, path, symbol, params.line)
        )

    async def _list_locations(self, symbols: Sequence[SymbolLocation]) -> Outcome:
        files = self.workspace.files
        refused = await files.refused_reads(tuple({symbol.path for symbol in symbols}))
        readable = [symbol for symbol in symbols if symbol.path not in refused]
        texts: dict[Path, list[str]] = {}
        rows: list[str] = []
        for symbol in readable[:MAX_LOCATIONS]:
            if symbol.path not in texts and len(texts) < _MAX_SHOWN_FILES:
                texts[symbol.path] = await self._lines(symbol.path)
            location = printable_line(f"{display_path(symbol.path, files.roots[0])}:{symbol.line}")
            lines = texts.get(symbol.path, [])
            text = lines[symbol.line - 1] if symbol.line <= len(lines) else ""
            about = symbol.label or text
            rows.append("  " * symbol.depth + f"{location}: {printable_line(about, _LINE_WIDTH)}")
        if len(readable) > MAX_LOCATIONS:
            rows.append(f"[and {len(readable) - MAX_LOCATIONS} more]")
        if refused:
            rows.append(f"[{len(refused)} files that the editor refuses are left out]")
        locations = tuple(
            Location(path=str(files.editor_path(symbol.path)), line=symbol.line)
            for symbol in readable[:_MAX_LOCATIONS]
            if any(symbol.path.is_relative_to(root) for root in files.roots)
        )
        return _outcome("\n".join(rows) or "The language server found nothing.", locations)

    async def _lines(self, path: Path) -> list[str]:
        """Return the lines of a file of the session; none if it must not be read."""
        files = self.workspace.files
        try:
            if files.resolve(str(path), to_read=True) != path:
                return []
            return split_lines((await files.read_text(path)).text)
        except WorkspaceError:
            return []


def _require_arguments(params: CodeParams, path: Path | None) -> None:
    if params.action == "code_action":
        if params.line is None:
            raise ToolError("there is no line", advice="give the line of the problem in `line`")
    elif not params.symbol and (path is None or params.action != "symbols"):
        raise ToolError("there is no symbol", advice="give a name in `symbol`")
    if path is None and params.action != "symbols":
        raise ToolError("there is no file", advice="give a file that has it in `path`")
    if params.action == "rename" and not (params.new_name or "").strip():
        raise ToolError("there is no new name", advice="give it in `new_name`")


def _file_change(edit: FileEdit, files: WorkspaceFiles) -> Change:
    path = Path(edit.before.path)
    return Change(
        requested_path=str(path),
        path=path,
        editor_path=files.editor_path(path),
        display_path=display_path(path, files.roots[0]),
        before=edit.before,
        result=EditResult(edit.text, edit.line, edit.changes),
    )


def _outcome(body: str, locations: tuple[Location, ...]) -> Outcome:
    user_text = code_block(shorten(body, MAX_SHOWN_LENGTH), "")
    return Outcome(text=body, content=(text_part(user_text),), locations=locations or None)
