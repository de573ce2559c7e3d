"""What a receiver tolerates (on fields, and by open unions), and what is wrong with a value.

The marks stand for the extension keywords of the protocol's schema. `msgspec` decodes closed unions
by itself. For an open one a field names a plain base class, the variants derive from it, and
`decode_hook` asks the base class which variant a value is.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

T = TypeVar("T")

ON_ERROR = "default-on-error"
ON_NULL = "default-on-null"
SKIP_ITEMS = "skip-invalid-items"

# An invalid value counts as not given (`x-deserialize-default-on-error`).
Lenient = Annotated[T, Meta(extra={ON_ERROR: True})]
# Invalid items are left out; a value that is no list counts as not given
# (`x-deserialize-skip-invalid-items` with `x-deserialize-default-on-error`).
LenientItems = Annotated[T, Meta(extra={ON_ERROR: True, SKIP_ITEMS: True})]
# Invalid items are left out; a value that is no list is refused
# (`x-deserialize-skip-invalid-items` alone).
SkipInvalidItems = Annotated[T, Meta(extra={SKIP_ITEMS: True})]
# Null counts as not given (`x-deserialize-default-on-null`).
NullAsDefault = Annotated[T, Meta(extra={ON_NULL: True})]
_PATH_SEPARATOR = " - at `"
_MISSING = "Object missing required field `"
_MAX_LENGTH = 300  # characters; a message may quote what the peer sent
# msgspec names Python's types; the peer knows JSON's.
_JSON_NAMES = {
    "`str`": "string",
    "`int`": "integer",
    "`bool`": "boolean",
    "`float`": "number",
    "`object`": "object",
    "`array`": "array",
    "`null`": "null",
}


class OpenUnion:
    """The base of a union's variants.

    A variant is a struct with a tag, an open union with a `variant_tag`, or, for all other values,
    the one `UnknownVariant`. Structs whose names begin with an underscore are only bases of
    variants. A union whose variants have no tag overrides `find_variant`.

    Attributes:
        discriminator: The JSON field that holds the tag.
        variant_modules: Modules with further variants, imported when a value is first decoded.
    """

    __slots__ = ()
    discriminator: ClassVar[str] = "type"
    variant_tag: ClassVar[str]
    variant_modules: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Return the variant that the JSON object `value` is meant to be.

        Raises:
            ValueError: It is none; the message says what is wrong in one line.
        """
        variants = cls._variants()
        tag = string_in(value, cls.discriminator)
        variant = variants.get(tag) or variants.get(None)
        if variant is None:
            tags = ", ".join(sorted(filter(None, variants)))
            raise ValueError(f"{cls.discriminator}: expected one of {tags}")
        if issubclass(variant, UnknownVariant):
            for name in variant.required_strings:
                string_in(value, name)
        elif not issubclass(variant, Struct):
            return variant.find_variant(value)
        return variant

    @classmethod
    @cache
    def _variants(cls) -> dict[str | None, type[OpenUnion]]:
        """Return the variants by tag; the one for unknown tags by None."""
        for module in cls.variant_modules:
            import_module(module)
        variants: dict[str | None, type[OpenUnion]] = {}
        classes = cls.__subclasses__()
        while classes:
            subclass = classes.pop()
            if issubclass(subclass, UnknownVariant):
                variants[None] = subclass
            elif "variant_tag" in vars(subclass):
                variants[subclass.variant_tag] = subclass
                continue
            elif issubclass(subclass, Struct) and not subclass.__name__.startswith("_"):
                variants[str(subclass.__struct_config__.tag)] = subclass
            classes += subclass.__subclasses__()
        return variants


class UnknownVariant:
    """A variant that this program does not know; it is sent on exactly as it came.

    Attributes:
        required_strings: The fields that every variant has, and whose values are strings.
        fields: The whole JSON object.
    """

    __slots__ = ("fields",)
    required_strings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.fields)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fields!r})"


def string_in(value: dict[str, Any], name: str) -> str:
    """Return the string in the field `name` of a JSON object.

    Raises:
        ValueError: The field is missing or holds something else.
    """
    text = value.get(name)
    if name not in value:
        raise ValueError(f"{name}: is required")
    if not isinstance(text, str):
        raise ValueError(f"{name}: expected string")  # noqa: TRY004 - msgspec wants a ValueError
    return text


def decode_hook(expected: type, value: object) -> object:
    """Decode what `msgspec` cannot by itself; for the `dec_hook` of a decoder.

    Raises:
        ValueError: The value fits no variant.
        NotImplementedError: `expected` is no open union, which is a mistake in a type.
    """
    if not issubclass(expected, OpenUnion):
        raise NotImplementedError(f"no way to decode {expected.__name__}")
    if not isinstance(value, dict):
        raise ValueError("expected object")  # noqa: TRY004 - msgspec passes on a ValueError
    variant = expected.find_variant(value)
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


class Explanation(NamedTuple):
    """The path of a field, such as `prompt[0].text` (empty: the whole value), and the reason."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


def explain(error: msgspec.ValidationError) -> Explanation:
    """Parse a validation error of msgspec.

    A type's own check (its `__post_init__`, or an open union) raises a ValueError that reads
    `field: reason`; its field is appended to the path at which msgspec found it.
    """
    text, _, path = str(error).partition(_PATH_SEPARATOR)
    field = path.removesuffix("`").removeprefix("$").removeprefix(".")
    if text.startswith(_MISSING):
        return Explanation(_join(field, text[len(_MISSING) :].rstrip("`")), "is required")
    head, colon, tail = text.partition(": ")
    if colon and " " not in head:
        field, text = _join(field, head), tail
    return Explanation(field, _in_json_terms(text)[:_MAX_LENGTH])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and not name.startswith("[") else path + name


def _in_json_terms(text: str) -> str:
    if not text.startswith("Expected"):
        return text[:1].lower() + text[1:]
    for python, json in _JSON_NAMES.items():
        text = text.replace(python, json)
    # A union comes as one quotation: `int | str | null`.
    head, quote, remainder = text.partition("`")
    union, _, tail = remainder.partition("`")
    if quote:
        names = [_JSON_NAMES.get(f"`{name}`", name) for name in union.split(" | ")]
        text = head + " or ".join(names) + tail
    return "e" + text[1:]
