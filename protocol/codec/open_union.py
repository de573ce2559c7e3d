"""Unions that the protocol leaves open: variants without a tag, or with tags not known yet.

`msgspec` decodes closed unions with a tag by itself. For the others a field names a plain base
class, the variants derive from it, and `decode_hook` asks the base class which variant a value is.
"""

from __future__ import annotations

from typing import Any

import msgspec

from protocol.codec.explain import explain


class OpenUnion:
    """The base of a union's variants; a subclass says how a variant is recognised."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """The variant that the JSON object `value` is meant to be.

        Raises:
            ValueError: it is none; the message says what is wrong in one line.
        """
        raise NotImplementedError


def string_in(value: dict[str, Any], name: str) -> str:
    """The string that the field `name` of a JSON object holds.

    Raises:
        ValueError: it holds none.
    """
    found = value.get(name)
    if name not in value:
        raise ValueError(f"{name}: is required")
    if not isinstance(found, str):
        raise ValueError(f"{name}: expected string")  # noqa: TRY004 - msgspec wants a ValueError
    return found


class UnknownVariant:
    """A variant that this program does not know, kept as it came and sent as it was kept.

    Attributes:
        fields: The whole JSON object.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.fields)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fields!r})"


def decode_hook(expected: type, value: object) -> object:
    """Decode what `msgspec` cannot by itself; for the `dec_hook` of a decoder.

    Raises:
        ValueError: the value fits no variant.
        NotImplementedError: `expected` is no open union, which is a mistake in a type.
    """
    if not issubclass(expected, OpenUnion):
        raise NotImplementedError(f"no way to decode {expected.__name__}")
    if not isinstance(value, dict):
        raise ValueError("expected object")  # noqa: TRY004 - msgspec passes on a ValueError
    variant = expected.variant_of(value)
    if issubclass(variant, UnknownVariant):
        return variant(value)
    try:
        return msgspec.convert(value, variant, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        # The hook's caller knows the way to this value, and the inner error the way from here.
        raise ValueError(str(explain(error))) from None


def encode_hook(value: object) -> object:
    """Encode what `msgspec` cannot by itself; for the `enc_hook` of an encoder."""
    if isinstance(value, UnknownVariant):
        return value.fields
    raise NotImplementedError(f"no way to encode {type(value).__name__}")
