"""Parse and format lines of JSON-RPC 2.0.

Specification: https://www.jsonrpc.org/specification. An id is kept as the bytes that came, so that
it goes back exactly as it was, whatever its size.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from protocol.codec import typed_json
from protocol.codec.tolerance import Lenient

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002
UNSUPPORTED_VERSION: Final = -32022
RequestId = int | str | None
NULL_ID: Final = b"null"
_MAX_NUMBER_BYTES = 1024  # bytes of a number that is parsed: huge ones take Python long
_MAX_EXACT = 1 << 53  # below it every whole number is one float
_NUMBERS: Final = frozenset(b"-0123456789")
_REPLACED: Final = b"\\ufffd"  # in place of a lone surrogate
_NO_PARAMS: Final = Raw(b"{}")
_raws = msgspec.json.Decoder(Raw)


class RpcError(Exception):
    """An error response: raised to send one, and raised when the peer sent one.

    Attributes:
        code: The number that programs look at.
        message: One line for people; line ends and runs of white space become single spaces.
        data: More detail as JSON, or None for none.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        one_line = " ".join(message.split())
        super().__init__(one_line)
        self.code = code
        self.message = one_line
        self.data = data

    def __repr__(self) -> str:
        return f"RpcError({self.code}, {self.message!r})"


class InvalidResultError(RpcError):
    """The peer's result does not have the type that the method requires."""

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(INTERNAL_ERROR, f"the answer to {method} is malformed: {reason}")


def log(text: str, error: BaseException | None = None) -> None:
    """Log a failure with its traceback, or a message if there is no error."""
    import logging  # noqa: PLC0415 - not at start

    level = logging.INFO if error is None else logging.ERROR
    logging.getLogger("protocol.jsonrpc").log(level, "%s", text, exc_info=error)


class Error(Struct, frozen=True, omit_defaults=True):
    """The error object of a response. `data` is None where there is none."""

    code: int
    message: str
    data: Lenient[Any] = None


class Request(Struct, frozen=True):
    """A received request: `raw_id` is the JSON of its id, `id` the value that identifies it."""

    raw_id: bytes
    id: RequestId
    method: str
    params: Raw


class Notification(Struct, frozen=True):
    """A received notification."""

    method: str
    params: Raw


class Response(Struct, frozen=True):
    """A received response; `error` is None if it has a result."""

    id: RequestId
    result: Raw
    error: Raw | None


class InvalidMessage(Struct, frozen=True):
    """A line that is no message, with the error to send and the id to send it with."""

    error: RpcError
    raw_id: bytes = NULL_ID


class Batch(Struct, frozen=True):
    """A line that is a well-formed array; see `batches`."""

    array: bytes


Message = Request | Notification | Response | InvalidMessage | Batch


class _Envelope(Struct):
    jsonrpc: object = None
    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


