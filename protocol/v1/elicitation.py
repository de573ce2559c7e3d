"""Questions to the user: a form to fill in, or an address to visit.

The forms are a small part of JSON Schema. Modes, actions, kinds of fields and kinds of choices that
are not known yet are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from protocol.codec.tolerance import Lenient, LenientItems, OpenUnion, UnknownVariant
from protocol.shared.types import ElicitationId, Int64, SessionId, ToolCallId, UInt32, UInt64, Wire
from protocol.v1.sessions import RequestId

StringFormat: TypeAlias = Literal["email", "uri", "date", "date-time"]
ElicitationSchemaType: TypeAlias = Literal["object"]
ElicitationContentValue: TypeAlias = str | int | float | bool | Sequence[str]


class EnumOption(Wire):
    """A choice with a title for people."""

    const: str
    title: str
    description: Lenient[str | None] = None


class MultiSelectItems(OpenUnion):
    """The choices of a field that takes several of them."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Titled where it has `anyOf` alone, plain strings where its type says so."""
        if value.get("type") == "string" and ("enum" in value or "anyOf" not in value):
            return StringMultiSelectItems
        if value.get("type", "string") == "string":
            return TitledMultiSelectItems
        return OtherMultiSelectItems


class StringMultiSelectItems(Wire, MultiSelectItems, tag="string"):
    """Choices that are their own titles."""

    enum: Sequence[str]


class TitledMultiSelectItems(Wire, MultiSelectItems):
    """Choices with titles."""

    any_of: Sequence[EnumOption]


class OtherMultiSelectItems(UnknownVariant, MultiSelectItems):
    """Choices of a type not known yet."""

    __slots__ = ()


class ElicitationPropertySchema(OpenUnion):
    """A field of a form."""

    __slots__ = ()


class _PropertySchema(Wire, ElicitationPropertySchema):
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None


class StringPropertySchema(_PropertySchema, tag="string"):
    """A text, or one choice: of `enum`, or of `one_of` where choices have titles."""

    min_length: UInt32 | None = None
    max_length: UInt32 | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: Lenient[str | None] = None
    enum: Sequence[str] | None = None
    one_of: Sequence[EnumOption] | None = None


class NumberPropertySchema(_PropertySchema, tag="number"):
    """A number."""

    minimum: float | None = None
    maximum: float | None = None
    default: Lenient[float | None] = None


class IntegerPropertySchema(_PropertySchema, tag="integer"):
    """A whole number."""

    minimum: Int64 | None = None
    maximum: Int64 | None = None
    default: Lenient[Int64 | None] = None


class BooleanPropertySchema(_PropertySchema, tag="boolean"):
    """Yes or no."""

    default: Lenient[bool | None] = None


class MultiSelectPropertySchema(_PropertySchema, tag="array"):
    """Several choices of many."""

    items: MultiSelectItems
    min_items: UInt64 | None = None
    max_items: UInt64 | None = None
    default: LenientItems[Sequence[str] | None] = None


class OtherPropertySchema(UnknownVariant, ElicitationPropertySchema):
    """A field of a type not known yet."""

    __slots__ = ()


def _object() -> ElicitationSchemaType:
    return "object"


class ElicitationSchema(Wire):
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
    discriminator = "mode"

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its mode; each belongs to a session or a request."""
        variant = super().find_variant(value)
        by_session = isinstance(value.get("sessionId"), str)
        if variant is OtherElicitationMode and not by_session and "requestId" not in value:
            raise ValueError("sessionId: is required where there is no requestId")
        return variant


class _Elicitation(Wire, CreateElicitationRequest):
    message: str
    session_id: SessionId | UnsetType = UNSET
    tool_call_id: Lenient[ToolCallId | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.session_id is UNSET and self.request_id is UNSET:
            raise ValueError("sessionId: is required where there is no requestId")


class ElicitationFormMode(_Elicitation, tag="form"):
    """Ask the user to fill in a form, for a session or for a request that is being answered."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(_Elicitation, tag="url"):
    """Ask the user to visit an address; `elicitation/complete` says when it is done."""

    elicitation_id: ElicitationId
    url: str


class OtherElicitationMode(UnknownVariant, CreateElicitationRequest):
    """A question in a mode not known yet."""

    __slots__ = ()
    required_strings = ("message",)


class CreateElicitationResponse(OpenUnion):
    """What the user did: accepted, declined, dismissed, or something not known yet."""

    __slots__ = ()
    discriminator = "action"


class ElicitationAcceptAction(Wire, CreateElicitationResponse, tag="accept"):
    """The user answered; `content` is the form's values by field."""

    content: Mapping[str, ElicitationContentValue] | None = None


class ElicitationDeclineAction(Wire, CreateElicitationResponse, tag="decline"):
    """The user declined."""


class ElicitationCancelAction(Wire, CreateElicitationResponse, tag="cancel"):
    """The user dismissed the question."""


class OtherElicitationAction(UnknownVariant, CreateElicitationResponse):
    """An action that is not known yet."""

    __slots__ = ()


class CompleteElicitationNotification(Wire):
    """The user has finished on the page of an address."""

    elicitation_id: ElicitationId
