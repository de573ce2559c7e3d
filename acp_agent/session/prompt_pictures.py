"""The pictures in a prompt: only what models take becomes part of a conversation.

A provider refuses a whole request for one picture that it cannot read. In the conversation that
would be every request from then on.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence

from msgspec.structs import replace

from acp_agent.content import ContentBlock, ImageBlock
from acp_agent.errors import InvalidInputError
from acp_agent.models.request_parts import LARGEST
from acp_agent.tools.images import image_type

_MOST = LARGEST * 3 // 4  # bytes; a model that takes less is told of the picture in words


def with_usable_pictures(content: Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """A prompt whose pictures are canonical base64 and called by the type that they are of.

    Raises:
        InvalidInputError: one of them is none that models take; the message says why.
    """
    return tuple(_usable(one) if isinstance(one, ImageBlock) else one for one in content)


def _usable(picture: ImageBlock) -> ImageBlock:
    text = "".join(picture.data.split())  # it may be broken into lines
    try:
        data = binascii.a2b_base64(text, strict_mode=True)  # else what is foreign is left out
    except ValueError:
        data = b""
    kind = image_type(data)
    if kind is None:
        raise InvalidInputError(
            f"prompt: a picture ({picture.mime_type or 'of no type'}) is none that models can "
            "read; send PNG, JPEG, GIF or WebP as base64",
            field="prompt",
        )
    if len(data) > _MOST:
        raise InvalidInputError(
            f"prompt: a picture has {len(data):,} bytes, and models take {_MOST:,} at most; send "
            "a smaller one",
            field="prompt",
        )
    if (text, kind) == (picture.data, picture.mime_type):
        return picture
    return replace(picture, data=text, mime_type=kind)
