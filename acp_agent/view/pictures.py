"""Pictures as a page can hold them: checked, bounded, in a `data:` address (RFC 2397)."""

from __future__ import annotations

import base64
import binascii

from acp_agent.content import ImageBlock
from acp_agent.tools.images import image_type
from acp_agent.view.plain import Cleaner
from acp_agent.view.steps import Picture

PICTURE_LIMIT = 2_000_000  # bytes of one


def picture(block: ImageBlock, clean: Cleaner) -> Picture:
    """A picture; left out where it is too large, or is none that browsers and models know.

    Its media type is told by its first bytes, whatever it is said to be: markup (SVG) is no picture
    here.
    """
    named = clean.line(block.mime_type)
    size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
    if size > PICTURE_LIMIT:
        clean.left_out += size
        return Picture(source="", media_type=named, size=size)
    try:
        data = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        return Picture(source="", media_type=named, size=size)
    found = image_type(data)
    if found is None or not clean.has_room_for(len(block.data)):
        return Picture(source="", media_type=found or named, size=size)
    encoded = base64.b64encode(data).decode("ascii")
    return Picture(source=f"data:{found};base64,{encoded}", media_type=found, size=len(data))
