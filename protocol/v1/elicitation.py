"""Questions to the user: a form to fill in, or an address to visit.

The forms are a small part of JSON Schema. Modes, actions, kinds of fields and kinds of choices that
are not known yet are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from protocol.codec.marks import Lenient, LenientItems
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v1.base import (
    ElicitationId,
    Int64,
    RequestId,
    SessionId,
    ToolCallId,
    UInt32,
    UInt64,
    Wire,
)

StringFormat: TypeAlias = Literal["email", "uri", "date", "date-time"]
ElicitationSchemaType: TypeAlias = Literal["object"]
ElicitationContentValue: TypeAlias = str | int | float | bool | Sequence[str]


class EnumOption(Wire, frozen=True, kw_only=True):
    """A choice with a title for people."""

    const: str
    title: str
    description: Lenient[str | None] = None


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
        return OtherMultiSelectItems


class StringMultiSelectItems(
    Wire, MultiSelectItems, frozen=True, kw_only=True, tag_field="type", tag="string"
):
    """Choices that are their own titles."""

    enum: Sequence[str]


class TitledMultiSelectItems(Wire, MultiSelectItems, frozen=True, kw_only=True):
    """Choices with titles."""

    any_of: Sequence[EnumOption]


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
    enum: Sequence[str] | None = None
    one_of: Sequence[EnumOption] | None = None


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


def _object() -> ElicitationSchemaType:
    return "object"


class ElicitationSchema(Wire, frozen=True, kw_only=True):
    """A form: its fields by name, and the names of those that must be filled in."""

    # A default made by a function is always sent: a JSON Schema says its type.
    type: Lenient[ElicitationSchemaType] = field(default_factory=_object)
    title: Lenient[str | None] = None
    properties: Mapping[str, ElicitationPropertySchema] = field(default_factory=dict)
    required: Sequence[str] | None = None
    description: Lenient[str | None] = None


class CreateElicitationRequest(OpenUnion):
    """A question: `ElicitationFormMode`, `ElicitationUrlMode` or `OtherElicitationMode`."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its mode."""
        mode = string_in(value, "mode")
        modes: dict[str, type[OpenUnion]] = {"form": ElicitationFormMode, "url": ElicitationUrlMode}
        if mode not in modes:
            _check_other(value)
        return modes.get(mode, OtherElicitationMode)


class _Elicitation(Wire, CreateElicitationRequest, frozen=True, kw_only=True, tag_field="mode"):
    message: str
    session_id: SessionId | UnsetType = UNSET
    tool_call_id: Lenient[ToolCallId | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.session_id is UNSET and self.request_id is UNSET:
            raise ValueError("sessionId: is required where there is no requestId")


class ElicitationFormMode(_Elicitation, frozen=True, kw_only=True, tag="form"):
    """Ask the user to fill in a form, for a session or for a request that is being answered."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(_Elicitation, frozen=True, kw_only=True, tag="url"):
    """Ask the user to visit an address; `elicitation/complete` says when it is done."""

    elicitation_id: ElicitationId
    url: str


class OtherElicitationMode(UnknownVariant, CreateElicitationRequest):
    """A question in a mode not known yet."""

    __slots__ = ()


def _check_other(value: dict[str, Any]) -> None:
    string_in(value, "message")
    if not isinstance(value.get("sessionId"), str) and "requestId" not in value:
        raise ValueError("sessionId: is required where there is no requestId")


class CreateElicitationResponse(OpenUnion):
    """What the user did: accepted, declined, dismissed, or something not known yet."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its action."""
        actions: dict[str, type[CreateElicitationResponse]] = {
            "accept": ElicitationAcceptAction,
            "decline": ElicitationDeclineAction,
            "cancel": ElicitationCancelAction,
        }
        return actions.get(string_in(value, "action"), OtherElicitationAction)


class ElicitationAcceptAction(
    Wire, CreateElicitationResponse, frozen=True, kw_only=True, tag_field="action", tag="accept"
):
    """The user answered; `content` is the form's values by field."""

    content: Mapping[str, ElicitationContentValue] | None = None


class ElicitationDeclineAction(
    Wire, CreateElicitationResponse, frozen=True, kw_only=True, tag_field="action", tag="decline"
):
    """The user said no."""


class ElicitationCancelAction(
    Wire, CreateElicitationResponse, frozen=True, kw_only=True, tag_field="action", tag="cancel"
):
    """The user went away without an answer."""


class OtherElicitationAction(UnknownVariant, CreateElicitationResponse):
    """Something not known yet."""

    __slots__ = ()


class CompleteElicitationNotification(Wire, frozen=True, kw_only=True):
    """What an address was visited for is done."""

    elicitation_id: ElicitationId
