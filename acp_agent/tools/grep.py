"""Search the contents of files."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import structs
from pydantic import Field

from acp_agent.content import JsonObject, Location, text_part
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, text_argument
from acp_agent.tools.glob import FolderPath, relative_pattern, searched_path
from acp_agent.tools.quoting import code_block, code_span, first_line, shorten
from acp_agent.workspace.file_io import display_path, file_kind
from acp_agent.workspace.folder_listing import suggest_existing
from acp_agent.workspace.search import LineMatches, count_lines, find_lines

MAX_LINES = 400
MAX_FILES = 300
MAX_LOCATIONS = 10
MAX_REFUSED_FILES = 20  # listed files that the editor refused
MAX_LINE_LENGTH = 400  # characters
MAX_SHOWN_LENGTH = 10_000  # characters that the user is shown
NARROW_ADVICE = "narrow the search by `path` or `glob`, or list files only with mode `files`"

Note = tuple[str, str]  # what happened, and advice for the model


class GrepParams(ToolParams):
    """The grep tool's parameters."""

    pattern: Annotated[str, Field(min_length=1)]
    path: Annotated[FolderPath, Field(description="File or folder.")] = "."
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
        """Return a title such as "Search for `foo` in src"."""
        pattern = text_argument(arguments, "pattern")
        glob = text_argument(arguments, "glob")
        path = searched_path(self, arguments)
        location = f" in {path}" if path else ""
        files = f" ({glob})" if glob else ""
        return (
            f"Search for {code_span(pattern)}{location}{files}"
            if pattern
            else f"Search{location}{files}"
        )

    async def prepare(self, params: GrepParams) -> Prepared:
        """Check the path and the glob; ripgrep checks the pattern."""
        target = self.workspace.files.resolve(params.path, to_read=True)
        kind = file_kind(target)
        if kind is None:
            label = display_path(target, self.workspace.files.roots[0])
            suggestion = suggest_existing(target, self.workspace.files.roots[0])
            raise ToolError(
                f"there is no {label}", advice=f"give a file or a folder in `path`: {suggestion}"
            )
        if kind == "other":
            raise ToolError(
                "the path is a pipe, a socket or a device", advice="give a file or a folder"
            )
        if "\0" in params.pattern:
            raise ToolError("the pattern has a NUL character", advice="leave it out")
        folder = target if kind == "folder" else target.parent
        glob = relative_pattern(params.glob, folder) if params.glob else None

        async def run(_: Progress) -> Outcome:
            if kind == "file" and (refused := await self._refused([target])):
                raise ToolError(refused[target])
            search = self._files if params.mode == "files" else self._lines
            try:
                outcome = await search(target, folder, params, glob)
            except WorkspaceError as error:
                reading = params.model_copy(update={"pattern": _escaped(params.pattern)})
                if not re.search(r"\w", params.pattern):
                    raise
                with suppress(WorkspaceError):
                    outcome = await search(target, folder, reading, glob)
                    if outcome is not None:
                        return _with_note(outcome, f"searched as plain text: {error}")
                raise
            for pattern, note in _alternative_patterns(params.pattern):
                if outcome is None:
                    reading = params.model_copy(update={"pattern": pattern})
                    outcome = await search(target, folder, reading, glob)
                    if outcome is not None:
                        return _with_note(outcome, note)
            return outcome or Outcome(
                text=f"Nothing matches; {_empty_advice(params)}.",
                content=(text_part("Nothing matches."),),
            )

        return Prepared(
            title=self.title(params.model_dump()), run=run, access=ReadAccess(paths=(str(target),))
        )

    async def _lines(
        self, target: Path, folder: Path, params: GrepParams, glob: str | None
    ) -> Outcome | None:
        matches = await find_lines(
            target,
            params.pattern,
            glob=glob,
            ignore_case=params.ignore_case,
            context=params.context,
            limit=MAX_LINES,
            width=MAX_LINE_LENGTH,
            confine=self.workspace.files.confine,
        )
        refused = await self._refused(
            folder / name for name in dict.fromkeys(line.name for line in matches.lines)
        )
        if refused:
            readable = tuple(line for line in matches.lines if folder / line.name not in refused)
            matches = structs.replace(matches, lines=readable)
        notes = self._refusal_notes(refused)
        if matches.more:
            notes.append((f"more than {MAX_LINES} lines", NARROW_ADVICE))
        if matches.skipped:
            notes.append((f"{matches.skipped} matches in enormous lines are left out", ""))
        rows = await asyncio.to_thread(self._group_by_file, matches, folder)
        locations = self._locations(matches, folder)
        return _outcome(
            rows, notes, params=params, timed_out=matches.timed_out, locations=locations
        )

    def _group_by_file(self, matches: LineMatches, folder: Path) -> list[str]:
        rows: list[str] = []
        for name, lines in itertools.groupby(matches.lines, key=lambda line: line.name):
            if rows:
                rows.append("")
            rows.append(display_path(folder / name, self.workspace.files.roots[0]))
            last_number = None
            for line in lines:
                if last_number is not None and line.number > last_number + 1 and not line.matched:
                    rows.append("--")
                rows.append(f"{line.number}{':' if line.matched else '-'}{line.text}")
                last_number = line.number
        return rows

    def _locations(self, matches: LineMatches, folder: Path) -> tuple[Location, ...]:
        """Return the first match of each of the first files, for the editor to follow."""
        first_lines: dict[str, int] = {}
        for line in matches.lines:
            if line.matched:
                first_lines.setdefault(line.name, line.number)
        editor_folder = self.workspace.files.editor_path(folder)
        return tuple(
            Location(path=os.fsencode(editor_folder / name).decode("utf-8", "replace"), line=number)
            for name, number in itertools.islice(first_lines.items(), MAX_LOCATIONS)
        )

    async def _files(
        self, target: Path, folder: Path, params: GrepParams, glob: str | None
    ) -> Outcome | None:
        matches = await count_lines(
            target,
            params.pattern,
            glob=glob,
            ignore_case=params.ignore_case,
            limit=MAX_FILES,
            confine=self.workspace.files.confine,
        )
        refused = await self._refused([folder / name for name, _ in matches.counts])
        cwd = self.workspace.files.roots[0]
        rows = [
            f"{display_path(folder / name, cwd)}: {count}"
            for name, count in matches.counts
            if folder / name not in refused
        ]
        notes = self._refusal_notes(refused)
        if matches.more:
            notes.append((f"more than {MAX_FILES} files", "narrow the search by `path` or `glob`"))
        return _outcome(rows, notes, params=params, timed_out=matches.timed_out)

    async def _refused(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the files that the editor does not let the agent read, with the reasons."""
        return await self.workspace.files.refused_reads(tuple(paths))

    def _refusal_notes(self, refused: Mapping[Path, str]) -> list[Note]:
        cwd = self.workspace.files.roots[0]
        notes = [
            (f"left out: {display_path(path, cwd)}; {reason}", "")
            for path, reason in itertools.islice(refused.items(), MAX_REFUSED_FILES)
        ]
        if len(refused) > MAX_REFUSED_FILES:
            notes.append((f"left out as well: {len(refused) - MAX_REFUSED_FILES} more files", ""))
        return notes


def _escaped(pattern: str) -> str:
    """Return a pattern that matches the text itself."""
    return re.sub(r"[\\^$.|?*+()\[\]{}]", r"\\\g<0>", pattern)


def _alternative_patterns(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield alternatives to a pattern that matches nothing, each with a note about it."""
    if "\\|" in pattern:
        yield pattern.replace("\\|", "|"), "`\\|` was read as `|`"
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        yield pattern[1:-1], "the slashes around the pattern were left out"


def _with_note(outcome: Outcome, note: str) -> Outcome:
    return structs.replace(
        outcome,
        text=f"{outcome.text}\n[{note}]",
        content=(*(outcome.content or ()), text_part(f"[{note}]")),
    )


def _empty_advice(params: GrepParams) -> str:
    """Return the most likely reason why nothing matches, as advice for the model."""
    if params.glob is not None:
        return f"only files like {first_line(params.glob, 60)} were searched, and no ignored ones"
    case_note = "" if params.ignore_case else "case counts, unless you set `ignore_case`; "
    return f"{case_note}ignored files and binary files were not searched"


def _outcome(
    rows: list[str],
    notes: list[Note],
    *,
    params: GrepParams,
    timed_out: bool,
    locations: tuple[Location, ...] = (),
) -> Outcome | None:
    """Return the result of a search; None if there are no matches and no notes."""
    if not rows and not notes and not timed_out:
        return None
    if timed_out:
        notes.append(("the search took too long and is incomplete", "name a smaller folder"))
    headlines = [f"[{fact}]" for fact, _ in notes]
    body = "\n".join(rows) or f"Nothing matches; {_empty_advice(params)}."
    user_text = code_block(shorten(body, MAX_SHOWN_LENGTH), "") if rows else "Nothing matches."
    return Outcome(
        text="\n".join(
            [body, *(f"[{fact}: {advice}]" if advice else f"[{fact}]" for fact, advice in notes)]
        ),
        content=(text_part("\n".join([user_text, *headlines])),),
        locations=locations or None,
    )
