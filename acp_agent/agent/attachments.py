"""Files that a prompt links to or embeds, as the model may see them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec

from acp_agent.content import ContentBlock, ResourceBlock, ResourceLinkBlock
from acp_agent.errors import WorkspaceError
from acp_agent.workspace.scrub import scrub
from acp_agent.workspace.workspace import Workspace

FILE_LIMIT = 50_000  # characters of one linked file
TOTAL_LIMIT = 200_000  # characters of all linked files of one prompt


async def linked_files(
    content: Sequence[ContentBlock], workspace: Workspace, *, secrets: Sequence[str]
) -> list[str]:
    """Return the text of each linked file inside the session's directories, with its path.

    For a file that cannot be read there is the reason instead, for one that is too long the advice
    to read it. Other links reach the model by name only.

    Args:
        content: the prompt.
        workspace: what may be read.
        secrets: values to remove.
    """
    found: list[str] = []
    remaining = TOTAL_LIMIT
    for block in content:
        path = _file_path(block)
        if path is None:
            continue
        if remaining <= 0:
            found.append(
                f"[The linked file {path} was not attached: "
                "the linked files are too long together; read it]"
            )
            continue
        try:
            file = await workspace.files.read_text(workspace.files.resolve(path))
        except WorkspaceError as error:
            found.append(f"[The linked file {path} was not attached: {scrub(str(error), secrets)}]")
            continue
        workspace.files.mark_seen(file)
        clean = scrub(file.text, secrets)
        text = clean[: min(FILE_LIMIT, remaining)]
        remaining -= len(text)
        more = len(clean) - len(text)
        rest = f"\n[{more} more characters; read the file for the rest]" if more else ""
        found.append(f'<file path="{file.path}">\n{text}{rest}\n</file>')
    return found


def without_secrets(
    content: Sequence[ContentBlock], secrets: Sequence[str]
) -> tuple[ContentBlock, ...]:
    """Remove secrets from the embedded files of a prompt; the user's own text stays unchanged."""
    return tuple(_clean_resource(block, secrets) for block in content)


def _clean_resource(block: ContentBlock, secrets: Sequence[str]) -> ContentBlock:
    if not isinstance(block, ResourceBlock) or block.resource.text is None:
        return block
    body = msgspec.structs.replace(block.resource, text=scrub(block.resource.text, secrets))
    return msgspec.structs.replace(block, resource=body)


def _file_path(block: ContentBlock) -> str | None:
    if not isinstance(block, ResourceLinkBlock):
        return None
    try:
        url = urlsplit(block.uri)
    except ValueError:  # such as a bracket of an IPv6 address that is never closed
        return None
    if url.scheme != "file" or url.netloc not in {"", "localhost"}:
        return None
    return unquote(url.path)
