"""Configuration options of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from protocol.codec.marks import Lenient, LenientItems, SkipInvalidItems
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import (
    SessionConfigGroupId,
    SessionConfigId,
    SessionConfigValueId,
    SessionId,
    Wire,
)
from protocol.v2.session_update import SessionUpdate

# "mode", "model", "model_config", "thought_level", or a word that later versions add.
SessionConfigOptionCategory: TypeAlias = str


class SessionConfigSelectEntry(OpenUnion):
    """A value to choose, `SessionConfigSelectOption`, or a `SessionConfigSelectGroup` of them."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """A group where it is named as one, else an option."""
        return SessionConfigSelectGroup if "groupId" in value else SessionConfigSelectOption


class SessionConfigSelectOption(Wire, SessionConfigSelectEntry, frozen=True, kw_only=True):
    """One value of an option."""

    value: SessionConfigValueId
    name: str
    description: Lenient[str | None] = None


class SessionConfigSelectGroup(Wire, SessionConfigSelectEntry, frozen=True, kw_only=True):
    """Values of an option under one heading: at least one, where we are the sender."""

    group_id: SessionConfigGroupId
    name: str
    # No lower limit: of a peer's group, all values may be ones that are to be skipped.
    options: LenientItems[Sequence[SessionConfigSelectOption]]


SessionConfigSelectOptions: TypeAlias = Annotated[
    Sequence[SessionConfigSelectEntry], Meta(min_length=1)
]


class SessionConfigOption(OpenUnion):
    """An option: one value out of several, on or off, or something not known yet."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; each has an id and a name."""
        match string_in(value, "type"):
            case "select":
                return SessionConfigSelect
            case "boolean":
                return SessionConfigBoolean
            case _:
                string_in(value, "configId")
                string_in(value, "name")
                return OtherConfigOption


class _ConfigOption(Wire, SessionConfigOption, frozen=True, kw_only=True, tag_field="type"):
    config_id: SessionConfigId
    name: str
    description: Lenient[str | None] = None
    category: Lenient[SessionConfigOptionCategory | None] = None


class SessionConfigSelect(_ConfigOption, frozen=True, kw_only=True, tag="select"):
    """An option with one value out of several; all are options or all are groups."""

    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions

    def __post_init__(self) -> None:
        groups = sum(isinstance(entry, SessionConfigSelectGroup) for entry in self.options)
        if groups not in {0, len(self.options)}:
            raise ValueError("options: must be all groups or none")


class SessionConfigBoolean(_ConfigOption, frozen=True, kw_only=True, tag="boolean"):
    """An option that is on or off."""

    current_value: bool


class OtherConfigOption(UnknownVariant, SessionConfigOption):
    """An option of a type not known yet."""

    __slots__ = ()


class ConfigOptionUpdate(
    Wire,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="config_option_update",
):
    """All configuration options, as they are now."""

    config_options: SkipInvalidItems[Sequence[SessionConfigOption]]


class SetSessionConfigOptionRequest(OpenUnion):
    """Give an option a value, whose type says what it is."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By the value's type."""
        match string_in(value, "type"):
            case "id":
                return SetSessionConfigOptionId
            case "boolean":
                return SetSessionConfigOptionBoolean
            case _:
                string_in(value, "sessionId")
                string_in(value, "configId")
                if "value" not in value:
                    raise ValueError("value: is required")
                return OtherSetSessionConfigOption


class _SetConfigOption(
    Wire, SetSessionConfigOptionRequest, frozen=True, kw_only=True, tag_field="type"
):
    session_id: SessionId
    config_id: SessionConfigId


class SetSessionConfigOptionId(_SetConfigOption, frozen=True, kw_only=True, tag="id"):
    """Choose the value of this id."""

    value: SessionConfigValueId


class SetSessionConfigOptionBoolean(_SetConfigOption, frozen=True, kw_only=True, tag="boolean"):
    """Put it on or off."""

    value: bool


class OtherSetSessionConfigOption(UnknownVariant, SetSessionConfigOptionRequest):
    """A value of a type not known yet."""

    __slots__ = ()


class SetSessionConfigOptionResponse(Wire, frozen=True, kw_only=True):
    """All options of the session, as they are now."""

    config_options: SkipInvalidItems[Sequence[SessionConfigOption]]
