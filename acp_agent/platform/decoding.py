"""Decode to msgspec types in any thread.

msgspec builds its description of a type when the type is first used. A second thread that uses the
type at that moment finds an incomplete description, and the process crashes. So everything decodes
to types of its own through these functions, which hold one lock; a test finds calls that do not.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final, TypeVar, overload

import msgspec

T = TypeVar("T")

_lock: Final = threading.RLock()


@overload
def convert(value: object, kind: type[T], *, strict: bool = True) -> T: ...
@overload
def convert(value: object, kind: Any, *, strict: bool = True) -> Any: ...
def convert(value: object, kind: Any, *, strict: bool = True) -> Any:
    """Convert a value of plain Python types to a type. Raises msgspec.ValidationError."""
    with _lock:
        return msgspec.convert(value, kind, strict=strict)


@overload
def decode_json(data: bytes | str, kind: type[T]) -> T: ...
@overload
def decode_json(data: bytes | str, kind: Any) -> Any: ...
def decode_json(data: bytes | str, kind: Any) -> Any:
    """Decode JSON to a type. Raises msgspec.DecodeError."""
    with _lock:
        return msgspec.json.decode(data, type=kind)


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder of a type, which any thread can use then."""
    with _lock:
        return msgspec.json.Decoder(kind)


@cache
def struct_fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a type; finding them evaluates its annotations, which is slow."""
    return msgspec.structs.fields(kind)
