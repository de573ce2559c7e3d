"""What a client shows about a session: its title, what it used and cost, notices."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from protocol.codec.marks import Lenient
from protocol.v2.base import UInt64, Upsert, Wire
from protocol.v2.session_update import SessionUpdate

NoticeSeverity: TypeAlias = str  # "info", "warning", "error", or a word that later versions add


class SessionInfoUpdate(
    Upsert,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="session_info_update",
):
    """What changed about a session; `updated_at` in the form of RFC 3339."""

    title: Lenient[str | UnsetType | None] = UNSET
    updated_at: Lenient[str | UnsetType | None] = UNSET


class Cost(Wire, frozen=True, kw_only=True):
    """An amount in a currency (ISO 4217)."""

    amount: float
    currency: str


class UsageUpdate(
    Wire, SessionUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="usage_update"
):
    """Tokens in the context now, tokens that it can hold, and what the session cost so far.

    The cost alone is a patch: UNSET is unchanged, None is cleared.
    """

    used: UInt64
    size: UInt64
    cost: Lenient[Cost | UnsetType | None] = UNSET


class Notice(
    Wire, SessionUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="notice"
):
    """Something that the user should know and that is no part of the conversation."""

    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: Lenient[str | None] = None
