"""Reads an event of a stream that is not quite what its API promises."""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import structs

T = TypeVar("T")

_UNFIT: Final = object()


def read_odd_event(data: bytes, expected: type[T], error: msgspec.DecodeError) -> T:
    """The event with what can be read of it; `error` is why it could not be read as it is.

    Half a surrogate pair is kept, a number that is written as text is taken for the number, and a
    field of another type than its own is left out.

    Raises:
        msgspec.DecodeError: it is no JSON, or not an object.
    """
    halves = not isinstance(error, msgspec.ValidationError)
    if halves and b"\\ud" not in data.lower():
        raise error
    try:
        value: object = json.loads(data)
        found = _fitting(value, expected)
    except (ValueError, RecursionError):
        raise error from None
    if not isinstance(found, expected):
        raise error
    return found


def _fitting(value: object, expected: Any) -> Any:
    """What is of the expected type in a value; `_UNFIT` where nothing is."""
    if expected is msgspec.Raw:
        return msgspec.Raw(json.dumps(value).encode())
    options = get_args(expected) if get_origin(expected) in {Union, UnionType} else (expected,)
    for option in options:
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            found = _struct(value, option)
        elif get_origin(option) is list and isinstance(value, list):
            (kind,) = get_args(option)
            found = [one for each in value if (one := _fitting(each, kind)) is not _UNFIT]
        else:
            found = _plain(value, option)
        if found is not _UNFIT:
            return found
    return _UNFIT


def _struct(value: object, expected: type[msgspec.Struct]) -> object:
    if not isinstance(value, dict):
        return _UNFIT
    given: dict[str, object] = {}
    for field in structs.fields(expected):
        if field.encode_name in value:
            found = _fitting(value[field.encode_name], field.type)
            if found is not _UNFIT:
                given[field.name] = found
                continue
        if field.required:
            return _UNFIT
    return expected(**given)


def _plain(value: object, expected: Any) -> object:
    as_number = isinstance(value, str) and expected in {int, float}
    if value is None and expected not in {None, NoneType}:
        return _UNFIT
    try:
        found: object = msgspec.convert(value, expected, strict=not as_number)
    except msgspec.ValidationError:
        return _UNFIT
    return found
