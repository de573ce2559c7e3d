"""Parts of requests shared by providers: cached messages, pictures, names and arguments of calls.

A provider that refuses a picture would refuse every later request of the session too. Therefore a
picture that no provider accepts is replaced by text. The type of a picture is read from its bytes.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec
from msgspec import structs

from acp_agent.content import ImageBlock, JsonObject, image_type
from acp_agent.models.base import AnswerCall, Message, ModelInfo, ToolResult, UserImage
from acp_agent.tools.calls.argument_json import read_arguments

Encoded = TypeVar("Encoded")  # a message in the form of an API

_CACHE_SIZE = 8_000_000  # characters in the cache; more than the window of any model
_MAX_CACHED_MESSAGE = (
    100_000  # characters; converting a longer message takes no longer than sending it
)
NO_PICTURE = "[A picture stood here; this model cannot see pictures.]"
LARGEST = 20 * 1024 * 1024  # characters of base64
_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ENDS = 64  # characters at each end that are decoded
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class MessageCache(Generic[Encoded]):
    """A cache of messages in the form of an API, which speeds up requests of long sessions.

    The requests of a session share their message objects, except for a few new ones at the end.
    """

    def __init__(self) -> None:
        # By model, then by the id of the message object, which stays unique while it is stored.
        self._entries: dict[ModelInfo, dict[int, tuple[Message, Encoded]]] = {}
        self._size = 0  # characters, roughly

    def encode_all(
        self, model: ModelInfo, messages: Sequence[Message], write: Callable[[Message], Encoded]
    ) -> list[Encoded]:
        """Return the result of `write` for each message; the caller must not change it."""
        if self._size > _CACHE_SIZE:
            self._entries.clear()
            self._size = 0
        entries = self._entries.setdefault(model, {})
        uncached: dict[int, tuple[Message, Encoded]] = {}
        for message in [each for each in messages if id(each) not in entries]:
            size = _size(message)
            is_cached = size <= _MAX_CACHED_MESSAGE
            (entries if is_cached else uncached)[id(message)] = message, write(message)
            self._size += size if is_cached else 0
        found = entries | uncached if uncached else entries
        return [found[id(message)][1] for message in messages]


BlockCache: TypeAlias = MessageCache[list[JsonObject]]
JsonCache: TypeAlias = MessageCache[bytes]  # see `join_json`


def join_json(values: Iterable[JsonObject]) -> bytes:
    """Return values as JSON, separated by commas, for `json_array`."""
    return b",".join(map(msgspec.json.encode, values))


def json_array(pieces: Iterable[bytes]) -> msgspec.Raw:
    """Return an array of the values of all pieces; each piece has any number of values."""
    return msgspec.Raw(b"[" + b",".join(filter(None, pieces)) + b"]")


def _size(message: Message) -> int:
    """Return the approximate characters of a message; with pictures, more than are cached."""
    size = 100
    for part in message.parts:
        match part:
            case UserImage() | ToolResult(images=(_, *_)):
                return _MAX_CACHED_MESSAGE + 1
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
    extra_types: frozenset[str] = frozenset(),
) -> list[JsonObject]:
    """Return pictures as parts of a message; a picture that cannot be sent becomes a text.

    Args:
        images: the pictures.
        vision: whether the model can see pictures.
        as_picture: converts a picture to the form of the API.
        as_text: converts a text to the form of the API.
        largest: the longest picture that the API accepts, in characters of base64.
        extra_types: media types that the API accepts besides the common ones.
    """
    if not vision:
        return [as_text(NO_PICTURE) for _ in images]
    content: list[JsonObject] = []
    for image in images:
        fit = _fit(image, largest, _TYPES | extra_types)
        content.append(as_text(fit) if isinstance(fit, str) else as_picture(fit))
    return content


def _fit(image: ImageBlock, largest: int, types: frozenset[str]) -> ImageBlock | str:
    """Return the picture in a form that can be sent, or the text that replaces it."""
    data, invalid_characters = image.data, _invalid_characters(image.data)
    if invalid_characters:  # some encoders insert line breaks, which no API accepts
        data = "".join(data.split())
        invalid_characters = _invalid_characters(data)
    beginning = _decoded(data[:_ENDS])
    if not beginning or len(data) % 4 or _decoded(data[-_ENDS:]) is None or invalid_characters:
        return "[A picture stood here; its data is damaged.]"
    kind = image_type(beginning) or image.mime_type
    if kind not in types:
        return f"[A picture stood here; it is of the type {kind}, which cannot be sent.]"
    if len(data) > largest:
        return (
            f"[A picture stood here; it has {len(data):,} characters in base64, and at most "
            f"{largest:,} can be sent.]"
        )
    return structs.replace(image, data=data, mime_type=kind)


def _invalid_characters(data: str) -> bytes:
    """Return the bytes that are not base64. This is four times as fast as decoding."""
    return data.rstrip("=").encode("utf-8", "replace").translate(None, _BASE64)


def _decoded(data: str) -> bytes | None:
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return None


# Names and arguments of tool calls that are sent back to a provider.

_UNREADABLE = "unreadable_arguments"
_MAX_NAME_LENGTH = 64
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
# JSON that is nested too deeply is treated like invalid JSON.
_UNREADABLE_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)


def as_object(text: str) -> str:
    """Return a JSON object: `text` itself, its corrected form, or an object that contains it.

    A model may write invalid JSON as arguments. Providers refuse a history with such text, some of
    them only later in the session. In an object, the model still sees what it wrote.
    """
    if is_object(text):
        return text
    try:
        return msgspec.json.encode(read_arguments(text)).decode()
    except ValueError:
        return msgspec.json.encode({_UNREADABLE: text}).decode()


def as_name(name: str) -> str:
    """Return `name` if every provider accepts it, else a similar name.

    A model may call a tool that does not exist, such as `browser.open`. Providers refuse a history
    with such a name: OpenAI and Anthropic accept ^[a-zA-Z0-9_-]{1,64}$, Gemini no initial digit.
    """
    if _NAME.fullmatch(name):
        return name
    plain = _NO_NAME.sub("_", name)[:_MAX_NAME_LENGTH]
    return plain if _NAME.fullmatch(plain) else f"_{plain}"[:_MAX_NAME_LENGTH]


def is_object(text: str) -> bool:
    """Return whether `text` is a complete JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except _UNREADABLE_ERRORS:
        return False
