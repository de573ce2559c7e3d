"""Ask the language servers about symbols: definition, references, hover, symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject, Location, printable_line, text_part
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.events import ToolKind
from acp_agent.language_servers.navigation import MOST_PLACES, Navigator, Place
from acp_agent.language_servers.positions import split_lines
from acp_agent.language_servers.service import LanguageServers
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, text_argument
from acp_agent.tools.quoting import code_block, code_span, shorten
from acp_agent.workspace.file_io import display_path
from acp_agent.workspace.workspace import Workspace

SHOWN_LIMIT = 10_000  # characters that the user is shown
_LINE_WIDTH = 200  # characters
_MOST_FILES = 40  # whose lines are shown
_LOCATIONS = 10


class CodeParams(ToolParams):
    """What is asked."""

    action: Literal["definition", "references", "hover", "symbols"]
    path: Annotated[str | None, Field(description="A file that has the symbol.")] = None
    symbol: Annotated[
        str | None, Field(description="Its name; for symbols without a path, a part of names.")
    ] = None
    line: Annotated[int | None, Field(ge=1, description="A line of the file that has it.")] = None


class CodeTool(Tool[CodeParams]):
    """Asks language servers about symbols.

    Args:
        workspace: the session's.
        servers: returns its language servers; None where there are none.
    """

    name: ClassVar[str] = "code"
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[CodeParams]] = CodeParams

    def __init__(self, workspace: Workspace, servers: Callable[[], LanguageServers | None]) -> None:
        super().__init__(workspace)
        self._servers = servers

    def title(self, arguments: JsonObject) -> str:
        """For instance "Find references of `foo`"."""
        symbol, path = text_argument(arguments, "symbol"), text_argument(arguments, "path")
        asked = symbol or path
        match text_argument(arguments, "action"):
            case "definition" if asked:
                return f"Find the definition of {code_span(asked)}"
            case "references" if asked:
                return f"Find references of {code_span(asked)}"
            case "hover" if asked:
                return f"Look up {code_span(asked)}"
            case _:
                return f"List symbols of {code_span(asked)}" if asked else "List symbols"

    async def prepare(self, params: CodeParams) -> Prepared:
        """Check the file and that there is something to ask."""
        files = self.workspace.files
        path = None
        if params.path:
            path = files.resolve(files.cleaned(params.path, existing=True), to_read=True)
            if not path.is_file():
                shown = display_path(path, files.roots[0])
                raise ToolError(f"there is no file {shown}", advice="give a file in `path`")
            if refused := await files.refused_reads((path,)):
                raise ToolError(refused[path])
        if not params.symbol and (path is None or params.action != "symbols"):
            raise ToolError("there is no symbol", advice="give a name in `symbol`")
        if path is None and params.action != "symbols":
            raise ToolError("there is no file", advice="give a file that has it in `path`")

        async def run(_: Progress) -> Outcome:
            servers = self._servers()
            if servers is None:
                raise ToolError("no language server runs", advice="use `grep`")
            try:
                return await self._ask(Navigator(servers), params, path)
            except ToolError as error:
                if error.advice:
                    raise
                raise ToolError(error.shown, advice="use `grep`") from error

        return Prepared(
            title=self.title(params.model_dump()),
            run=run,
            access=ReadAccess(paths=(str(path or files.roots[0]),)),
        )

    async def _ask(self, navigator: Navigator, params: CodeParams, path: Path | None) -> Outcome:
        symbol = params.symbol or ""
        if path is None:
            return await self._listed(await navigator.search(symbol))
        if params.action == "symbols":
            places = await navigator.outline(path)
            wanted = symbol.casefold()
            return await self._listed([one for one in places if wanted in one.label.casefold()])
        if params.action == "hover":
            text = await navigator.hover(path, symbol, params.line)
            lines = [printable_line(line, 500) if line.strip() else "" for line in text.split("\n")]
            body = "\n".join(lines).strip() or "The language server knows nothing of it."
            return _outcome(body, ())
        return await self._listed(await navigator.places(params.action, path, symbol, params.line))

    async def _listed(self, places: Sequence[Place]) -> Outcome:
        files = self.workspace.files
        refused = await files.refused_reads(tuple({one.path for one in places}))
        kept = [one for one in places if one.path not in refused]
        texts: dict[Path, list[str]] = {}
        rows: list[str] = []
        for place in kept[:MOST_PLACES]:
            if place.path not in texts and len(texts) < _MOST_FILES:
                texts[place.path] = await self._lines(place.path)
            where = printable_line(f"{display_path(place.path, files.roots[0])}:{place.line}")
            lines = texts.get(place.path, [])
            text = lines[place.line - 1] if place.line <= len(lines) else ""
            about = place.label or text
            rows.append("  " * place.depth + f"{where}: {printable_line(about, _LINE_WIDTH)}")
        if len(kept) > MOST_PLACES:
            rows.append(f"[and {len(kept) - MOST_PLACES} more]")
        if refused:
            rows.append(f"[{len(refused)} files that the editor refuses are left out]")
        locations = tuple(
            Location(path=str(files.editor_path(one.path)), line=one.line)
            for one in kept[:_LOCATIONS]
            if any(one.path.is_relative_to(root) for root in files.roots)
        )
        return _outcome("\n".join(rows) or "The language server found nothing.", locations)

    async def _lines(self, path: Path) -> list[str]:
        """Return the lines of a file of the session; none where it is not to be read."""
        files = self.workspace.files
        try:
            if files.resolve(str(path), to_read=True) != path:
                return []
            return split_lines((await files.read_text(path)).text)
        except WorkspaceError:
            return []


def _outcome(body: str, locations: tuple[Location, ...]) -> Outcome:
    shown = code_block(shorten(body, SHOWN_LIMIT), "")
    return Outcome(text=body, content=(text_part(shown),), locations=locations or None)
