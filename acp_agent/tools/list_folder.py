"""List a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, path_argument
from acp_agent.tools.glob import FolderPath
from acp_agent.tools.quoting import code_block, shorten
from acp_agent.workspace.file_io import display_name, display_path, file_kind
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.folder_listing import Entry, list_folder, suggest_existing

MAX_ENTRIES = 500
MAX_SHOWN_LENGTH = 10_000  # characters that the user is shown


class ListParams(ToolParams):
    """The list tool's parameters."""

    path: FolderPath = "."
    depth: Annotated[int, Field(ge=1, le=5, description="Levels of folders.")] = 1


class ListTool(Tool[ListParams]):
    """Lists a folder of the session's folders."""

    name: ClassVar[str] = "list"
    kind: ClassVar[ToolKind] = "read"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[ListParams]] = ListParams

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "List src"."""
        path = path_argument(self, arguments)
        return f"List {path}" if path not in ("", ".") else "List the working folder"

    async def prepare(self, params: ListParams) -> Prepared:
        """Check the path; an earlier call of the same answer may create the folder."""
        folder = self.workspace.files.resolve(params.path, to_read=True)

        async def run(_: Progress) -> Outcome:
            return await format_folder(self.workspace.files, folder, params.depth)

        return Prepared(
            title=self.title(params.model_dump()), run=run, access=ReadAccess(paths=(str(folder),))
        )


async def format_folder(files: WorkspaceFiles, folder: Path, depth: int = 1) -> Outcome:
    """Return the entries of a folder as text. Raises ToolError if it is no folder."""
    label = display_path(folder, files.roots[0])
    kind = file_kind(folder)
    if kind is None:
        raise ToolError(
            f"there is no folder {label}", advice=suggest_existing(folder, files.roots[0])
        )
    if kind != "folder":
        raise ToolError(f"{label} is a file", advice="use `read`")
    listing = await list_folder(folder, depth=depth, limit=MAX_ENTRIES, confine=files.confine)
    rows = [_row(entry) for entry in listing.entries] or ["(empty)"]
    body = "\n".join(rows)
    notes = ""
    if listing.more:
        notes += f"\n[more than {MAX_ENTRIES} entries: list a folder further down]"
    if listing.ignored:
        notes += f"\n[{listing.ignored} ignored entries are left out]"
    content = text_part(code_block(shorten(body, MAX_SHOWN_LENGTH), ""))
    return Outcome(text=body + notes, content=(content,))


def _row(entry: Entry) -> str:
    name = "  " * entry.depth + display_name(entry.name)
    if entry.target is not None:
        return f"{name} -> {display_name(entry.target)}"
    if entry.files is not None:
        return f"{name}/ ({entry.files} file{'' if entry.files == 1 else 's'})"
    return f"{name} ({_size(entry.size)})" if entry.size is not None else f"{name} (no file)"


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for larger in ("KB", "MB", "GB"):
        if value < 1_000:
            break
        value, unit = value / 1_000, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
