"""Convert the files that a prompt links to or embeds to text for the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.content import ContentBlock, ResourceBlock, ResourceLinkBlock
from acp_agent.errors import MissingFileError, WorkspaceError
from acp_agent.sandbox.launch import Confine
from acp_agent.workspace.file_io import display_name, file_kind
from acp_agent.workspace.folder_listing import list_folder
from acp_agent.workspace.scrub import scrub
from acp_agent.workspace.workspace import Workspace

FILE_LIMIT = 50_000  # characters of one linked file
TOTAL_LIMIT = 200_000  # characters of all linked files of one prompt
_MAX_ENTRIES = 100  # entries of one linked folder
_MAX_LINES = 200  # lines of one selection
_MAX_LINE = 300  # characters of one line of a selection
# File types that are not plain text but that the tool `read` can show.
_READABLE = frozenset({".gif", ".ipynb", ".jpeg", ".jpg", ".pdf", ".png", ".webp"})
_LINE_SELECTION = re.compile(r"L?(\d{1,9})(?:[-:]L?(\d{1,9}))?")


class _Target(Struct, frozen=True):
    """The path of a link, with the first and last line if the link selects lines."""

    path: str
    lines: tuple[int, int] | None = None


async def linked_files(
    content: Sequence[ContentBlock], workspace: Workspace, *, secrets: Sequence[str]
) -> list[str]:
    """Return the text of each linked file inside the session's directories, with its path.

    A link to a folder gives its entries. A link to lines adds these lines with their numbers. If a
    file cannot be read, the reason is returned instead; if it is too long, a note says how to get
    the rest. The model gets only the names of other links.

    Args:
        secrets: values to remove.
    """
    texts: list[str] = []
    remaining = TOTAL_LIMIT
    for block in content:
        target = _target(block)
        if target is None or not isinstance(block, ResourceLinkBlock):
            continue
        path = target.path
        if remaining <= 0:
            texts.append(
                f"[The linked file {path} was not attached: "
                "the linked files are too long together; read it]"
            )
            continue
        try:
            real = workspace.files.resolve(path)
            if file_kind(real) == "folder":
                texts.append(await _folder(real, workspace.files.confine))
                continue
            file = await workspace.files.read_text(real)
        except WorkspaceError as error:
            why = str(error)
            if Path(path).suffix.lower() in _READABLE and not isinstance(error, MissingFileError):
                why = "it is no plain text; look at it with `read`"
            texts.append(f"[The linked file {path} was not attached: {scrub(why, secrets)}]")
            continue
        workspace.files.mark_seen(file)
        clean = scrub(file.text, secrets)
        text = clean[: min(FILE_LIMIT, remaining)]
        remaining -= len(text)
        omitted = len(clean) - len(text)
        note = f"\n[{omitted} more characters; read the file for the rest]" if omitted else ""
        texts.append(f'<file path="{file.path}">\n{text}{note}\n</file>')
        if target.lines is not None:
            texts.append(_selection(file.path, clean, *target.lines))
            remaining -= len(texts[-1])
    return texts


def linked_paths(content: Sequence[ContentBlock], workspace: Workspace) -> tuple[str, ...]:
    """Return the resolved paths of the session's files that a prompt links to or embeds."""
    paths: list[str] = []
    for target in map(_target, content):
        if target is not None:
            with suppress(WorkspaceError):  # `linked_files` reports it
                paths.append(str(workspace.files.resolve(target.path)))
    return tuple(dict.fromkeys(paths))


async def _folder(path: Path, confine: Confine) -> str:
    """Return the entries of a linked folder."""
    listing = await list_folder(path, depth=1, limit=_MAX_ENTRIES, confine=confine)
    names = [
        f"{display_name(entry.name)}/" if entry.files is not None else display_name(entry.name)
        for entry in listing.entries
    ]
    more = ["[more: use `list`]"] if listing.more else [] if names else ["(empty)"]
    return "\n".join([f'<folder path="{path}">', *names, *more, "</folder>"])


def _selection(path: str, text: str, first: int, last: int) -> str:
    """Return the lines that the user selected, numbered like those of the tool `read`."""
    lines = text.split("\n")[first - 1 : min(last, first - 1 + _MAX_LINES)]
    rows = [f"{number}\t{line[:_MAX_LINE]}" for number, line in enumerate(lines, first)]
    where = f"line {first}" if first == last else f"lines {first} to {last}"
    return "\n".join([f"[The user points to {where} of {path}:]", *rows])


def without_secrets(
    content: Sequence[ContentBlock], secrets: Sequence[str]
) -> tuple[ContentBlock, ...]:
    """Remove secrets from the embedded files of a prompt; the user's own text stays unchanged."""

    def clean(block: ContentBlock) -> ContentBlock:
        if not isinstance(block, ResourceBlock) or block.resource.text is None:
            return block
        body = replace(block.resource, text=scrub(block.resource.text, secrets))
        return replace(block, resource=body)

    return tuple(map(clean, content))


def _target(block: ContentBlock) -> _Target | None:
    """Return the file that a block links to or embeds, or None if it is not a local file."""
    match block:
        case ResourceLinkBlock():
            uri = block.uri
        case ResourceBlock():
            uri = block.resource.uri
        case _:
            return None
    try:
        url = urlsplit(uri)
    except ValueError:  # for example, an IPv6 address without its closing bracket
        return None
    if url.scheme != "file" or url.netloc not in {"", "localhost"}:
        return None
    selection = _LINE_SELECTION.match(url.fragment or url.query.removeprefix("line="))
    if selection is None or int(selection[1]) < 1:
        return _Target(unquote(url.path))
    first = int(selection[1])
    return _Target(unquote(url.path), (first, max(first, int(selection[2] or first))))
