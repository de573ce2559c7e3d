"""Read a file: a text file's lines with their numbers, a picture, or the pages of a PDF."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Struct
from pydantic import Field

from acp_agent.content import (
    IMAGE_LIMIT,
    IMAGE_SUFFIXES,
    ContentPart,
    JsonObject,
    Location,
    image_block,
    image_type,
    text_part,
)
from acp_agent.errors import MissingFileError, ToolError, WorkspaceError
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import (
    RESULT_LIMIT,
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    Touches,
    number_argument,
    path_argument,
)
from acp_agent.tools.list_folder import format_folder
from acp_agent.tools.notebooks.cells import ADVICE, is_notebook, render_notebook
from acp_agent.tools.quoting import code_block, shorten
from acp_agent.workspace.file_io import TextFile, display_path, file_kind, with_lf
from acp_agent.workspace.path_cleaning import line_range

if TYPE_CHECKING:
    from acp_agent.tools.pdf import Page

DEFAULT_LINES = 2_000
MAX_LINE_LENGTH = 2_000  # characters of one line
MAX_SHOWN_LENGTH = 10_000  # characters that the user is shown
_MAX_CONTENT = RESULT_LIMIT - 500  # the rest is reserved for notes


class ReadParams(ToolParams):
    """The read tool's parameters."""

    path: str
    line: Annotated[int, Field(ge=1, description="First line, from 1.")] = 1
    limit: Annotated[int, Field(ge=1, description="Number of lines.")] = DEFAULT_LINES


class ReadTool(Tool[ReadParams]):
    """Reads a file of the session's folders."""

    name: ClassVar = "read"
    kind: ClassVar = "read"
    effect: ClassVar = "reads"
    params: ClassVar = ReadParams

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Read src/a.py (lines 10-40)"."""
        path = path_argument(self, arguments)
        line, limit = number_argument(arguments, "line"), number_argument(arguments, "limit")
        if not path:
            return "Read a file"
        if limit is not None:
            return f"Read {path} (lines {line or 1}-{(line or 1) + limit - 1})"
        return f"Read {path} (from line {line})" if line and line > 1 else f"Read {path}"

    def forwarded(self, values: JsonObject) -> tuple[str, JsonObject] | None:
        """Return the call that lists the path if it is a folder."""
        path = values.get("path", values.get("file_path"))
        if not isinstance(path, str) or not path:
            return None
        try:
            target = self.workspace.files.resolve(path, to_read=True)
        except (ToolError, WorkspaceError):
            return None
        return ("list", {"path": path}) if file_kind(target) == "folder" else None

    def touches(self, params: ReadParams) -> Touches:
        """Return the file."""
        return Touches(reads=(str(self.workspace.files.resolve(params.path, to_read=True)),))

    async def prepare(self, params: ReadParams) -> Prepared:
        """Check the path; the file itself is read when the call runs."""
        path = self.workspace.files.resolve(params.path, to_read=True)
        lines = line_range(params.path)
        if lines is not None and not params.path.endswith(path.name) and params.line == 1:
            params = params.model_copy(
                update={"line": lines[0], "limit": max(1, lines[1] - lines[0] + 1)}
            )

        async def run(_: Progress) -> Outcome:
            # An earlier call of the same answer may have created it.
            if file_kind(path) == "folder":
                return await format_folder(self.workspace.files, path)
            try:
                return await self._read(path, params)
            except MissingFileError as error:
                raise await self.workspace.files.with_suggestions(error, path) from error

        editor_path = self.workspace.files.editor_path(path)
        location = Location(path=str(editor_path), line=params.line)
        return Prepared(
            title=self.title(params.model_dump(exclude_unset=True)),
            run=run,
            access=ReadAccess(paths=(str(path),), requested_names=(params.path,)),
            locations=(location,),
        )

    async def _read(self, path: Path, params: ReadParams) -> Outcome:
        if path.suffix.lower() in IMAGE_SUFFIXES:
            return await self._picture(path)
        if path.suffix.lower() == ".pdf":
            return await self._pages(path, params)
        if is_notebook(path.name):
            return await self._notebook(path, params)
        return await self._lines(path, params)

    async def _picture(self, path: Path) -> Outcome:
        data = await self.workspace.files.read_bytes(path, limit=IMAGE_LIMIT)
        label = display_path(path, self.workspace.files.roots[0])
        media_type = image_type(data)
        if media_type is None:
            raise ToolError(f"{label} is named like a picture but is no PNG, JPEG, GIF or WebP")
        image = image_block(data, media_type)
        return Outcome(
            text=f"{label}: {media_type}, {len(data):,} bytes",
            images=(image,),
            content=(ContentPart(image),),
        )

    async def _pages(self, path: Path, params: ReadParams) -> Outcome:
        from acp_agent.tools import pdf  # noqa: PLC0415 - few files are PDFs

        label = display_path(path, self.workspace.files.roots[0])
        data = await self.workspace.files.read_bytes(path, limit=pdf.PDF_LIMIT)
        count = min(params.limit, pdf.MAX_PAGES)
        try:
            document = await pdf.read_pages(
                data,
                params.line,
                count,
                max_chars=_MAX_CONTENT // 4,
                confine=self.workspace.files.confine,
            )
        except ToolError as error:
            raise ToolError(
                f"{label} cannot be read: {error.shown}", advice=error.advice
            ) from error
        if not document.pages:
            raise ToolError(f"{label} has {document.total} pages; there is no page {params.line}")
        text = "\n\n".join(
            f"[Page {page.number} of {document.total}]\n{page.text or _blank_page_text(page)}"
            for page in document.pages
        )
        last_page = document.pages[-1].number
        advice = (
            [_DRAW_ADVICE[document.can_draw_pages]]
            if any(map(_has_no_content, document.pages))
            else []
        )
        if last_page < document.total:
            text += f"\n\n[{document.total - last_page:,} more pages]"
            advice.append(f"Read on with line {last_page + 1}.")
        pictures = tuple(page.picture for page in document.pages if page.picture is not None)
        return Outcome(
            text="\n".join([text, *advice]),
            images=pictures,
            content=(
                text_part(code_block(shorten(text, MAX_SHOWN_LENGTH), "")),
                *map(ContentPart, pictures),
            ),
        )

    async def _notebook(self, path: Path, params: ReadParams) -> Outcome:
        file = await self.workspace.files.read_text(path)
        try:
            notebook = await asyncio.to_thread(render_notebook, file.text)
        except ToolError as error:
            outcome = await self._lines(path, params)
            note = f"[{error.shown}; this is its text, which `edit` and `write` can change]\n"
            return msgspec.structs.replace(outcome, text=note + outcome.text)
        outcome = await self._lines(
            path, params, msgspec.structs.replace(file, text=notebook.text), notebook.outputs
        )
        pictures = notebook.pictures if params.line == 1 else ()
        return msgspec.structs.replace(
            outcome,
            text=ADVICE + outcome.text,
            images=pictures,
            content=(*(outcome.content or ()), *map(ContentPart, pictures)),
        )

    async def _lines(
        self,
        path: Path,
        params: ReadParams,
        display_file: TextFile | None = None,
        line_outputs: Mapping[int, str] = MappingProxyType({}),
    ) -> Outcome:
        """Return the lines of a file or of `display_file`; `line_outputs` follow some of them."""
        file = display_file or await self.workspace.files.read_text(path)
        selection = await asyncio.to_thread(select_lines, file.text, params.line, params.limit)
        self.workspace.files.mark_seen(file)
        if not selection.total:
            return Outcome(text="(the file is empty)", content=(text_part("The file is empty."),))
        if not selection.numbered:
            raise ToolError(
                f"{display_path(path, self.workspace.files.roots[0])} ends with line "
                f"{selection.total}; there is no line {params.line}"
            )
        rows = selection.numbered.splitlines(keepends=True) if line_outputs else []
        max_chars = _MAX_CONTENT - len(selection.numbered)
        for index, row in enumerate(rows):
            output = line_outputs.get(params.line + index, "")[: max(0, max_chars)]
            max_chars -= len(output)
            rows[index] = row + output
        text = "".join(rows) or selection.numbered
        if selection.remaining:
            text += (
                f"[{selection.remaining:,} more lines; read on with line {selection.next_line}]\n"
            )
        return Outcome(
            text=text,
            content=(text_part(code_block(shorten(selection.unnumbered, MAX_SHOWN_LENGTH), "")),),
        )


