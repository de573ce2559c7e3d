"""Pictures as a request can have them.

A picture that a provider refuses would be refused with every further request of its session: what
none takes is told in words instead. What a picture is, its bytes say better than who sent it.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Sequence

from msgspec import structs

from acp_agent.content import ImageBlock, JsonObject
from acp_agent.tools.images import image_type

NO_PICTURE = "[A picture stood here; this model cannot see pictures.]"
LARGEST = 20 * 1024 * 1024  # characters of base64
_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ENDS = 64  # characters at either end that are decoded
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def written(
    images: Sequence[ImageBlock],
    *,
    vision: bool,
    as_picture: Callable[[ImageBlock], JsonObject],
    as_text: Callable[[str], JsonObject],
    largest: int = LARGEST,
    further: frozenset[str] = frozenset(),
) -> list[JsonObject]:
    """The pictures as parts of a message.

    Args:
        images: the pictures.
        vision: whether the model sees any.
        as_picture: writes a picture in the API's way.
        as_text: writes a text in the API's way.
        largest: characters of base64 that the API takes for one.
        further: media types that it takes beside those that all take.
    """
    if not vision:
        return [as_text(NO_PICTURE) for _ in images]
    parts: list[JsonObject] = []
    for image in images:
        fit = _fit(image, largest, _TYPES | further)
        parts.append(as_text(fit) if isinstance(fit, str) else as_picture(fit))
    return parts


def _fit(image: ImageBlock, largest: int, types: frozenset[str]) -> ImageBlock | str:
    """The picture as it can be sent, or what is said in its place."""
    data, foreign = image.data, _foreign(image.data)
    if foreign:  # some encoders break lines, which no API takes
        data = "".join(data.split())
        foreign = _foreign(data)
    begin = _decoded(data[:_ENDS])
    if not begin or len(data) % 4 or _decoded(data[-_ENDS:]) is None or foreign:
        return "[A picture stood here; its data is damaged.]"
    kind = image_type(begin) or image.mime_type
    if kind not in types:
        return f"[A picture stood here; it is of the type {kind}, which cannot be sent.]"
    if len(data) > largest:
        return (
            f"[A picture stood here; it has {len(data):,} characters in base64, and at most "
            f"{largest:,} can be sent.]"
        )
    return structs.replace(image, data=data, mime_type=kind)


def _foreign(data: str) -> bytes:
    """What is no base64 in it. Decoding all of it takes four times as long."""
    return data.rstrip("=").encode("utf-8", "replace").translate(None, _BASE64)


def _decoded(data: str) -> bytes | None:
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return None
