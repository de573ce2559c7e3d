"""Encode and decode typed values, also where msgspec alone refuses valid JSON."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from protocol.codec.tolerance import Explanation, decode_hook, encode_hook, explain

T = TypeVar("T")

_BACKSLASH = ord("\\")
# The first of each half of a pair (Unicode, section 3.8)
_HIGH_SURROGATE, _LOW_SURROGATE = (0xD800, 0xDC00)

_encoder = msgspec.json.Encoder(enc_hook=encode_hook)
_encode = _encoder.encode
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}  # made at first use; they never change


class MalformedJsonError(ValueError):
    """The bytes are not JSON in UTF-8, or nested too deeply."""


class InvalidValueError(ValueError):
    """The JSON is well-formed, but does not have the expected shape.

    Attributes:
        field: The path of the wrong field, such as `prompt[0].text`; empty for the whole value.
        reason: What is wrong with it, in one line.
    """

    def __init__(self, explanation: Explanation) -> None:
        super().__init__(str(explanation))
        self.field = explanation.field
        self.reason = explanation.reason


def encode(value: object) -> bytes:
    """`value` as JSON on one line.

    A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD.

    Raises:
        TypeError: something in `value` has no JSON form.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode_surrogates(value)


def decode(data: bytes | msgspec.Raw, expected: type[T]) -> T:
    """Decode JSON to `expected`, without the invalid parts that its marks tolerate.

    Raises:
        MalformedJsonError: `data` is no JSON.
        InvalidValueError: the value does not fit `expected`.
    """
    try:
        return _decoder(expected).decode(data)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedJsonError(describe_json_error(error)) from None
    from protocol.codec.lenient import drop_invalid  # noqa: PLC0415 - rarely needed, and not at start

    try:
        valid = drop_invalid(msgspec.json.decode(data), expected)
        return msgspec.convert(valid, expected, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise InvalidValueError(explain(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedJsonError(describe_json_error(error)) from None


def describe_json_error(error: Exception) -> str:
    """Why the bytes are no JSON, in one line that quotes none of them."""
    if isinstance(error, UnicodeDecodeError):
        return f"invalid UTF-8 at byte {error.start}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error).removeprefix("JSON is malformed: ")


def replace_surrogates(line: bytes) -> bytes:
    r"""`line` with each lone surrogate (`\ud800` without its partner) replaced by U+FFFD.

    msgspec refuses such strings; JSON allows them (RFC 8259, section 8.2) and clients send them
    when they cut a string between the two halves of a character.

    Nothing else changes, so numbers and escapes stay as they were written.

    Raises:
        MalformedJsonError: there is none in it.
    """
    folded = line.replace(b"\\uD", b"\\ud")
    pieces: list[bytes] = []
    copied = 0
    at = folded.find(b"\\ud")
    while at >= 0:
        code = _surrogate(folded, at)
        if code is None:
            length = 2
        elif code < _LOW_SURROGATE and (_surrogate(folded, at + 6) or 0) >= _LOW_SURROGATE:
            length = 12
        else:
            length = 6
            pieces += line[copied:at], b"\\ufffd"
            copied = at + length
        at = folded.find(b"\\ud", at + length)
    if not pieces:
        raise MalformedJsonError("no lone surrogate in it")
    return b"".join((*pieces, line[copied:]))


def _surrogate(line: bytes, at: int) -> int | None:
    """Return the surrogate whose escape is at a position of `line`; None if there is none."""
    start = at
    while start > 0 and line[start - 1] == _BACKSLASH:
        start -= 1
    if (at - start) % 2 or not line.startswith(b"\\ud", at):
        return None  # the backslash is escaped itself
    try:
        code = int(line[at + 2 : at + 6], 16)
    except ValueError:
        return None
    return code if code >= _HIGH_SURROGATE else None


def _encode_surrogates(value: object) -> bytes:
    import json  # noqa: PLC0415 - rarely needed, and not at start

    plain = msgspec.to_builtins(value, enc_hook=_encode_raw)
    return _without_surrogates(json.dumps(plain, ensure_ascii=False)).encode()


def _encode_raw(value: object) -> object:
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    return encode_hook(value)


def _without_surrogates(text: str) -> str:
    # Through UTF-16 the two halves of a pair, even apart in Python's string, become one character.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _decoder(expected: type[T]) -> msgspec.json.Decoder[T]:
    decoder = _decoders.get(expected)
    if decoder is None:
        decoder = _decoders[expected] = msgspec.json.Decoder(expected, dec_hook=decode_hook)
    return decoder


def decode_any(data: bytes | msgspec.Raw) -> Any:
    """Decode JSON to plain Python values. Raises MalformedJsonError if `data` is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedJsonError(describe_json_error(error)) from None
