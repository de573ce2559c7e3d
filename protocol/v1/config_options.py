"""Modes and configuration options of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from protocol.codec.marks import Lenient, LenientItems
from protocol.codec.open_union import OpenUnion
from protocol.v1.base import (
    SessionConfigGroupId,
    SessionConfigId,
    SessionConfigValueId,
    SessionId,
    SessionModeId,
    Wire,
)

# "mode", "model", "model_config", "thought_level", or a word that later versions add.
SessionConfigOptionCategory: TypeAlias = str


class SessionMode(Wire, frozen=True, kw_only=True):
    """A mode that a session can be in."""

    id: SessionModeId
    name: str
    description: Lenient[str | None] = None


class SessionModeState(Wire, frozen=True, kw_only=True):
    """All modes of a session and the one it is in."""

    current_mode_id: SessionModeId
    available_modes: LenientItems[Sequence[SessionMode]]


class SessionConfigSelectEntry(OpenUnion):
    """A value to choose, `SessionConfigSelectOption`, or a `SessionConfigSelectGroup` of them."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """A group where it is named as one, else an option."""
        return SessionConfigSelectGroup if "group" in value else SessionConfigSelectOption


class SessionConfigSelectOption(Wire, SessionConfigSelectEntry, frozen=True, kw_only=True):
    """One value of an option."""

    value: SessionConfigValueId
    name: str
    description: Lenient[str | None] = None


class SessionConfigSelectGroup(Wire, SessionConfigSelectEntry, frozen=True, kw_only=True):
    """Values of an option under one heading."""

    group: SessionConfigGroupId
    name: str
    options: LenientItems[Sequence[SessionConfigSelectOption]]


SessionConfigSelectOptions: TypeAlias = Sequence[SessionConfigSelectEntry]


class _ConfigOption(Wire, frozen=True, kw_only=True, tag_field="type"):
    id: SessionConfigId
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


SessionConfigOption: TypeAlias = SessionConfigSelect | SessionConfigBoolean


class SetSessionModeRequest(Wire, frozen=True, kw_only=True):
    """Put a session into a mode."""

    session_id: SessionId
    mode_id: SessionModeId


class SetSessionModeResponse(Wire, frozen=True, kw_only=True):
    """The session is in the mode."""


class SetSessionConfigOptionRequest(Wire, frozen=True, kw_only=True):
    """Give an option a value: a value's id, or a truth value with the type `boolean`."""

    session_id: SessionId
    config_id: SessionConfigId
    value: bool | SessionConfigValueId
    type: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) and self.type != "boolean":
            raise ValueError('value: expected string, got boolean without type "boolean"')


class SetSessionConfigOptionResponse(Wire, frozen=True, kw_only=True):
    """All options of the session, as they are now."""

    config_options: LenientItems[Sequence[SessionConfigOption]]
