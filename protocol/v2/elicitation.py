"""Questions to the user: a form to fill in, or an address to visit.

Modes and actions that are not known yet are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType

from protocol.codec.marks import Lenient
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import ElicitationId, RequestId, SessionId, ToolCallId, Wire
from protocol.v2.elicitation_schema import ElicitationSchema

# A string, a number, a truth value, an array of strings, or whatever a newer kind of field takes.
ElicitationContentValue: TypeAlias = Any


class CreateElicitationRequest(OpenUnion):
    """A question: `ElicitationFormMode`, `ElicitationUrlMode` or `OtherElicitationMode`."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its mode; each has a message, and a session or a request that it belongs to."""
        match string_in(value, "mode"):
            case "form":
                return ElicitationFormMode
            case "url":
                return ElicitationUrlMode
            case _:
                _check_other(value)
                return OtherElicitationMode


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
    request = value.get("requestId")
    by_request = isinstance(request, int | str) and not isinstance(request, bool)
    if not isinstance(value.get("sessionId"), str) and not by_request:
        raise ValueError("sessionId: is required where there is no requestId")


class CreateElicitationResponse(OpenUnion):
    """What the user did: accepted, declined, dismissed, or something not known yet."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its action."""
        match string_in(value, "action"):
            case "accept":
                return ElicitationAcceptAction
            case "decline":
                return ElicitationDeclineAction
            case "cancel":
                return ElicitationCancelAction
            case _:
                return OtherElicitationAction


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
    """Something not known yet; it counts as going away."""

    __slots__ = ()


class CompleteElicitationNotification(Wire, frozen=True, kw_only=True):
    """What an address was visited for is done."""

    elicitation_id: ElicitationId
