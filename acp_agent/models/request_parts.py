"""Parts of requests shared by providers: cached messages, pictures, names and arguments of calls.

A provider that refuses a picture would refuse every later request of the session too. Therefore a
picture that no provider accepts is replaced by text. The type of a picture is read from its bytes.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from acp_agent.content import ImageBlock, JsonObject, image_type
from acp_agent.models.base import AnswerCall, Message, ModelInfo, ToolResult, UserImage
from acp_agent.tools.calls.argument_json import read_arguments

_CACHE_SIZE = 8_000_000  # characters in the cache; more than the window of any model
_MAX_CONVERSATIONS = 8  # whose JSON is cached
_MAX_CACHED_MESSAGE = (
    100_000  # characters; converting a longer message takes no longer than sending it
)
NO_PICTURE = "[A picture stood here; this model cannot see pictures.]"
LARGEST = 20 * 1024 * 1024  # characters of base64
_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ENDS = 64  # characters at each end that are decoded
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_UNREADABLE = "unreadable_arguments"
_MAX_NAME_LENGTH = 64
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
# JSON that is nested too deeply is treated like invalid JSON.
_UNREADABLE_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)


class MessageCache:
    """A cache of messages in the form of an API, which speeds up requests of long sessions.

    The requests of a session share their message objects, except for a few new ones at the end.
    """

    def __init__(self) -> None:
        # By model, then by the id of the message object, which stays unique while it is stored.
        self._entries: dict[ModelInfo, dict[int, tuple[Message, Sequence[JsonObject]]]] = {}
        self._size = 0  # characters, roughly

    def encode_all(
        self,
        model: ModelInfo,
        messages: Sequence[Message],
        write: Callable[[Message], Sequence[JsonObject]],
    ) -> Iterator[Sequence[JsonObject]]:
        """Yield the result of `write` for each message; the caller must not change it."""
        if self._size > _CACHE_SIZE:
            self._entries.clear()
            self._size = 0
        entries = self._entries.setdefault(model, {})
        for message in messages:
            entry = entries.get(id(message))
            if entry is None:
                entry = message, write(message)
                size = _size(message)
                if size <= _MAX_CACHED_MESSAGE:
                    entries[id(message)] = entry
                    self._size += size
            yield entry[1]


class JsonCache:
    """A cache of the JSON of whole conversations: a request costs what is new in it.

    For APIs in which the form of a message does not depend on those after it.
    """

    def __init__(self) -> None:
        # By model and the id of the first message, which stays unique while it is stored; the
        # conversation that was used last comes last.
        self._conversations: dict[tuple[ModelInfo, int], _Encoded] = {}

    def encode(
        self,
        model: ModelInfo,
        messages: Sequence[Message],
        write: Callable[[Message], Sequence[JsonObject]],
        first: Sequence[JsonObject] = (),
    ) -> msgspec.Raw:
        """Return an array of `first` and the results of `write` for all messages."""
        pieces = [msgspec.json.encode(item) for item in first]
        if messages:
            key = model, id(messages[0])
            encoded = self._conversations.pop(key, _Encoded()).followed_by(messages, write)
            if len(encoded.json) <= _CACHE_SIZE:
                self._conversations[key] = encoded
            if len(self._conversations) > _MAX_CONVERSATIONS:
                del self._conversations[next(iter(self._conversations))]
            pieces += [encoded.json] if encoded.json else []
        return msgspec.Raw(b"[" + b",".join(pieces) + b"]")


class _Encoded(NamedTuple):
    """Messages, their JSON separated by commas, and where the JSON of each ends."""

    messages: tuple[Message, ...] = ()
    json: bytes = b""
    ends: Sequence[int] = ()

    def followed_by(
        self, messages: Sequence[Message], write: Callable[[Message], Sequence[JsonObject]]
    ) -> _Encoded:
        """Return `messages`, encoded; those at the beginning that are the same are not again."""
        same = len(self.messages)
        if tuple(messages[:same]) != self.messages:  # compares the identity of most of them
            pairs = enumerate(zip(self.messages, messages, strict=False))
            same = next((at for at, (one, other) in pairs if one is not other), len(messages))
        ends = [*self.ends[:same]]
        pieces = [self.json[: ends[-1]]] if ends and ends[-1] else []
        end = ends[-1] if ends else 0
        for message in messages[same:]:
            for item in write(message):
                pieces.append(msgspec.json.encode(item))
                end += len(pieces[-1]) + (len(pieces) > 1)
            ends.append(end)
        return _Encoded(tuple(messages), b",".join(pieces), ends)


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
