"""Blocks of content as a page shows them."""

from __future__ import annotations

from collections.abc import Iterable

from acp_agent.content import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)
from acp_agent.view.pictures import picture
from acp_agent.view.plain import Cleaner
from acp_agent.view.steps import Block


def blocks(
    content: Iterable[ContentBlock], clean: Cleaner, *, markdown: bool = False
) -> list[Block]:
    """Content for the page; `markdown` says whether its texts are."""
    return [_block(block, clean, markdown=markdown) for block in content]


def _block(block: ContentBlock, clean: Cleaner, *, markdown: bool) -> Block:
    match block:
        case TextBlock():
            return Block(text=clean.text(block.text), markdown=markdown)
        case ImageBlock():
            return Block(picture=picture(block, clean), label=clean.line(block.uri or ""))
        case AudioBlock():
            return Block(label=clean.line(block.mime_type))
        case ResourceLinkBlock():
            named = block.title or block.name
            return Block(label=clean.line(f"{named} ({block.uri})" if named else block.uri))
        case ResourceBlock():
            resource = block.resource
            return Block(text=clean.text(resource.text or ""), label=clean.line(resource.uri))
