"""Events as the JSON that the journal keeps."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from acp_agent.errors import InvalidInputError, StoreDamagedError
from acp_agent.events import AnyEvent
from acp_agent.session.store.records import UnknownEvent

MAX_EVENT_BYTES = 64 * 1024 * 1024

_encoder = msgspec.json.Encoder()


class _Tagged(msgspec.Struct):
    event: str


@cache
def _decoder() -> msgspec.json.Decoder[AnyEvent]:
    # Built when it is first needed: start-up has no event to read.
    return msgspec.json.Decoder(AnyEvent)


@cache
def _tag_decoder() -> msgspec.json.Decoder[_Tagged]:
    return msgspec.json.Decoder(_Tagged)


def encode_event(event: AnyEvent | UnknownEvent) -> bytes:
    """An event as UTF-8 JSON.

    Raises:
        InvalidInputError: JSON cannot hold a value of it, or it is larger than the journal keeps.
    """
    if isinstance(event, UnknownEvent):
        return event.raw
    try:
        body = _encoder.encode(event)
    except UnicodeEncodeError:
        body = _encoder.encode(_repaired(msgspec.to_builtins(event)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"this cannot be kept in the session: {str(error).splitlines()[0]}"
        ) from error
    if len(body) > MAX_EVENT_BYTES:
        raise InvalidInputError(
            f"{len(body) / 1e6:.0f} MB is too much for one step of a session, which keeps at most "
            f"{MAX_EVENT_BYTES / 1e6:.0f} MB; send less at once"
        )
    return body


def decode_event(body: bytes) -> AnyEvent | UnknownEvent:
    """The event that `body` is the JSON of.

    Raises:
        StoreDamagedError: it is not JSON, or not an event at all.
    """
    try:
        return _decoder().decode(body)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreDamagedError(f"not JSON: {error}") from error
    try:
        return UnknownEvent(_tag_decoder().decode(body).event, body)
    except msgspec.DecodeError as error:
        raise StoreDamagedError(f"not an event: {error}") from error


def repaired(text: str) -> str:
    """`text` without lone surrogates, which UTF-8 cannot hold.

    Two halves of a character that came in separate pieces become that character; a half that
    stays alone becomes U+FFFD.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _repaired(value: Any) -> Any:  # what came as JSON and is only passed on
    if isinstance(value, str):
        return repaired(value)
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repaired(item) for item in value]
    return value
