"""Files that a prompt links to, read for the model."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from acp_agent.content import ContentBlock, ResourceLinkBlock
from acp_agent.errors import WorkspaceError
from acp_agent.workspace.contract import Workspace

FILE_LIMIT = 50_000  # characters of one linked file


async def linked_files(content: Sequence[ContentBlock], workspace: Workspace) -> list[str]:
    """The text of every linked file inside the session's folders, each with its path.

    A file that cannot be read is named with the reason; other links the model sees by name only.
    """
    found = []
    for block in content:
        path = _file_path(block)
        if path is None:
            continue
        try:
            file = await workspace.files.read_text(workspace.files.resolve(path))
        except WorkspaceError as error:
            found.append(f"[The linked file {path} was not attached: {error}]")
            continue
        workspace.files.seen(file)
        text, more = file.text[:FILE_LIMIT], len(file.text) - FILE_LIMIT
        rest = f"\n[{more} more characters; read the file for the rest]" if more > 0 else ""
        found.append(f'<file path="{file.path}">\n{text}{rest}\n</file>')
    return found


def _file_path(block: ContentBlock) -> str | None:
    if not isinstance(block, ResourceLinkBlock):
        return None
    url = urlsplit(block.uri)
    if url.scheme != "file" or url.netloc not in {"", "localhost"}:
        return None
    return unquote(url.path)
