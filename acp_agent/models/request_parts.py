"""Parts of a request that providers share: messages kept, pictures accepted, calls' arguments.

A picture that a provider refuses would be refused in every later request of the session, so what no
provider accepts is replaced by words. The type of a picture is read from its bytes.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import structs

from acp_agent.content import ImageBlock, JsonObject, image_type
from acp_agent.models.base import AnswerCall, Message, ModelInfo, ToolResult, UserImage
from acp_agent.tools.calls.argument_json import read_arguments

_KEPT_SIZE = 8_000_000  # characters, more than any model takes
_LARGEST_KEPT = 100_000  # characters; to write one that is longer takes no longer than to send it
NO_PICTURE = "[A picture stood here; this model cannot see pictures.]"
LARGEST = 20 * 1024 * 1024  # characters of base64
_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ENDS = 64  # characters at either end that are decoded
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class WrittenMessages:
    """Messages as an API takes them, kept so that a long session does not write all of them again.

    A session's requests have the same objects in them, with a few new ones at the end.
    """

    def __init__(self) -> None:
        # By the model, then by the message's address, which is its own as long as it is kept here.
        self._kept: dict[ModelInfo, dict[int, tuple[Message, Sequence[JsonObject]]]] = {}
        self._size = 0  # characters of their texts

    def each(
        self,
        model: ModelInfo,
        messages: Sequence[Message],
        write: Callable[[Message], Sequence[JsonObject]],
    ) -> Iterator[Sequence[JsonObject]]:
        """Yield each message as `write` gives it for this model; it must not be changed."""
        if self._size > _KEPT_SIZE:
            self._kept.clear()
            self._size = 0
        kept = self._kept.setdefault(model, {})
        for message in messages:
            found = kept.get(id(message))
            if found is None:
                found = message, write(message)
                size = _size(message)
                if size <= _LARGEST_KEPT:
                    kept[id(message)] = found
                    self._size += size
            yield found[1]


def _size(message: Message) -> int:
    """Characters of a message, roughly: more than are kept where there is a picture in it."""
    size = 100
    for part in message.parts:
        match part:
            case UserImage() | ToolResult(images=(_, *_)):
                return _LARGEST_KEPT + 1
            case AnswerCall():
                size += 100 + len(part.arguments)
            case _:
                size += 100 + len(part.text)
    return size


def image_parts(
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


# A tool call as it is sent back to a provider.

_UNREADABLE = "unreadable_arguments"
_LONGEST_NAME = 64
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
# Text that nests without end is no worse than text that is no JSON at all.
_UNREADABLE_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)


def as_object(text: str) -> str:
    """`text` where it is a JSON object, else what is read as one, else an object that holds it.

    A model may write arguments that are no JSON. Providers refuse a history with such text, some
    of them only later in the session; wrapped, the model still sees what it wrote.
    """
    if is_object(text):
        return text
    try:
        return msgspec.json.encode(read_arguments(text)).decode()
    except ValueError:
        return msgspec.json.encode({_UNREADABLE: text}).decode()


def as_name(name: str) -> str:
    """`name` where it is one that every provider takes, else one that is like it.

    A model may call what is no tool, such as `browser.open`. Providers refuse a history with such
    a name: OpenAI and Anthropic take ^[a-zA-Z0-9_-]{1,64}$, Gemini no digit at the beginning.
    """
    if _NAME.fullmatch(name):
        return name
    plain = _NO_NAME.sub("_", name)[:_LONGEST_NAME]
    return plain if _NAME.fullmatch(plain) else f"_{plain}"[:_LONGEST_NAME]


def is_object(text: str) -> bool:
    """Whether `text` is a whole JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except _UNREADABLE_ERRORS:
        return False
