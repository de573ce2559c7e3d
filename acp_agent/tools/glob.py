"""Find files by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import (
    AnyTool,
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    path_argument,
    text_argument,
)
from acp_agent.tools.quoting import code_block, code_span
from acp_agent.workspace.file_io import display_name, display_path, file_kind
from acp_agent.workspace.search import find_files

MAX_FILES = 200
_LISTED_PATTERN = re.compile(r"(?![/!]|\./)[^{}\s]*[*?][^{}\s]*")  # in a list with commas


def _working_folder(path: object) -> object:
    """Return `.` for an empty path."""
    return "." if path == "" else path


FolderPath = Annotated[str, BeforeValidator(_working_folder)]


def searched_path(tool: AnyTool, arguments: JsonObject) -> str:
    """Return the path that a search looks in; "" for the working folder."""
    path = path_argument(tool, arguments)
    return "" if path == "." else path


class GlobParams(ToolParams):
    """The glob tool's parameters."""

    pattern: Annotated[str, Field(min_length=1)]
    path: Annotated[FolderPath, Field(description="Folder to search.")] = "."


class GlobTool(Tool[GlobParams]):
    """Finds files of the session's folders."""

    name: ClassVar[str] = "glob"
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[GlobParams]] = GlobParams

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Find `*.py` in src"."""
        pattern = text_argument(arguments, "pattern")
        path = searched_path(self, arguments)
        location = f" in {path}" if path else ""
        return f"Find {code_span(pattern)}{location}" if pattern else f"Find files{location}"

    async def prepare(self, params: GlobParams) -> Prepared:
        """Check the folder."""
        folder = self.workspace.files.resolve(params.path, to_read=True)
        cwd = self.workspace.files.roots[0]
        if file_kind(folder) != "folder":
            raise ToolError(
                f"{display_path(folder, cwd)} is not a folder", advice="give one in `path`"
            )
        pattern = relative_pattern(params.pattern, folder)

        async def run(_: Progress) -> Outcome:
            matches = await find_files(
                folder, pattern, limit=MAX_FILES, confine=self.workspace.files.confine
            )
            if not matches.names:
                timeout_note = " in the time there was" if matches.timed_out else ""
                return Outcome(
                    text=f"No files match{timeout_note}. `*.py` matches at every depth; ignored "
                    "files (.gitignore) are left out.",
                    content=(text_part("No files match."),),
                )
            rows = "\n".join(display_path(folder / name, cwd) for name in matches.names)
            omitted = matches.total - len(matches.names)
            note = f"\n[{omitted:,} older files more: narrow the pattern]" if omitted else ""
            timeout_note = (
                "\n[the search took too long and is incomplete]" if matches.timed_out else ""
            )
            return Outcome(
                text=f"{rows}{note}{timeout_note}", content=(text_part(code_block(rows, "")),)
            )

        return Prepared(
            title=self.title(params.model_dump()), run=run, access=ReadAccess(paths=(str(folder),))
        )


def relative_pattern(pattern: str, folder: Path) -> str:
    """Return a pattern for ripgrep; models also write absolute ones and a leading `./`.

    Raises:
        ToolError: the pattern leads out of the folder, or is an exclusion.
    """
    prefix = f"{folder.as_posix()}/"
    pieces = [piece.strip() for piece in pattern.split(",")]
    if len(pieces) > 1 and all(_LISTED_PATTERN.fullmatch(piece) for piece in pieces):
        pattern = f"{{{','.join(pieces)}}}"
    if pattern.startswith(prefix):
        return "/" + pattern.removeprefix(prefix)
    if pattern.startswith("./"):
        return "/" + pattern.removeprefix("./")
    if "\0" in pattern or ".." in pattern.split("/"):
        raise ToolError(
            f"the pattern leads out of the folder: {display_name(pattern)}",
            advice="give the folder in `path`",
        )
    if pattern.startswith("!"):
        raise ToolError(
            "the pattern says which files to leave out",
            advice="say which files to find; a pattern cannot start with `!`",
        )
    return pattern
