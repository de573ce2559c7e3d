"""The forms of an elicitation: a small part of JSON Schema.

Kinds of fields and of choices that are not known yet are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from protocol.codec.marks import Lenient, LenientItems
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import Int64, UInt32, UInt64, Wire

# "email", "uri", "date", "date-time", or a word that later versions add.
StringFormat: TypeAlias = str
ElicitationSchemaType: TypeAlias = Literal["object"]


class EnumOption(Wire, frozen=True, kw_only=True):
    """A choice with a title for people."""

    const: str
    title: str
    description: Lenient[str | None] = None


Strings = Annotated[Sequence[str], Meta(min_length=1)]
EnumOptions = Annotated[Sequence[EnumOption], Meta(min_length=1)]


class MultiSelectItems(OpenUnion):
    """The choices of a field that takes several of them."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Titled where it has `anyOf` alone, plain strings where its type says so."""
        if value.get("type") == "string" and ("enum" in value or "anyOf" not in value):
            return StringMultiSelectItems
        if value.get("type", "string") == "string":
            return TitledMultiSelectItems
        string_in(value, "type")
        return OtherMultiSelectItems


class StringMultiSelectItems(
    Wire, MultiSelectItems, frozen=True, kw_only=True, tag_field="type", tag="string"
):
    """Choices that are their own titles."""

    enum: Strings


class TitledMultiSelectItems(Wire, MultiSelectItems, frozen=True, kw_only=True):
    """Choices with titles."""

    any_of: EnumOptions


class OtherMultiSelectItems(UnknownVariant, MultiSelectItems):
    """Choices of a type not known yet."""

    __slots__ = ()


class ElicitationPropertySchema(OpenUnion):
    """A field of a form."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type."""
        return _PROPERTY_TYPES.get(string_in(value, "type"), OtherPropertySchema)


class _PropertySchema(Wire, ElicitationPropertySchema, frozen=True, kw_only=True, tag_field="type"):
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None


class StringPropertySchema(_PropertySchema, frozen=True, kw_only=True, tag="string"):
    """A text, or one choice: of `enum`, or of `one_of` where choices have titles."""

    min_length: UInt32 | None = None
    max_length: UInt32 | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: Lenient[str | None] = None
    enum: Strings | None = None
    one_of: EnumOptions | None = None


class NumberPropertySchema(_PropertySchema, frozen=True, kw_only=True, tag="number"):
    """A number."""

    minimum: float | None = None
    maximum: float | None = None
    default: Lenient[float | None] = None


class IntegerPropertySchema(_PropertySchema, frozen=True, kw_only=True, tag="integer"):
    """A whole number."""

    minimum: Int64 | None = None
    maximum: Int64 | None = None
    default: Lenient[Int64 | None] = None


class BooleanPropertySchema(_PropertySchema, frozen=True, kw_only=True, tag="boolean"):
    """Yes or no."""

    default: Lenient[bool | None] = None


class MultiSelectPropertySchema(_PropertySchema, frozen=True, kw_only=True, tag="array"):
    """Several choices of many."""

    items: MultiSelectItems
    min_items: UInt64 | None = None
    max_items: UInt64 | None = None
    default: LenientItems[Sequence[str] | None] = None


class OtherPropertySchema(UnknownVariant, ElicitationPropertySchema):
    """A field of a type not known yet."""

    __slots__ = ()


_PROPERTY_TYPES: dict[str, type[ElicitationPropertySchema]] = {
    "string": StringPropertySchema,
    "number": NumberPropertySchema,
    "integer": IntegerPropertySchema,
    "boolean": BooleanPropertySchema,
    "array": MultiSelectPropertySchema,
}


class ElicitationSchema(Wire, frozen=True, kw_only=True):
    """A form: its fields by name, and the names of those that must be filled in."""

    type: ElicitationSchemaType
    properties: Mapping[str, ElicitationPropertySchema]
    title: Lenient[str | None] = None
    required: Sequence[str] | None = None
    description: Lenient[str | None] = None
