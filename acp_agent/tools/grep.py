"""Search the contents of files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import structs
from pydantic import Field

from acp_agent.content import JsonObject, Location, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import (
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    text_argument,
)
from acp_agent.tools.glob import relative_pattern, searched_path
from acp_agent.tools.quoting import code_block, code_span, first_line, shorten
from acp_agent.workspace.file_io import display_path, file_kind
from acp_agent.workspace.folder_listing import suggest_existing
from acp_agent.workspace.search import FoundLines, count_lines, find_lines

LINES_SHOWN = 400
FILES_SHOWN = 300
LOCATIONS_SHOWN = 10
REFUSED_NAMED = 20  # files that the editor refused, with its reasons
LINE_WIDTH = 400  # characters
SHOWN_LIMIT = 10_000  # characters that the user is shown
NARROWER = "narrow the search by `path` or `glob`, or list files only with mode `files`"

Note = tuple[str, str]  # what happened, and what the model is to do about it


class GrepParams(ToolParams):
    """What to search for."""

    pattern: Annotated[str, Field(min_length=1)]
    path: Annotated[str, Field(description="File or folder.")] = "."
    glob: Annotated[str | None, Field(description="Only files like *.py")] = None
    ignore_case: bool = False
    context: Annotated[int, Field(ge=0, le=20, description="Lines around each match.")] = 0
    mode: Annotated[
        Literal["lines", "files"], Field(description="files: names and numbers of matches.")
    ] = "lines"


class GrepTool(Tool[GrepParams]):
    """Searches files of the session's folders."""

    name: ClassVar[str] = "grep"
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[GrepParams]] = GrepParams

    def title(self, arguments: JsonObject) -> str:
        """For instance "Search for `foo` in src"."""
        pattern = text_argument(arguments, "pattern")
        glob = text_argument(arguments, "glob")
        path = searched_path(self, arguments)
        place = f" in {path}" if path else ""
        files = f" ({glob})" if glob else ""
        return (
            f"Search for {code_span(pattern)}{place}{files}" if pattern else f"Search{place}{files}"
        )

    async def prepare(self, params: GrepParams) -> Prepared:
        """Check the place and the glob; the pattern is ripgrep's to judge."""
        place = self.workspace.files.resolve(params.path, to_read=True)
        kind = file_kind(place)
        if kind is None:
            shown = display_path(place, self.workspace.files.roots[0])
            near = suggest_existing(place, self.workspace.files.roots[0])
            raise ToolError(
                f"there is no {shown}", advice=f"give a file or a folder in `path`: {near}"
            )
        if kind == "other":
            raise ToolError(
                "the path is a pipe, a socket or a device", advice="give a file or a folder"
            )
        if "\0" in params.pattern:
            raise ToolError("the pattern has a NUL character", advice="leave it out")
        folder = place if kind == "folder" else place.parent
        glob = relative_pattern(params.glob, folder) if params.glob else None

        async def run(_: Progress) -> Outcome:
            if kind == "file" and (refused := await self._refused([place])):
                raise ToolError(refused[place])
            if params.mode == "files":
                return await self._files(place, folder, params, glob)
            return await self._lines(place, folder, params, glob)

        return Prepared(
            title=self.title(params.model_dump()),
            run=run,
            access=ReadAccess(paths=(str(place),)),
        )

    async def _lines(
        self, place: Path, folder: Path, params: GrepParams, glob: str | None
    ) -> Outcome:
        found = await find_lines(
            place,
            params.pattern,
            glob=glob,
            ignore_case=params.ignore_case,
            context=params.context,
            limit=LINES_SHOWN,
            width=LINE_WIDTH,
            confine=self.workspace.files.confine,
        )
        refused = await self._refused([folder / line.name for line in found.lines])
        readable = tuple(line for line in found.lines if folder / line.name not in refused)
        found = structs.replace(found, lines=readable)
        notes = self._left_out(refused)
        if found.more:
            notes.append((f"more than {LINES_SHOWN} lines", NARROWER))
        if found.left_out:
            notes.append((f"{found.left_out} matches in enormous lines are left out", ""))
        rows = self._grouped(found, folder)
        locations = self._locations(found, folder)
        return _outcome(rows, notes, params=params, timed_out=found.timed_out, locations=locations)

    def _grouped(self, found: FoundLines, folder: Path) -> list[str]:
        rows: list[str] = []
        for name, lines in itertools.groupby(found.lines, key=lambda line: line.name):
            if rows:
                rows.append("")
            rows.append(display_path(folder / name, self.workspace.files.roots[0]))
            last = None
            for line in lines:
                if last is not None and line.number > last + 1 and not line.matched:
                    rows.append("--")
                rows.append(f"{line.number}{':' if line.matched else '-'}{line.text}")
                last = line.number
        return rows

    def _locations(self, found: FoundLines, folder: Path) -> tuple[Location, ...]:
        """The first match of each of the first files, for the editor to follow."""
        first: dict[str, int] = {}
        for line in found.lines:
            if line.matched:
                first.setdefault(line.name, line.number)
        opened = self.workspace.files.editor_path(folder)
        return tuple(
            Location(path=os.fsencode(opened / name).decode("utf-8", "replace"), line=number)
            for name, number in itertools.islice(first.items(), LOCATIONS_SHOWN)
        )

    async def _files(
        self, place: Path, folder: Path, params: GrepParams, glob: str | None
    ) -> Outcome:
        found = await count_lines(
            place,
            params.pattern,
            glob=glob,
            ignore_case=params.ignore_case,
            limit=FILES_SHOWN,
            confine=self.workspace.files.confine,
        )
        refused = await self._refused([folder / name for name, _ in found.counts])
        cwd = self.workspace.files.roots[0]
        rows = [
            f"{display_path(folder / name, cwd)}: {count}"
            for name, count in found.counts
            if folder / name not in refused
        ]
        notes = self._left_out(refused)
        if found.more:
            notes.append(
                (f"more than {FILES_SHOWN} files", "narrow the search by `path` or `glob`")
            )
        return _outcome(rows, notes, params=params, timed_out=found.timed_out)

    async def _refused(self, paths: Iterable[Path]) -> dict[Path, str]:
        """The files among these that the editor does not let the agent read, with the reasons."""
        return await self.workspace.files.refused_reads(tuple(dict.fromkeys(paths)))

    def _left_out(self, refused: Mapping[Path, str]) -> list[Note]:
        cwd = self.workspace.files.roots[0]
        notes = [
            (f"left out: {display_path(path, cwd)}; {why}", "")
            for path, why in itertools.islice(refused.items(), REFUSED_NAMED)
        ]
        if len(refused) > REFUSED_NAMED:
            notes.append((f"left out as well: {len(refused) - REFUSED_NAMED} more files", ""))
        return notes


def _widen(params: GrepParams) -> str:
    """What the model may not have thought of where nothing matches, the most likely alone."""
    if "\\|" in params.pattern:
        return "`\\|` is a literal bar here: write `a|b` for alternatives"
    if params.glob is not None:
        return f"only files like {first_line(params.glob, 60)} were searched, and no ignored ones"
    where = "" if params.ignore_case else "case counts, unless you set `ignore_case`; "
    return f"{where}ignored files and binary files were not searched"


def _outcome(
    rows: list[str],
    notes: list[Note],
    *,
    params: GrepParams,
    timed_out: bool,
    locations: tuple[Location, ...] = (),
) -> Outcome:
    if timed_out:
        notes.append(("the search took too long and is incomplete", "name a smaller folder"))
    happened = [f"[{what}]" for what, _ in notes]
    body = "\n".join(rows) or f"Nothing matches; {_widen(params)}."
    shown = code_block(shorten(body, SHOWN_LIMIT), "") if rows else "Nothing matches."
    return Outcome(
        text="\n".join(
            [body, *(f"[{what}: {todo}]" if todo else f"[{what}]" for what, todo in notes)]
        ),
        content=(text_part("\n".join([shown, *happened])),),
        locations=locations or None,
    )