# The member that every message has comes first, as a tag that costs nothing.
class _OutNotification(Struct, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: object


class _OutRequest(Struct, tag_field="jsonrpc", tag="2.0"):
    id: int
    method: str
    params: object


_envelopes = msgspec.json.Decoder(_Envelope)


def parse(line: bytes) -> Message:
    """Parse one line. Never raises: an `InvalidMessage` says what is wrong."""
    if not line.isascii():
        try:
            line.decode()  # the decoder passes over texts that it does not need (RFC 8259, 8.1)
        except UnicodeDecodeError as error:
            return parse_error(error)
    try:
        envelope = _envelopes.decode(line)
    except msgspec.ValidationError:
        return _classify(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _reparse(line, error)
    raw_id = NULL_ID
    key: RequestId = None
    if envelope.id is not UNSET:
        raw_id = bytes(envelope.id)
        try:
            key = id_value(raw_id)
        except ValueError as error:
            # A response with such an id was never asked for, and is not answered either.
            if envelope.method is UNSET and _is_response(envelope):
                return Response(None, _NO_PARAMS, None)
            return _invalid(str(error))
    if envelope.method is UNSET:
        if _is_response(envelope):
            failed = envelope.error is not UNSET and bytes(envelope.error) != NULL_ID
            return Response(
                key,
                _NO_PARAMS if envelope.result is UNSET else envelope.result,
                envelope.error if failed and envelope.error is not UNSET else None,
            )
        return _invalid("a message needs a method, or the id and result of a response", raw_id)
    if envelope.jsonrpc != "2.0":
        return _invalid('jsonrpc must be "2.0"', raw_id)
    params = _NO_PARAMS if envelope.params is UNSET else envelope.params
    if envelope.id is UNSET:
        return Notification(envelope.method, params)
    return Request(raw_id, key, envelope.method, params)


def _is_response(envelope: _Envelope) -> bool:
    return envelope.result is not UNSET or envelope.error is not UNSET


def id_value(raw_id: bytes) -> RequestId:
    """Return the value of an id's JSON; equal ids have the same value.

    Raises:
        ValueError: it is no string, number or null.
    """
    if raw_id.isdigit() and len(raw_id) <= _MAX_NUMBER_BYTES:
        return int(raw_id)
    first = raw_id[:1]
    if first == b'"':
        try:
            return msgspec.json.decode(raw_id, type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):  # a lone surrogate
            import json  # noqa: PLC0415 - rarely needed

            return str(json.loads(raw_id))
    if raw_id == NULL_ID:
        return None
    if not _NUMBERS.issuperset(first):
        raise ValueError("id must be a string, a number or null")
    if len(raw_id) <= _MAX_NUMBER_BYTES:
        try:
            return int(raw_id)
        except ValueError:
            value = float(raw_id)
        if value.is_integer() and abs(value) < _MAX_EXACT:
            return int(value)
    return f"\0{raw_id.decode()}"  # which no client names a request


def _invalid(reason: str, raw_id: bytes = NULL_ID, code: int = INVALID_REQUEST) -> InvalidMessage:
    title = "parse error" if code == PARSE_ERROR else "invalid request"
    return InvalidMessage(RpcError(code, f"{title}: {reason}"), raw_id)


NOT_AN_OBJECT: Final = _invalid("a message is a JSON object")


def _classify(line: bytes) -> Message:
    """Return what a line is that decodes to no envelope."""
    try:
        line.decode()
        _raws.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _reparse(line, error)
    first = line.lstrip()[:1]
    if first == b"[":
        return Batch(line)
    if first != b"{":
        return NOT_AN_OBJECT
    return _invalid("method must be a string", _find_id(line))


def _find_id(line: bytes) -> bytes:
    """Return the JSON of the id in an object's line; null if it has no usable one."""
    from protocol.codec.member_scanner import MemberScanner  # noqa: PLC0415 - rarely needed

    scanner = MemberScanner(("id",), limit=len(line))
    scanner.feed(line)
    return usable_id(scanner.members.get("id", NULL_ID))


def usable_id(raw_id: bytes) -> bytes:
    """Return an id's JSON for a response: null if it is no valid id."""
    try:
        id_value(raw_id)
    except ValueError:
        return NULL_ID
    return raw_id


def _reparse(line: bytes, error: Exception) -> Message:
    try:
        return parse_without_surrogates(line)[0]
    except typed_json.MalformedJsonError:
        return parse_error(error)


def parse_without_surrogates(line: bytes) -> tuple[Message, bytes]:
    """Parse a line without its lone surrogates, which JSON allows and msgspec does not.

    The id alone stays as it came. Also gives the line that was parsed.

    Raises:
        MalformedJsonError: there are none in it.
    """
    cleaned = typed_json.replace_surrogates(line)
    message = parse(cleaned)
    if isinstance(message, Request) and _REPLACED in message.raw_id:
        raw_id = _find_id(line)
        message = Request(raw_id, id_value(raw_id), message.method, message.params)
    elif isinstance(message, InvalidMessage) and _REPLACED in message.raw_id:
        message = InvalidMessage(message.error, _find_id(line))
    return message, cleaned


def parse_error(error: Exception) -> InvalidMessage:
    """Return the error for a line that is no JSON, because of `error`."""
    return _invalid(typed_json.describe_json_error(error), code=PARSE_ERROR)


def notification(method: str, params: object) -> bytes:
    """Return the line of a notification, with its line end."""
    return typed_json.encode(_OutNotification(method, params)) + b"\n"


def request(request_id: int, method: str, params: object) -> bytes:
    """Return the line of a request, with its line end."""
    return typed_json.encode(_OutRequest(request_id, method, params)) + b"\n"


def result(raw_id: bytes, value: object) -> bytes:
    """Return the line of a response with a result, with its line end."""
    return _response(raw_id, b"result", value)


def failure(raw_id: bytes, error: RpcError) -> bytes:
    """Return the line of a response with an error, with its line end."""
    content = Error(error.code, error.message, error.data)
    try:
        return _response(raw_id, b"error", content)
    except Exception as second:  # noqa: BLE001 - data without a JSON form must not cost the answer
        log("the data of an error could not be encoded", second)
        return _response(raw_id, b"error", Error(error.code, error.message))


def _response(raw_id: bytes, member: bytes, value: object) -> bytes:
    # The id's bytes go out as they came in: whatever encodes them again may change them.
    encoded = typed_json.encode(value)
    return b'{"jsonrpc":"2.0","id":%b,"%b":%b}\n' % (raw_id, member, encoded)