_DRAW_ADVICE = {
    True: "To see a page without text as a picture, read it alone.",
    False: "Nothing here can draw a page without text; the extra `pdf` can.",
}


def _has_no_content(page: Page) -> bool:
    """Return whether a page has neither text nor a picture."""
    return not page.text and page.picture is None


def _blank_page_text(page: Page) -> str:
    """Return what stands for a page without text."""
    if _has_no_content(page):
        return "(no text: the page is empty or a scan)"
    return "(no text; the page is among the pictures)"


class LineSelection(Struct, frozen=True, kw_only=True):
    """Some lines of a text, with and without numbers, and the number of all and later lines."""

    numbered: str
    unnumbered: str
    total: int
    remaining: int
    next_line: int


def select_lines(text: str, first: int, count: int) -> LineSelection:
    """Return at most `count` lines from line `first` on, as far as they fit into a result.

    A line of more than `LINE_LIMIT` characters is shortened with a note.
    """
    lines = with_lf(text).split("\n")
    if lines[-1] == "":
        del lines[-1]
    numbered: list[str] = []
    unnumbered: list[str] = []
    size = 0
    for number, line in enumerate(lines[first - 1 : first - 1 + count], first):
        excess = len(line) - MAX_LINE_LENGTH
        text_line = (
            f"{line[:MAX_LINE_LENGTH]} [… {excess:,} more characters of this line]"
            if excess > 0
            else line
        )
        row = f"{number}\t{text_line}\n"
        if size + len(row) > _MAX_CONTENT:
            break
        size += len(row)
        numbered.append(row)
        unnumbered.append(text_line + "\n")
    next_line = first + len(numbered)
    return LineSelection(
        numbered="".join(numbered),
        unnumbered="".join(unnumbered),
        total=len(lines),
        remaining=max(0, len(lines) - next_line + 1),
        next_line=next_line,
    )
