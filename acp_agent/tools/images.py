"""Pictures that models can look at."""

from __future__ import annotations

import base64

from acp_agent.content import ImageBlock

IMAGE_LIMIT = 5_000_000  # bytes; the least of what the providers take
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


def image_type(data: bytes) -> str | None:
    """The media type of a picture by its first bytes, None where it is none that models take."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_block(data: bytes, media_type: str) -> ImageBlock:
    """A picture as a block of content."""
    return ImageBlock(data=base64.b64encode(data).decode("ascii"), mime_type=media_type)
